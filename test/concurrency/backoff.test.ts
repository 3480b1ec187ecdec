import { expect, test } from "vitest";
import type { DurationMs } from "../../src/base/units.ts";
import { backoffMs } from "../../src/concurrency/backoff.ts";

const policy = { minMs: 100 as DurationMs, maxMs: 1_000 as DurationMs };

const rows = [
  { failureCount: 1, fraction: 0, want: 50, because: "no wait is shorter than half of its step" },
  { failureCount: 1, fraction: 0.5, want: 75, because: "the fraction spreads the wait over the upper half" },
  { failureCount: 2, fraction: 0, want: 100, because: "each failure doubles the step" },
  { failureCount: 4, fraction: 0, want: 400, because: "each failure doubles the step" },
  { failureCount: 5, fraction: 0, want: 500, because: "the step stops at the maximum" },
  { failureCount: 1_000_000, fraction: 0.999, want: 1_000, because: "a failure that lasts for ever does not overflow" },
];

test.each(rows)("after $failureCount failures at fraction $fraction the wait is $want ms", ({ failureCount, fraction, want, because }) => {
  expect(backoffMs(policy, failureCount, fraction), because).toBe(want);
});
