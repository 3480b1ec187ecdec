/** How long to wait after a number of failures in a row: doubling from `minMs` up to `maxMs`. */
import { assert } from "../base/assert.ts";
import type { DurationMs } from "../base/units.ts";

/** The first and the longest step. */
export type BackoffPolicy = {
  readonly minMs: DurationMs;
  readonly maxMs: DurationMs;
};

/**
 * The wait after `failureCount` failures (at least one). `fraction` in [0, 1) spreads it over the upper half of the
 * exponential step, so that many clients which failed together do not return together, and none returns at once.
 */
export function backoffMs(policy: BackoffPolicy, failureCount: number, fraction: number): DurationMs {
  assert(failureCount >= 1, "a failure to back off from");
  assert(policy.minMs > 0 && policy.minMs <= policy.maxMs, "an ordered back-off policy");
  const doublings = Math.min(failureCount - 1, doublingsMax);
  const stepMs = Math.min(policy.maxMs, policy.minMs * 2 ** doublings);
  return Math.round(stepMs / 2 + (stepMs / 2) * fraction) as DurationMs;
}

/** Beyond this, doubling would leave the range of exact numbers. */
const doublingsMax = 40;
