/** The real clock of this machine. */
import type { Clock } from "../base/clock.ts";
import type { DurationMs, EpochMs, MonotonicMs } from "../base/units.ts";

/** Reads Node's clocks and sleeps on its timers. */
export const systemClock: Clock = {
  nowMs: () => Date.now() as EpochMs,
  monotonicMs: () => performance.now() as MonotonicMs,
  sleep,
};

async function sleep(duration: DurationMs, signal?: AbortSignal): Promise<void> {
  const untilMs = performance.now() + duration;
  while (signal?.aborted !== true) {
    const remainingMs = untilMs - performance.now();
    if (remainingMs <= 0) return;
    // Node's timers may fire up to a millisecond early; the loop makes a sleep never shorter than it was asked to be.
    await sleepOnce(Math.min(Math.ceil(remainingMs), timerMsMax), signal);
  }
}

/** A timer set for longer than 2^31 - 1 ms fires at once instead. */
const timerMsMax = 2 ** 31 - 1;

function sleepOnce(durationMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, durationMs);
    signal?.addEventListener("abort", finish, { once: true });
  });
}
