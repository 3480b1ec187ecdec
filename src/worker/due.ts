/** When a held wake may go on, judged by the broker's clock alone (I1). */
import { clockDriftPpm } from "../base/limits.ts";
import { since, type EpochMs } from "../base/units.ts";

/**
 * Milliseconds of this machine's monotonic time after which the broker's clock has surely reached `dueAtMs`, given a
 * lower bound of it now. 0 when it has; a short retry interval when nothing is known of the broker's clock.
 */
export function waitForDue(dueAtMs: EpochMs, brokerNowMs: EpochMs | undefined): number {
  if (brokerNowMs === undefined) return unknownRetryMs;
  const remainingMs = since(dueAtMs, brokerNowMs);
  if (remainingMs <= 0) return 0;
  // The bound grows a little slower than real time, so waiting must be a little longer.
  return Math.ceil(remainingMs / (1 - clockDriftPpm / 1_000_000));
}

const unknownRetryMs = 50;
