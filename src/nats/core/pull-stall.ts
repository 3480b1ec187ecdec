/**
 * Notices a consumer that delivers nothing although messages wait in it and somebody asks: an open request and
 * heartbeats look healthy then, and nothing would ever come.
 *
 * Deliveries to others count as life, and so does reaching the limit of unacknowledged messages: both are no fault of
 * the request.
 */
import { pullStallMsMax } from "../../base/limits.ts";
import type { MonotonicMs } from "../../base/units.ts";
import type { ConsumerState } from "./jetstream.ts";

/** What a look at the consumer is judged with. */
export type StallLook = { readonly isAsking: boolean; readonly nowMs: MonotonicMs };

/** One source's memory of looks at its consumer. */
export class PullStall {
  #still: { readonly deliveredCount: number; readonly sinceMs: MonotonicMs } | undefined;

  /** True when nothing was delivered for `pullStallMsMax`; the next stall begins after it. */
  isStalled(state: ConsumerState, { isAsking, nowMs }: StallLook): boolean {
    const { deliveredCount } = state;
    if (deliveredCount === undefined || !isAsking || !owesSomething(state)) {
      this.#still = undefined;
      return false;
    }
    if (this.#still?.deliveredCount !== deliveredCount) this.#still = { deliveredCount, sinceMs: nowMs };
    if (nowMs - this.#still.sinceMs < pullStallMsMax) return false;
    this.#still = undefined;
    return true;
  }
}

function owesSomething({ pending, paused, ackPending, config }: ConsumerState): boolean {
  const ackPendingMax = Number(config["max_ack_pending"] ?? -1);
  return pending > 0 && !paused && (ackPendingMax <= 0 || ackPending < ackPendingMax);
}
