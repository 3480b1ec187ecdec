import { describe, expect, test } from "vitest";
import { assert, InvariantError, present, unreachable } from "../../src/base/assert.ts";

describe("an assertion", () => {
  test("that holds says nothing", () => {
    expect(() => { assert(true, "anything"); }).not.toThrow();
    expect(present(0, "a number")).toBe(0);
  });

  test.each([
    ["of a false fact", () => { assert(false, "the sky is green"); }, "the sky is green"],
    ["of a missing value", () => { present(undefined, "a revision"); }, "a revision"],
    ["of a null value", () => { present(null, "a key"); }, "a key"],
    ["of a variant that cannot be", () => { unreachable({ kind: "new" } as never); }, '{"kind":"new"}'],
  ])("%s throws an InvariantError that names it", (_name, act, fact) => {
    expect(act).toThrow(InvariantError);
    expect(act).toThrow(fact);
  });
});
