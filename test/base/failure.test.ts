import { describe, expect, test } from "vitest";
import { describeFailure, Failure, failureIn } from "../../src/base/failure.ts";

const inner = new Failure("transient", "BROKER_TIMEOUT", "read a record");
const outer = new Error("sweep", { cause: new Error("walk", { cause: inner }) });

describe("a failure", () => {
  test("is found through the errors that wrap it", () => {
    expect(failureIn(outer)).toBe(inner);
    expect(failureIn(new Error("plain"))).toBeUndefined();
    expect(failureIn("text")).toBeUndefined();
  });

  test("is described with its whole chain, outermost first", () => {
    expect(describeFailure(outer)).toBe("sweep: walk: read a record");
    expect(describeFailure({ odd: 1 })).toBe('{"odd":1}');
  });

  test("whose chain runs in a circle is still described", () => {
    const circular = new Error("again");
    circular.cause = circular;
    expect(describeFailure(circular).length).toBeLessThan(100);
    expect(failureIn(circular)).toBeUndefined();
  });
});
