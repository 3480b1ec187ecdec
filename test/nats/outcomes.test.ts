import { describe, expect, test } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import { readOutcome, toldOutcome, writeOutcome } from "../../src/nats/outcomes.ts";

const failure = new Failure("transient", "BROKER_TIMEOUT", "publish");

describe("the outcome of a write", () => {
  test.each([
    { outcome: { kind: "stored", sequence: 7, duplicate: false }, expected: undefined, want: { kind: "stored", revision: 7 }, because: "it is there" },
    { outcome: { kind: "stored", sequence: 7, duplicate: true }, expected: undefined, want: { kind: "stored", revision: 7 }, because: "it was there before" },
    { outcome: { kind: "conflict" }, expected: undefined, want: { kind: "exists" }, because: "it expected nothing there" },
    { outcome: { kind: "conflict" }, expected: 0, want: { kind: "exists" }, because: "0 expects nothing too" },
    { outcome: { kind: "conflict" }, expected: 5, want: { kind: "conflict" }, because: "another revision is the last" },
    { outcome: { kind: "refused", failure }, expected: 5, want: { kind: "refused", failure }, because: "it is surely not stored" },
    { outcome: { kind: "unknown", failure }, expected: 5, want: { kind: "unknown", failure }, because: "nobody knows" },
  ] as const)("$outcome.kind expecting $expected is $want.kind: $because", ({ outcome, expected, want }) => {
    expect(writeOutcome(outcome, expected)).toEqual(want);
  });

  test("of a purge is unknown when it was not answered: it may be done, and may be asked again", () => {
    expect(toldOutcome({ kind: "told", value: null })).toEqual({ kind: "stored", revision: 0 });
    expect(toldOutcome({ kind: "failed", failure })).toEqual({ kind: "unknown", failure });
  });
});

describe("the outcome of a read", () => {
  test("is decoded only when something is there", () => {
    const decode = (): never => {
      throw new Error("decoded");
    };
    expect(readOutcome({ kind: "absent" }, decode)).toEqual({ kind: "absent" });
    expect(readOutcome({ kind: "failed", failure }, decode)).toEqual({ kind: "failed", failure });
  });
});
