/**
 * What the sweep does about one record, from the record, its schedule and its wake.
 *
 * It repairs only what nobody else will: a writer between its writes, a wake that waits for redelivery and a schedule
 * that is about to fire are all left alone. Whatever it decides is done only if the record has not changed since.
 */
import { unreachable } from "../base/assert.ts";
import { stateMarkerTtlMs } from "../base/limits.ts";
import { later, type DurationMs, type EpochMs } from "../base/units.ts";
import { decideTimeout, isUnanswered, type FeedbackPolicy, type TimeoutDecision } from "../timer/decide-timeout.ts";
import { inputAge, type ElapsedRecord, type TimerRecord, type WaitingRecord } from "../timer/record.ts";
import type { Armed } from "./ports.ts";

/**
 * Up to where earlier sweeps have seen through what they resumed again: records up to this revision, and those that the
 * last sweep wrote itself, which carry the time of its beginning. Any other record that says so may still owe its resume.
 */
export type ResumedAgainMark = { readonly revision: number; readonly atMs: EpochMs };

/** What one look of the sweep is measured against. */
export type SweepView = {
  /** When the sweep began, on the broker's clock: what it writes into records as the time. */
  readonly beganAtMs: EpochMs;
  /** A lower bound of the broker's clock. */
  readonly nowMs: EpochMs;
  readonly graceMs: DurationMs;
  /** Timers due before this are looked at; the next sweeps come in time for the others. */
  readonly horizonMs: EpochMs;
  /** After a break: resumes of records elapsed from then on may have lost the wake that owed them. */
  readonly owedSinceMs?: EpochMs;
  /** An earlier sweep has looked into the archive for the records up to this revision. */
  readonly checkedRevision: number;
  /** What becomes of elapsed records without feedback. */
  readonly feedback: FeedbackPolicy;
  readonly resumedAgain?: ResumedAgainMark;
};

/** What has to be read before a record can be judged. */
export type SweepNeeds = { readonly armed: boolean; readonly archive: boolean };

export type Evidence = {
  /** As looked at: schedule first, then wake; absent when neither was needed. */
  readonly armed?: { readonly schedule?: Armed; readonly wake?: Armed };
  readonly isArchived: boolean;
};

export type SweepDecision =
  | { readonly kind: "leave" }
  /** No schedule: arm it, expecting none. */
  | { readonly kind: "arm" }
  /** A schedule of an older transition stands where this record's should be. */
  | { readonly kind: "rearm" }
  /** Present and overdue: look again later whether the broker has forgotten it. */
  | { readonly kind: "suspect"; readonly sequence: number }
  /** Elapsed, and what owed its resume is gone: publish the resume again, under the same fence. */
  | { readonly kind: "resume" }
  /** Elapsed, and no feedback came in time: what the policy asks for. */
  | Exclude<TimeoutDecision, { kind: "leave" }>
  /** Terminal: archive and remove. */
  | { readonly kind: "finish" }
  /** A live record of a timer that has already ended (I7). */
  | { readonly kind: "remove" };

/** What to read for this record; nothing for most. */
export function needsOf(record: TimerRecord, revision: number, view: SweepView): SweepNeeds {
  switch (record.phase) {
    case "waiting":
      return { armed: record.dueAtMs < view.horizonMs, archive: revision > view.checkedRevision && mayBeRevived(record, view.nowMs) };
    case "elapsed":
      return { armed: isOwed(record, revision, view) || isTimeUp(record, view), archive: false };
    case "terminal":
      return { armed: false, archive: false };
    default:
      return unreachable(record);
  }
}

/** The decision about one record, from evidence that covers its needs. */
export function decideSweep({ record, revision }: { readonly record: TimerRecord; readonly revision: number }, evidence: Evidence, view: SweepView): SweepDecision {
  switch (record.phase) {
    case "waiting":
      if (evidence.isArchived) return { kind: "remove" };
      return evidence.armed === undefined ? { kind: "leave" } : decideWaiting(record, evidence.armed, view);
    case "elapsed":
      return evidence.armed === undefined ? { kind: "leave" } : decideElapsed({ record, revision }, evidence.armed, view);
    case "terminal":
      // Its writer is given the grace to finish by itself.
      return later(record.endedAtMs, view.graceMs) <= view.nowMs ? { kind: "finish" } : { kind: "leave" };
    default:
      return unreachable(record);
  }
}

/** True when feedback has been awaited for longer than the policy has it, whatever the policy is. */
export function isLeftUnanswered(record: ElapsedRecord, { feedback, beganAtMs }: SweepView): boolean {
  return isUnanswered(record, feedback, beganAtMs);
}

