import { describe, expect, test } from "vitest";
import { utf8 } from "../../src/base/bytes.ts";
import { decodeOutcome, encodeOutcome, outcomeOf, outcomeOfMalformed } from "../../src/protocol/outcome.ts";
import { elapsed, receipt, terminal, waiting } from "../timer/records.ts";

const key = { flow: "orders", ref: "a".repeat(32) };

describe("an outcome", () => {
  test.each([
    ["accepted start", { outcome: "accepted", record: waiting() }, { outcome: "accepted", state: "waiting", generation: 0, fence: 1, dueAt: "2027-01-15T08:00:01.000Z" }],
    ["duplicate of an ended timer", { outcome: "duplicate", record: terminal() }, { outcome: "duplicate", state: "completed", fence: 3 }],
    ["rejected with a record", { outcome: "rejected", code: "stale", record: elapsed() }, { outcome: "rejected", code: "stale", fence: 2 }],
    ["rejected without one", { outcome: "rejected", code: "unknown_timer" }, { outcome: "rejected", code: "unknown_timer" }],
  ] as const)("tells of an %s and reads back", (_name, answer, want) => {
    const outcome = outcomeOf(key, answer);
    expect(outcome).toMatchObject({ v: 1, ref: key.ref, ...want });
    expect(decodeOutcome(encodeOutcome(outcome))).toEqual(outcome);
  });

  test("of a retry beyond the limit is accepted, with the code of the end", () => {
    const record = terminal({ outcome: "failed", receipt: receipt(), failure: { code: "max_retries_exceeded", message: "" } });
    expect(outcomeOf(key, { outcome: "accepted", record })).toMatchObject({ outcome: "accepted", code: "max_retries_exceeded", state: "failed" });
  });

  test("of a fail that uses that code itself carries none", () => {
    const record = terminal({ outcome: "failed", receipt: receipt({ verb: "fail" }), failure: { code: "max_retries_exceeded", message: "" } });
    expect(outcomeOf(key, { outcome: "accepted", record }).code).toBeUndefined();
  });

  test("of a malformed command names the problem", () => {
    expect(outcomeOfMalformed("context_invalid", "v must be 1")).toEqual({ v: 1, outcome: "rejected", code: "context_invalid", problem: "v must be 1" });
  });

  test("that is none is undefined", () => {
    expect(decodeOutcome(utf8("{}"))).toBeUndefined();
    expect(decodeOutcome(Uint8Array.of(255))).toBeUndefined();
  });
});
