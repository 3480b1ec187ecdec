/** What each judge of a plan hands over: conditions, actions, and why a person or patience is needed. */
import type { DurationMs } from "../../base/units.ts";
import { findCondition } from "../../resource/conditions.ts";
import type { ConditionReason, ConditionStatus, ConditionType, WantedCondition } from "../../resource/conditions.ts";
import type { DurableTimerStatus } from "../../resource/durable-timer.ts";
import type { Action } from "./action.ts";

/** Why something does not go on by itself, or is still going on. */
export type Cause = { readonly reason: ConditionReason; readonly message: string };

/** The common part of every verdict. */
export type Verdict = {
  readonly wanted: readonly WantedCondition[];
  readonly actions: readonly Action[];
  /** Only a person can change it. */
  readonly stall?: Cause;
  /** Under way although every gate may be open, such as a rollout. */
  readonly progress?: Cause;
  /** Look again after this time even if nothing tells of a change. */
  readonly requeueAfterMs?: DurationMs;
};

/** A condition in one line. */
export function want(type: ConditionType, status: ConditionStatus, cause: Cause): WantedCondition {
  return { type, status, ...cause };
}

/** A cause in one line. */
export function cause(reason: ConditionReason, message = ""): Cause {
  return { reason, message };
}

/** What stands in the way, by the first verdict that says so; and the soonest look that any of them wants. */
export function firstCauses(verdicts: readonly Pick<Verdict, "stall" | "progress" | "requeueAfterMs">[]): Pick<Verdict, "stall" | "progress" | "requeueAfterMs"> {
  const stall = verdicts.find((verdict) => verdict.stall !== undefined)?.stall;
  const progress = verdicts.find((verdict) => verdict.progress !== undefined)?.progress;
  const requeues = verdicts.flatMap(({ requeueAfterMs }) => (requeueAfterMs === undefined ? [] : [requeueAfterMs]));
  return {
    ...(stall === undefined ? {} : { stall }),
    ...(progress === undefined ? {} : { progress }),
    ...(requeues.length === 0 ? {} : { requeueAfterMs: Math.min(...requeues) as DurationMs }),
  };
}

/** The conditions of these types as the last status has them; Unknown where it has none. */
export function carriedOver(status: DurableTimerStatus | undefined, types: readonly ConditionType[]): readonly WantedCondition[] {
  const conditions = status?.conditions ?? [];
  return types.map((type) => {
    const had = findCondition(conditions, type);
    if (had === undefined) return want(type, "Unknown", cause("NotObserved"));
    return { type, status: had.status, reason: had.reason as ConditionReason, message: had.message };
  });
}

/** True when the last status has that condition with status True. */
export function wasTrue(status: DurableTimerStatus | undefined, type: ConditionType): boolean {
  return findCondition(status?.conditions ?? [], type)?.status === "True";
}

/** Status of a condition among wanted ones. */
export function statusOf(wanted: readonly WantedCondition[], type: ConditionType): ConditionStatus {
  return wanted.findLast((condition) => condition.type === type)?.status ?? "Unknown";
}