/** True when a waiting record should have been woken by now. */
export function isOverdue(record: Pick<WaitingRecord, "dueAtMs">, view: Pick<SweepView, "nowMs" | "graceMs">): boolean {
  return later(record.dueAtMs, view.graceMs) < view.nowMs;
}

/**
 * A start decided long ago may create its record anew after the timer has ended, once the marker of the first record
 * has expired. So the start is older than a marker lives, and no retry has happened yet.
 */
function mayBeRevived(record: WaitingRecord, nowMs: EpochMs): boolean {
  return record.generation === 0 && later(record.startedAtMs, stateMarkerTtlMs) <= nowMs;
}

/** A break may have lost the wake that owed the resume, or a sweep may have died between noting and publishing it again. */
function isOwed(record: ElapsedRecord, revision: number, { owedSinceMs, resumedAgain }: SweepView): boolean {
  if (owedSinceMs !== undefined && record.elapsedAtMs >= owedSinceMs) return true;
  if (record.resumedAgainAtMs === undefined) return false;
  return resumedAgain === undefined || (revision > resumedAgain.revision && record.resumedAgainAtMs !== resumedAgain.atMs);
}

function isTimeUp(record: ElapsedRecord, { feedback, beganAtMs }: SweepView): boolean {
  return decideTimeout(record, feedback, beganAtMs).kind !== "leave";
}

type Seen = NonNullable<Evidence["armed"]>;

function decideWaiting(record: WaitingRecord, { schedule, wake }: Seen, view: SweepView): SweepDecision {
  // A wake of this transition will be delivered until it is acknowledged; a newer one means that the record has moved on.
  if (wake !== undefined && inputAge(wake, record) !== "older") return { kind: "leave" };
  if (schedule === undefined) return { kind: "arm" };
  switch (inputAge(schedule, record)) {
    case "older":
      return { kind: "rearm" };
    case "equal":
      return isPassedOver(schedule, view) ? { kind: "suspect", sequence: schedule.sequence } : { kind: "leave" };
    case "newer":
      return { kind: "leave" };
    default:
      return unreachable(inputAge(schedule, record) as never);
  }
}

/**
 * The unacknowledged wake is the memory of the owed resume; what is left of an older generation is none. While that wake
 * is there the resume may not be stored yet, and nobody can have answered it: time does not run out. A schedule is no
 * such memory: a broker that lost its tail has it back, but may pass it over for ever. A resume too many is harmless. But
 * while it may still fire, as that of a timer that was set aside, time does not run out either.
 */
function decideElapsed({ record, revision }: { readonly record: ElapsedRecord; readonly revision: number }, { schedule, wake }: Seen, view: SweepView): SweepDecision {
  const armedAt = { generation: record.generation, fence: record.armedFence };
  const wakeAge = wake === undefined ? "older" : inputAge(wake, armedAt);
  const scheduleAge = schedule === undefined ? "older" : inputAge(schedule, armedAt);
  if (wakeAge !== "older" || scheduleAge === "newer") return { kind: "leave" };
  // What is owed comes first: a timer whose resume may be lost has not been left unanswered.
  if (isOwed(record, revision, view)) return { kind: "resume" };
  if (schedule !== undefined && scheduleAge === "equal" && !isPassedOver(schedule, view)) return { kind: "leave" };
  return decideTimeout(record, view.feedback, view.beganAtMs);
}

/** True when a schedule should have fired by now. */
function isPassedOver({ fireAtMs, dueAtMs }: Armed, { graceMs, nowMs }: SweepView): boolean {
  return later(fireAtMs ?? dueAtMs, graceMs) < nowMs;
}

/** An overdue schedule, as it was at the first look. */
export type Suspect = { readonly sequence: number };

/**
 * Those of the suspects that the broker has forgotten, from a second look some seconds after the first. The broker
 * fires what is due in the order of its sequences. So a schedule that still stands while a later one has gone was
 * passed over; and if none of them has gone, nothing fires at all. Everything else is a burst that is being worked off.
 */
export function stuckOf<T extends Suspect>(suspects: readonly T[], stillStands: (suspect: T) => boolean): readonly T[] {
  const standing = suspects.filter(stillStands);
  if (standing.length === suspects.length) return standing;
  const lastGone = Math.max(...suspects.filter((suspect) => !stillStands(suspect)).map(({ sequence }) => sequence));
  return standing.filter(({ sequence }) => sequence < lastGone);
}
