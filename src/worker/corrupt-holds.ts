/**
 * How many commands of corrupt timers a loop keeps waiting for a repair.
 *
 * A held command stays unacknowledged, and a consumer has only so many of those: beyond a few, commands of corrupt timers
 * would keep those of all others from being delivered. Their place cannot be elsewhere, as that of a wake can: the time at
 * which a command was stored counts. So the rest is refused, and its sender told.
 */
import { corruptHeldCountMax, corruptHoldMs } from "../base/limits.ts";

/** Counts what is held; each hold ends by itself when the message comes again. */
export class CorruptHolds {
  readonly #untilMs: number[] = [];

  /** True when one more may be held from now on. */
  tryHold(nowMs: number): boolean {
    while ((this.#untilMs[0] ?? Infinity) <= nowMs) this.#untilMs.shift();
    if (this.#untilMs.length >= corruptHeldCountMax) return false;
    this.#untilMs.push(nowMs + corruptHoldMs);
    return true;
  }
}
