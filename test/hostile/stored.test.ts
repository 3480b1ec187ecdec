/** Hostile bytes in streams and replies: what a foreign writer, a damaged disk or another version can leave there. */
import { describe, expect, test, vi } from "vitest";
import { utf8 } from "../../src/base/bytes.ts";
import { dueAtMsMax } from "../../src/base/limits.ts";
import { readBoundedJson } from "../../src/protocol/bounded-json.ts";
import { decodeRecord, encodeRecord } from "../../src/protocol/record-codec.ts";
import { outcomeOf } from "../../src/protocol/outcome.ts";
import { resumeContextHeader } from "../../src/protocol/resume.ts";
import { InvariantError } from "../../src/base/assert.ts";
import { encodeHeaders, headerStatus, messageHeaders } from "../../src/nats/core/headers.ts";
import { accountStateFrom, consumerStateFrom, streamStateFrom, userStateFrom } from "../../src/nats/core/info.ts";
import { apiMessage, deliveryInfo, directMessage, nanosFromRfc3339 } from "../../src/nats/core/received.ts";
import { armedIn } from "../../src/nats/armed.ts";
import { decode } from "../../src/worker/decode.ts";
import { decodeSummary } from "../../src/worker/sweep-summary.ts";
import { message } from "../protocol/messages.ts";
import { fc } from "../protocol/property.ts";
import { elapsed, receipt, sha256, terminal, waiting } from "../timer/records.ts";
import { hostileBytes, hostileText, hostileTexts, hostileValues, mutated, replacedLeaves } from "./corpus.ts";

// Thousands of cases each: a busy machine takes its time.
vi.setConfig({ testTimeout: 60_000 });

const key = { flow: "orders", ref: "a".repeat(32) };
const records = [waiting({ receipt: receipt() }), elapsed(), terminal({ outcome: "failed", failure: { code: "gone", message: "over" } })];
const asText = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

describe("a stored record", () => {
  const hostileInstants = [8_640_000_000_000_001, 9_007_199_254_740_991, 9_223_372_036_854];

  test("with any one field wrong is set aside by name, or can be carried on like any other", () => {
    expect(decodeRecord(utf8(JSON.stringify({ ...elapsed(), v: 1, dueAtMs: dueAtMsMax + 1 })))).toMatchObject({ ok: false, problem: expect.stringContaining("dueAtMs") as string });
    for (const record of records) {
      const stored = JSON.parse(asText(encodeRecord(record))) as unknown;
      for (const [path, replaced, put] of replacedLeaves(stored, [...hostileValues, ...hostileInstants])) {
        const decoded = decodeRecord(utf8(JSON.stringify(replaced)));
        const said = `${path} = ${JSON.stringify(put)}`;
        const end = decoded.ok ? carryOn(decoded.record) : decoded.problem === "" ? "nameless" : "set aside";
        if (end !== "carried on" && end !== "set aside") expect([said, end]).toEqual([said, "carried on or set aside"]);
      }
    }
  });

  test.each(hostileTexts)("of %s is set aside in few words", (_name, text) => {
    const decoded = decodeRecord(utf8(text));
    expect(decoded.ok ? "" : decoded.problem).toMatch(/^.{1,500}$/s);
  });

  test("mutated anywhere is set aside, or can be carried on", () => {
    const cases = fc.constantFrom(...records).chain((record) => mutated(asText(encodeRecord(record))));
    fc.assert(fc.property(fc.oneof(cases.map(utf8), hostileBytes), (bytes) => {
      const decoded = decodeRecord(bytes);
      expect(decoded.ok ? carryOn(decoded.record) : decoded.problem.length > 0).toBeTruthy();
    }), { numRuns: 3_000 });
  });
});

/** Everything that a loop or a sweep does with a record that it could read. */
function carryOn(record: Extract<ReturnType<typeof decodeRecord>, { ok: true }>["record"]): string {
  outcomeOf(key, { outcome: "duplicate", record });
  if (record.phase === "elapsed") resumeContextHeader(record);
  return decodeRecord(encodeRecord(record)).ok ? "carried on" : "written and not read again";
}

describe("headers", () => {
  const noise = fc.oneof(hostileBytes, fc.string({ unit: "binary", maxLength: 200 }).map((text) => utf8(`NATS/1.0${text}\r\n\r\n`)), hostileText.map((text) => utf8(`NATS/1.0\r\nK: ${text}\r\n\r\n`)));

  test("of any bytes are read as far as they go, and never throw", () => {
    fc.assert(fc.property(noise, (bytes) => {
      const read = messageHeaders(bytes);
      expect(read.byteCount).toBe(bytes.length);
      for (const name of ["K", "", "__proto__", "constructor", "Durable-Timer-Context"]) expect(read.get(name)).toBe(read.all(name)[0]);
      const status = headerStatus(bytes);
      expect(status === undefined || (status >= 100 && status <= 999)).toBe(true);
    }), { numRuns: 2_000 });
  });

  test("are one line each, whatever value is to be written: a line break is a bug of ours and not another header", () => {
    fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 60 }), (value) => {
      if (/[\r\n]/.test(value)) expect(() => encodeHeaders([["K", value]])).toThrow(InvariantError);
      else expect(asText(encodeHeaders([["K", value]])).split("\r\n")).toHaveLength(4);
    }));
  });

  test.each(["a\r\nNats-Rollup: all", "a: b", "", "a\nb", "two words"])("have no name like %j, which would be read as another", (name) => {
    expect(() => encodeHeaders([[name, "v"]])).toThrow(InvariantError);
  });
});

