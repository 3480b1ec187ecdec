/**
 * Units as branded numbers, so that a duration cannot be passed where an instant is wanted.
 *
 * Instants are whole milliseconds since the Unix epoch, durations are milliseconds. JetStream stamps messages in
 * nanoseconds; `epochMsFromNanos` is the one place where they become milliseconds.
 */

declare const unit: unique symbol;

/** An instant: whole milliseconds since 1970-01-01T00:00:00Z. */
export type EpochMs = number & { readonly [unit]: "EpochMs" };

/** A length of time in milliseconds. */
export type DurationMs = number & { readonly [unit]: "DurationMs" };

/** A reading of a monotonic clock in milliseconds; only differences mean anything. */
export type MonotonicMs = number & { readonly [unit]: "MonotonicMs" };

const nanosPerMs = 1_000_000n;

/** Rounds up: a timer due at a fraction of a millisecond is due at the next whole one, never before its time (I1). */
export function epochMsFromNanos(nanos: bigint): EpochMs {
  return Number((nanos + nanosPerMs - 1n) / nanosPerMs) as EpochMs;
}

/** The instant `duration` after `instant`. */
export function later(instant: EpochMs, duration: DurationMs): EpochMs {
  return (instant + duration) as EpochMs;
}

/** How long after `earlier` the instant `instant` is; negative when it lies before. */
export function since(instant: EpochMs, earlier: EpochMs): DurationMs {
  return (instant - earlier) as DurationMs;
}

/** RFC 3339 in UTC with milliseconds, the only spelling of instants on the wire and in records. */
export function isoFromEpochMs(instant: EpochMs): string {
  return new Date(instant).toISOString();
}
