import { describe, expect, test } from "vitest";
import { payloadHash, receiptHash, snapshotHash } from "../../src/timer/hashes.ts";
import { hash, lineage, sha256, start } from "./records.ts";

test("a payload hash is the plain SHA-256 of the bytes", () => {
  expect(payloadHash(new Uint8Array(), sha256)).toBe("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
});

describe("a snapshot hash", () => {
  const of = (over: Parameters<typeof start>[0]) => snapshotHash(start(over), sha256);
  test("changes with every part of a start's meaning", () => {
    const hashes = [
      of({}), of({ maxRetries: 3 }), of({ retryDelayMs: 1 as never }), of({ payloadHash: hash("c") }), of({ wait: { kind: "delay", delayMs: 2 as never } }),
      of({ wait: { kind: "due", dueAtMs: 2 as never } }), of({ lineage: { ...lineage, edges: { ...lineage.edges, elapsed: "other" } } }),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  test("does not change with when the start arrived", () => {
    expect(of({ receivedAtMs: 5 as never })).toBe(of({}));
  });
});

test("a receipt keeps code and message apart", () => {
  const of = (code: string, message: string) => receiptHash({ verb: "fail", generation: 0, fence: 2, payloadHash: hash("a"), failure: { code, message } }, sha256);
  expect(of("a", "bc")).not.toBe(of("ab", "c"));
});
