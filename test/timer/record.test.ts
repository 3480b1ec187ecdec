import { expect, test } from "vitest";
import { inputAge, recordBase } from "../../src/timer/record.ts";
import { elapsed, receipt, terminal, waiting } from "./records.ts";

test.each([
  [{ generation: 1, fence: 4 }, "equal", "it names the very point"],
  [{ generation: 0, fence: 2 }, "older", "both lie behind"],
  [{ generation: 0, fence: 9 }, "older", "a generation behind never comes back, whatever the fence"],
  [{ generation: 2, fence: 3 }, "older", "a fence behind never comes back, whatever the generation"],
  [{ generation: 1, fence: 5 }, "newer", "the next transition"],
  [{ generation: 2, fence: 6 }, "newer", "the next generation"],
] as const)("%o is %s than generation 1 and fence 4", (input, want, because) => {
  expect(inputAge(input, { generation: 1, fence: 4 }), because).toBe(want);
});

test("what every phase has is the same for each phase of one generation, and holds no receipt", () => {
  const { phase: _phase, ...base } = waiting();
  for (const record of [waiting({ receipt: receipt() }), elapsed({ fence: 1 }), terminal({ fence: 1 })]) expect(recordBase(record)).toEqual(base);
  const { retryDelayMs: _delay, ...once } = base;
  expect(recordBase(once)).toEqual(once);
});
