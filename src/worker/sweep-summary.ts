/**
 * What a sweep leaves behind for the next one and for the operator: how many timers there are, and which life of
 * SCHEDULES it looked at. It is written once per sweep, beside the lease, as compact JSON.
 *
 * U1 A summary that cannot be read is no summary, which means a break: too many resumes are published again, not too few.
 * U2 The times and the identity are those of the sweep's beginning, so that what happens during a sweep counts as after it.
 */
import { sweepBreakMarginMs } from "../base/limits.ts";
import type { DurationMs, EpochMs } from "../base/units.ts";
import type { TimerCounts } from "./metrics.ts";
import type { StreamIdentity } from "./ports.ts";
import type { ResumedAgainMark } from "./sweep-decide.ts";

export type SweepSummary = TimerCounts & {
  /** On the broker's clock. */
  readonly beganAtMs: EpochMs;
  /** How long the walk took; the next one looks that much further ahead. */
  readonly durationMs: DurationMs;
  /** Highest revision that the walk met. */
  readonly checkedRevision: number;
  readonly schedules: StreamIdentity;
  /** Resumes of records elapsed from then on could not all be published again after a break. */
  readonly owedSinceMs?: EpochMs;
  /** Up to where what was resumed again is known to have been published. */
  readonly resumedAgain?: ResumedAgainMark;
};

/** The text of a summary as it is stored. */
export function encodeSummary(summary: SweepSummary): string {
  return JSON.stringify({ v: 1, ...summary });
}

/** Reads a summary; undefined when it is none that this version understands. Never throws. */
export function decodeSummary(text: string): SweepSummary | undefined {
  const value = parseObject(text);
  if (value?.["v"] !== 1) return undefined;
  const schedules = readIdentity(value["schedules"]);
  const numbers = numberFields.map((name) => value[name]);
  if (schedules === undefined || !numbers.every(isCount)) return undefined;
  const { owedSinceMs, unanswered } = value;
  const resumedAgain = readMark(value["resumedAgain"]);
  const read = Object.fromEntries(numberFields.map((name, index) => [name, numbers[index]])) as unknown as Omit<SweepSummary, "schedules" | "owedSinceMs" | "unanswered">;
  return {
    // Workers of the release before do not count these.
    ...read, unanswered: isCount(unanswered) ? unanswered : 0, schedules,
    ...(isCount(owedSinceMs) ? { owedSinceMs: owedSinceMs as EpochMs } : {}), ...(resumedAgain === undefined ? {} : { resumedAgain }),
  };
}

/** True when what was known of the stream's content still holds. */
export function isSameLife(before: StreamIdentity, now: StreamIdentity): boolean {
  return before.incarnation === now.incarnation && before.createdAt === now.createdAt
    && before.serverId === now.serverId && now.lastSequence >= before.lastSequence;
}

/** From when on elapsed records may have lost their wake since the last sweep; undefined when none can have. */
export function owedSince(previous: SweepSummary | undefined, now: StreamIdentity): EpochMs | undefined {
  if (previous === undefined) return 0 as EpochMs;
  const before = previous.schedules;
  if (isSameLife(before, now)) return previous.owedSinceMs;
  // Another stream holds none of the wakes of this one, however long ago they were refused a place in RESUMES. The same
  // stream has lost its tail at most, and the margin covers that.
  if (before.incarnation !== now.incarnation || before.createdAt !== now.createdAt) return 0 as EpochMs;
  const sinceMs = Math.max(0, previous.beganAtMs - sweepBreakMarginMs);
  return Math.min(sinceMs, previous.owedSinceMs ?? sinceMs) as EpochMs;
}

const numberFields = [
  "beganAtMs", "durationMs", "checkedRevision", "waiting", "elapsed", "overdue", "unreadable", "oldestOverdueMs", "oldestElapsedMs",
] as const;

function readIdentity(value: unknown): StreamIdentity | undefined {
  if (!isObject(value)) return undefined;
  const { incarnation, createdAt, lastSequence, serverId } = value as Record<keyof StreamIdentity, unknown>;
  if (typeof incarnation !== "string" || typeof createdAt !== "string" || !isCount(lastSequence)) return undefined;
  return { incarnation, createdAt, lastSequence, ...(typeof serverId === "string" ? { serverId } : {}) };
}

function readMark(value: unknown): ResumedAgainMark | undefined {
  if (!isObject(value)) return undefined;
  const { revision, atMs } = value as Record<keyof ResumedAgainMark, unknown>;
  return isCount(revision) && isCount(atMs) ? { revision, atMs: atMs as EpochMs } : undefined;
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
