import type { DurationMs, EpochMs, MonotonicMs } from "./units.ts";

/** Time as a dependency. Rooms that need time take a Clock; pure rooms take instants as arguments. */
export interface Clock {
  /** The wall clock of this machine. Never compared with a due time: only the broker's clock judges that (I1). */
  nowMs(): EpochMs;
  /** A clock that never goes back and is not set by anyone. */
  monotonicMs(): MonotonicMs;
  /** Resolves after `duration`, or at once when `signal` aborts. Never rejects. Durations beyond 24 days are split. */
  sleep(duration: DurationMs, signal?: AbortSignal): Promise<void>;
}
