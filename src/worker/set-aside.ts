/**
 * Where the wakes of corrupt timers wait: in a schedule of their own, later and later.
 *
 * A wake that cannot be worked on must not be forgotten, for it may be the only memory of an owed resume, and a person may
 * yet restore what is missing. Handed back it would stay unacknowledged, and as many of them as a consumer may have in hand
 * would keep every other timer from waking: a lost SNAPSHOTS leaves any number. So it goes where waiting costs nothing.
 */
import { present } from "../base/assert.ts";
import { setAsideMsMax, setAsideMsMin } from "../base/limits.ts";
import { later, since, type DurationMs, type EpochMs } from "../base/units.ts";
import type { TimerKey } from "../timer/identity.ts";
import type { ScheduleStore } from "./ports.ts";

/** A wake in hand, as it was armed. */
export type AsideWake = { readonly key: TimerKey; readonly generation: number; readonly fence: number; readonly dueAtMs: EpochMs };

/**
 * Arms each wake anew, as it was, for a later time. True for those that are stored and can be acknowledged; one whose timer
 * has a schedule already stays where it is. Wakes must be of different timers.
 */
export async function setAside(schedules: Pick<ScheduleStore, "arm">, wakes: readonly AsideWake[], nowMs: EpochMs): Promise<readonly boolean[]> {
  if (wakes.length === 0) return [];
  const outcomes = await schedules.arm(wakes.map((wake) => ({ ...wake, fireAtMs: later(nowMs, asideMs(wake.dueAtMs, nowMs)) })));
  return wakes.map((_, index) => present(outcomes[index], "one outcome per wake").kind === "stored");
}

/** As long again as it has been due: what was just broken is looked at soon, what is never repaired costs little. */
export function asideMs(dueAtMs: EpochMs, nowMs: EpochMs): DurationMs {
  return Math.min(setAsideMsMax, Math.max(setAsideMsMin, since(nowMs, dueAtMs))) as DurationMs;
}
