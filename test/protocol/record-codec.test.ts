import { describe, expect, test } from "vitest";
import { utf8 } from "../../src/base/bytes.ts";
import { decodeRecord, encodeRecord } from "../../src/protocol/record-codec.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import { at, elapsed, receipt, terminal, waiting } from "../timer/records.ts";
import { fc } from "./property.ts";

const { retryDelayMs: _delay, ...once } = waiting({ maxRetries: 0 });
const records: readonly (readonly [string, TimerRecord])[] = [
  ["waiting", waiting()], ["waiting without retries", once], ["waiting after a retry", waiting({ generation: 1, fence: 3, receipt: receipt() })],
  ["elapsed", elapsed()], ["resumed again", elapsed({ resumedAgainAtMs: at(9_000) })], ["completed", terminal()], ["failed", terminal({ outcome: "failed", failure: { code: "gone", message: "ü" } })],
];

describe("a record", () => {
  test.each(records)("%s reads back as written, with the same bytes each time", (_name, record) => {
    const bytes = encodeRecord(record);
    const decoded = decodeRecord(bytes);
    expect(decoded).toEqual({ ok: true, record });
    expect(decoded.ok && encodeRecord(decoded.record)).toEqual(bytes);
  });

  test("has its keys in one order, however it was built", () => {
    const shuffled = Object.fromEntries(Object.entries(elapsed()).reverse()) as unknown as TimerRecord;
    expect(encodeRecord(shuffled)).toEqual(encodeRecord(elapsed()));
  });

  test("of a newer version is reported, not guessed at", () => {
    expect(decodeRecord(utf8(JSON.stringify({ ...waiting(), v: 2 })))).toMatchObject({ ok: false, problem: expect.stringContaining("v") as string });
  });

  test("that was resumed again is what it was to a version which does not know that", () => {
    const { resumedAgainAtMs: _, ...known } = elapsed({ resumedAgainAtMs: at(9_000) });
    // Readers leave out keys that they do not know, and none of them writes an elapsed record back as an elapsed one.
    expect(known).toEqual(elapsed());
    expect(new TextDecoder().decode(encodeRecord(elapsed({ resumedAgainAtMs: at(9_000) })))).toContain(`"resumedAgainAtMs":${String(at(9_000))}`);
    expect(encodeRecord(elapsed())).not.toEqual(encodeRecord(elapsed({ resumedAgainAtMs: at(9_000) })));
  });

  test("with a key that this version does not know is read", () => {
    expect(decodeRecord(utf8(JSON.stringify({ v: 1, ...waiting(), later: true })))).toEqual({ ok: true, record: waiting() });
  });
});

test("no bytes make the reader throw", () => {
  fc.assert(fc.property(fc.oneof(fc.uint8Array(), fc.json().map(utf8)), (bytes) => {
    const decoded = decodeRecord(bytes);
    expect(decoded.ok || decoded.problem.length > 0).toBe(true);
  }));
});