describe("an acknowledgement subject", () => {
  test.each([
    "$JS.ACK.S.C.x.17.5.1796073537414022531.9", "$JS.ACK.S.C.3.-17.5.1796073537414022531.9", "$JS.ACK.S.C.3.17.5.1796073537414022531.", "$JS.ACK.S.C.0x3.17.5.1796073537414022531.9",
    `$JS.ACK.S.C.3.17.5.${"9".repeat(10_000)}.9`, `$JS.ACK.S.C.3.${"9".repeat(17)}.5.1796073537414022531.9`, "$JS.ACK.S.C.1e3.17.5.1796073537414022531.9", "$JS.ACK.S.C. 3.17.5.1796073537414022531.9",
  ])("that a server never wrote tells nothing: %j", (subject) => {
    expect(deliveryInfo(subject)).toBeUndefined();
  });

  test("mutated anywhere tells whole numbers or nothing", () => {
    fc.assert(fc.property(mutated("$JS.ACK.hub.ACCHASH.S.C.3.17.5.1796073537414022531.9"), (subject) => {
      const info = deliveryInfo(subject);
      expect(info === undefined || [info.deliveryCount, info.streamSequence, info.pending].every((count) => Number.isSafeInteger(count) && count >= 0)).toBe(true);
    }), { numRuns: 3_000 });
  });
});

test("a wake of any headers is work for a timer in whole numbers, or foreign", () => {
  const subject = fc.oneof(fc.constant(`durable_timer.wake.v1.orders.${key.ref}`), mutated(`durable_timer.wake.v1.orders.${key.ref}`));
  const fence = fc.oneof(fc.constant("0:1"), mutated("0:1"), hostileText);
  const dueAt = fc.oneof(fc.constantFrom("1800000000000", "", " ", "-1", "0x10", "1e3", "9007199254740993", "9".repeat(400), "1.5"), hostileText);
  fc.assert(fc.property(subject, fence, dueAt, (on, fenceText, dueText) => {
    const headers = { "Durable-Timer-Fence": fenceText, "Durable-Timer-Due-At": dueText };
    const decoded = decode("wake", message({ subject: on, headers }), { limits: {} as never, sha256 });
    armedIn(message({ subject: on, headers }));
    const isSpelled = /^\d{1,16}$/.test(dueText) && Number(dueText) <= dueAtMsMax;
    expect(decoded.kind === "work" ? [decoded.dueAtMs, isSpelled] : decoded.kind).toEqual(decoded.kind === "work" ? [Number(dueText), true] : "foreign");
  }), { numRuns: 2_000 });
});

test("a reply of any bytes is read or malformed, and never throws", () => {
  const reply = fc.oneof(fc.json().map((text) => JSON.parse(text) as unknown), fc.constantFrom(...hostileValues));
  const readers = [streamStateFrom, consumerStateFrom, accountStateFrom, userStateFrom];
  const object = reply.map((value) => (typeof value === "object" && value !== null ? value : {}) as Readonly<Record<string, unknown>>);
  const field = fc.constantFrom("config", "state", "created", "cluster", "ts", "name", "api", "tiers", "limits", "data", "server");
  fc.assert(fc.property(object, fc.dictionary(field, reply), fc.constantFrom(...readers), (base, over, read) => {
    expect(["told", "failed"]).toContain(read("ask", { ...base, ...over }).kind);
    const stored = apiMessage({ subject: "s", seq: 1, time: "2026-11-30T21:18:57Z", hdrs: over["state"], data: over["data"] });
    expect(stored === undefined || stored.sequence === 1).toBe(true);
  }), { numRuns: 2_000 });
});

test("a direct reply of any headers is a message or none, and a time of any text an instant or none", () => {
  fc.assert(fc.property(hostileBytes, hostileText, (headerBytes, time) => {
    expect(() => directMessage({ subject: "inbox", reply: "", headerBytes, body: new Uint8Array() })).not.toThrow();
    expect(["bigint", "undefined"]).toContain(typeof nanosFromRfc3339(time));
  }), { numRuns: 1_000 });
});

test("a sweep's summary of any text is read or none", () => {
  const summary = { v: 1, beganAtMs: 1, durationMs: 1, checkedRevision: 1, waiting: 1, elapsed: 1, overdue: 0, unreadable: 0, oldestOverdueMs: 0, oldestElapsedMs: 0, schedules: { incarnation: "i", createdAt: "c", lastSequence: 1 } };
  for (const [path, replaced, put] of replacedLeaves(summary, hostileValues)) {
    const read = decodeSummary(JSON.stringify(replaced));
    expect([path, put, read === undefined || typeof read.waiting === "number"]).toEqual([path, put, true]);
  }
  fc.assert(fc.property(fc.oneof(hostileText, mutated(JSON.stringify(summary))), (text) => {
    const read = decodeSummary(text);
    expect(read === undefined || Number.isSafeInteger(read.waiting)).toBe(true);
  }), { numRuns: 1_000 });
});

test("a text far beyond its bounds is left after as many keys and levels as are allowed, not read to its end", () => {
  for (const [name, text] of hostileTexts) {
    const read = readBoundedJson(text, { depthMax: 4, keyCountMax: 64 });
    const depth = read.ok ? 0 : read.path.split(".").length;
    expect([name, depth <= 5]).toEqual([name, true]);
  }
});
