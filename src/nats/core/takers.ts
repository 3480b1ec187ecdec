/**
 * Callers who wait for messages, each until an instant of its own. One timer serves them all: a caller that is woken by
 * every message and comes back at once would otherwise spend more on its timers than on the messages.
 */
import type { Clock } from "../../base/clock.ts";
import type { DurationMs } from "../../base/units.ts";
import { inBackground } from "./background.ts";

type Waiter = { readonly untilMs: number; readonly leave: () => void };

/** First come, first woken. */
export class Takers {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiter>();
  #timer: { readonly atMs: number; readonly cancel: AbortController } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when woken or dismissed, at `untilMs` of the monotonic clock, or when `signal` aborts. */
  wait(untilMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const leave = (): void => {
        if (!this.#waiting.delete(waiter)) return;
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const waiter: Waiter = { untilMs, leave };
      this.#waiting.add(waiter);
      signal.addEventListener("abort", leave, { once: true });
      this.#setTimer(untilMs);
    });
  }

  /** Wakes the one that waits longest, if any. */
  wake(): void {
    for (const { leave } of this.#waiting) return leave();
  }

  /** Wakes all, and stops the timer. */
  dismiss(): void {
    for (const { leave } of [...this.#waiting]) leave();
    this.#timer?.cancel.abort(noReason);
    this.#timer = undefined;
  }

  #setTimer(atMs: number): void {
    if (this.#timer !== undefined && this.#timer.atMs <= atMs) return;
    this.#timer?.cancel.abort(noReason);
    const timer = { atMs, cancel: new AbortController() };
    this.#timer = timer;
    inBackground(this.#expire(timer));
  }

  async #expire(timer: { readonly atMs: number; readonly cancel: AbortController }): Promise<void> {
    await this.#clock.sleep(Math.max(0, timer.atMs - this.#clock.monotonicMs()) as DurationMs, timer.cancel.signal);
    if (timer.cancel.signal.aborted) return;
    this.#timer = undefined;
    const nowMs = this.#clock.monotonicMs();
    for (const waiter of [...this.#waiting]) if (waiter.untilMs <= nowMs) waiter.leave();
    if (this.#waiting.size > 0) this.#setTimer(Math.min(...[...this.#waiting].map(({ untilMs }) => untilMs)));
  }
}

/** Without a reason, an abort makes an exception with a stack that nobody looks at. */
const noReason = "cancelled";
