/**
 * From the verdicts to the conditions that are shown: Ready, and what tools wait for (kstatus).
 *
 * 1. Ready is the first gate that is not open, or Serving.
 * 2. Reconciling and Stalled are never both there: a person is needed, or patience.
 * 3. A resource that is as its owner wants it (scaled to zero, paused resumes) needs neither.
 */
import { gateTypes, unobservedConditions } from "../../resource/conditions.ts";
import type { ConditionReason, WantedCondition } from "../../resource/conditions.ts";
import { cause, want } from "./verdict.ts";
import type { Cause } from "./verdict.ts";

/** Everything that the verdicts said. */
export type Conclusion = {
  readonly wanted: readonly WantedCondition[];
  readonly stall?: Cause | undefined;
  readonly progress?: Cause | undefined;
  /** Nothing is done about what is found. */
  readonly isPaused: boolean;
};

/** Every condition, in no order. What no verdict spoke of is Unknown; a verdict that speaks of Ready has the last word. */
export function concludedConditions({ wanted, stall, progress, isPaused }: Conclusion): readonly WantedCondition[] {
  const all = [...unobservedConditions, ...wanted];
  const ready = wanted.find(({ type }) => type === "Ready") ?? readyCondition(all);
  const waiting = progress ?? waitingCause(ready);
  const paused = isPaused
    ? want("Paused", "True", cause("PausedByAnnotation", "The operator looks and reports, and changes nothing."))
    : want("Paused", "False", cause("NotPaused"));
  const shown = [...all, ready, paused];
  if (stall !== undefined) return [...shown, want("Stalled", "True", stall)];
  if (waiting !== undefined && !isPaused) return [...shown, want("Reconciling", "True", waiting)];
  return shown;
}

function readyCondition(all: readonly WantedCondition[]): WantedCondition {
  const gates = gateTypes.map((type) => all.findLast((condition) => condition.type === type));
  const closed = gates.find((gate) => gate?.status !== "True");
  if (closed === undefined) return want("Ready", "True", cause("Serving"));
  // Without its broker nothing is known of the timers; that is not the same as knowing that they do not run.
  const isLost = closed.type === "BrokerReachable" && gates.slice(1).every((gate) => gate?.status === "Unknown");
  const status = isLost || closed.status === "Unknown" ? "Unknown" : "False";
  return want("Ready", status, { reason: closed.reason, message: closed.message });
}

function waitingCause({ status, reason, message }: WantedCondition): Cause | undefined {
  return status === "True" || settledReasons.has(reason) ? undefined : { reason, message };
}

/** Not ready, and exactly what the spec or a person asked for. */
const settledReasons: ReadonlySet<ConditionReason> = new Set(["ScaledToZero", "ResumePaused"]);
