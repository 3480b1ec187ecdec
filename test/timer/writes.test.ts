import { describe, expect, test } from "vitest";
import { followingWrites, isAtLeast } from "../../src/timer/writes.ts";
import { elapsed, terminal, waiting } from "./records.ts";

describe("what follows a record", () => {
  const { elapsedAtMs: _, ...early } = terminal();
  test.each([
    ["waiting", waiting(), ["schedule"]],
    ["elapsed", elapsed(), ["resume"]],
    ["terminal after it elapsed", terminal(), ["archive", "remove"]],
    ["terminal while it waited", early, ["archive", "unschedule", "remove"]],
  ] as const)("that is %s", (_name, record, want) => {
    expect(followingWrites(record)).toEqual(want);
  });
});

test("a basis is as good as itself and as every weaker one", () => {
  const order = ["assumed", "replica", "leader", "leader_again"] as const;
  order.forEach((has, at) => { order.forEach((needs, than) => { expect(isAtLeast(has, needs)).toBe(at >= than); }); });
});
