// A clock that a test steps. Time stands still until `advance`; then sleepers wake in the order of their deadlines, and everything
// that follows from one waking has settled before the next one wakes.

import type { Clock } from "../../src/base/clock.ts";
import type { DurationMs, EpochMs, MonotonicMs } from "../../src/base/units.ts";

type Sleeper = { readonly dueAtMs: number; readonly wake: () => void };

export class SteppedClock implements Clock {
  #monotonicMs = 0;
  #wallOffsetMs: number;
  readonly #sleepers = new Set<Sleeper>();

  constructor(startAtMs: number = Date.UTC(2030, 0, 1)) {
    this.#wallOffsetMs = startAtMs;
  }

  nowMs(): EpochMs {
    return (this.#wallOffsetMs + Math.floor(this.#monotonicMs)) as EpochMs;
  }

  monotonicMs(): MonotonicMs {
    return this.#monotonicMs as MonotonicMs;
  }

  sleep(duration: DurationMs, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper: Sleeper = { dueAtMs: this.#monotonicMs + Math.max(0, duration), wake: () => finish() };
      const finish = (): void => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener("abort", finish);
        resolve();
      };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", finish, { once: true });
    });
  }

  /** Sleeps that have not ended; zero at the end of a test means that nothing was left behind. */
  get sleeperCount(): number {
    return this.#sleepers.size;
  }

  /** Time until the next sleeper wakes, or undefined when nobody sleeps. */
  get nextWakeMs(): number | undefined {
    const first = this.#firstSleeper();
    return first === undefined ? undefined : first.dueAtMs - this.#monotonicMs;
  }

  /** Moves time on by `durationMs`, waking everyone who is due on the way, and settles. */
  async advance(durationMs: number): Promise<void> {
    const target = this.#monotonicMs + durationMs;
    await settle();
    for (let sleeper = this.#firstSleeper(); sleeper !== undefined && sleeper.dueAtMs <= target; sleeper = this.#firstSleeper()) {
      this.#monotonicMs = Math.max(this.#monotonicMs, sleeper.dueAtMs);
      sleeper.wake();
      await settle();
    }
    this.#monotonicMs = target;
    await settle();
  }

  /** Sets the wall clock alone, as an administrator or NTP would. */
  moveWallClock(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  #firstSleeper(): Sleeper | undefined {
    let first: Sleeper | undefined;
    for (const sleeper of this.#sleepers) {
      if (first === undefined || sleeper.dueAtMs < first.dueAtMs) first = sleeper;
    }
    return first;
  }
}

/** Resolves when every promise that can settle without time or IO has settled. */
export async function settle(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
