import { describe, expect, test } from "vitest";
import type { DurationMs } from "../../src/base/units.ts";
import { decodeGrave, encodeGrave, type Grave } from "../../src/protocol/tombstone.ts";
import { tombstone } from "../timer/records.ts";

const dedupeMs = 86_400_000 as DurationMs;

describe("what takes a snapshot's place", () => {
  const graves: readonly Grave[] = [
    {},
    { expiresInMs: dedupeMs },
    { tombstone: tombstone() },
    { tombstone: tombstone({ outcome: "failed", generation: 3, fence: 9 }), expiresInMs: dedupeMs },
  ];

  test.each(graves)("reads as it was written: %o", (grave) => {
    expect(decodeGrave(encodeGrave(grave))).toEqual(grave);
  });

  test("has this spelling, which other releases read", () => {
    const { snapshotHash, dueAtMs, endedAtMs } = tombstone();
    expect(encodeGrave({ tombstone: tombstone(), expiresInMs: dedupeMs })).toBe(
      `{"v":1,"ended":{"snapshotHash":"${snapshotHash}","outcome":"completed","generation":0,"fence":3,"dueAtMs":${String(dueAtMs)},"endedAtMs":${String(endedAtMs)}},"expiresInMs":86400000}`,
    );
  });

  test.each(["", "{", "[]", "null", "{\"v\":2}", "{\"v\":1,\"ended\":{}}", "{\"v\":1,\"expiresInMs\":-1}", "{\"v\":1,\"ended\":{\"snapshotHash\":\"md5:1\"}}"])("that this version cannot read is none: %s", (text) => {
    expect(decodeGrave(text)).toBeUndefined();
  });

  test("of a later release may say more", () => {
    expect(decodeGrave("{\"v\":1,\"why\":\"?\"}")).toEqual({});
  });

  test("is smaller than any snapshot, so that a stream that is nearly full takes it", () => {
    expect(encodeGrave({ tombstone: tombstone({ generation: 2_147_483_647, fence: 2_147_483_647 }), expiresInMs: 1_576_800_000_000 as DurationMs }).length).toBeLessThan(320);
  });
});
