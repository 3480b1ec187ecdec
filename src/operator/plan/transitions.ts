/** Events of a pass, from what changed between two statuses: a state that lasts makes no event. */
import { conditionTypes, findCondition } from "../../resource/conditions.ts";
import type { Condition, ConditionType, EventReason } from "../../resource/conditions.ts";
import type { DurableTimerStatus } from "../../resource/durable-timer.ts";
import type { Action } from "./action.ts";

export type PlannedEvent = { readonly severity: "Normal" | "Warning"; readonly reason: EventReason; readonly message: string };

/** Events for what turned between `before` and `after`. A first look makes events for bad news and openings only. */
export function transitionEvents(before: DurableTimerStatus | undefined, after: DurableTimerStatus): readonly PlannedEvent[] {
  const turned = conditionTypes.flatMap((type) => {
    const was = findCondition(before?.conditions ?? [], type);
    const is = findCondition(after.conditions ?? [], type);
    return is === undefined || (was?.status === is.status && was.reason === is.reason) ? [] : conditionEvent(type, was, is);
  });
  return [...turned, ...incidentEvents(before, after)];
}

/** A stream of the same life with another creation time came back from a native backup; the workers sweep by themselves. */
export function restoredEvents(names: readonly string[]): readonly PlannedEvent[] {
  return names.map((name) => ({ severity: "Normal", reason: "Restored", message: `Stream ${name} was restored from a backup.` }));
}

/** The event of an action that was done; undefined for what is no news. */
export function actionEvent(action: Action): PlannedEvent | undefined {
  const event = (reason: EventReason, message: string): PlannedEvent => ({ severity: "Normal", reason, message });
  switch (action.kind) {
    case "CreateStream":
      return event("StreamCreated", `Created stream ${nameIn(action.config, "name")}.`);
    case "UpdateStream":
      return event(action.isRepair ? "DriftRepaired" : "StreamUpdated", `Updated ${action.changes.join(", ")} of stream ${nameIn(action.config, "name")}.`);
    case "AdoptStream":
      return event("Adopted", `Took stream ${nameIn(action.config, "name")} over from ${action.from}.`);
    case "CreateConsumer":
      return event("ConsumerCreated", `Created consumer ${nameIn(action.config, "durable_name")}.`);
    case "UpdateConsumer":
      return event(action.isRepair ? "DriftRepaired" : "ConsumerUpdated", `Updated ${action.changes.join(", ")} of consumer ${nameIn(action.config, "durable_name")}.`);
    case "ApplyWorkers":
      return action.changes.length === 0 ? event("WorkersCreated", "Created the workers.") : event("WorkersUpdated", `Updated ${action.changes.join(", ")} of the workers.`);
    case "WriteOwnerKey":
    case "PauseConsumer":
    case "UnpauseConsumer":
      return undefined;
  }
}

function nameIn(config: Readonly<Record<string, unknown>>, field: string): string {
  return String(config[field]);
}

function conditionEvent(type: ConditionType, was: Condition | undefined, is: Condition): readonly PlannedEvent[] {
  // Reconciling repeats what the gates say, and InSync what the repairs say.
  if (is.status === "Unknown" || type === "Reconciling" || type === "InSync") return [];
  const text = is.message === "" ? is.reason : is.message;
  const named = namedEvents[type];
  if (type === "Stalled" || type === "Paused") return is.status === "True" ? [event(named?.bad, text)] : continued(was);
  if (is.status === "True") {
    const isOpening = was?.status === "False" || (was?.status === "Unknown" && openingTypes.has(type));
    return isOpening && named?.good !== undefined ? [{ severity: "Normal", reason: named.good, message: text }] : [];
  }
  // Waiting for an earlier gate is no news of its own.
  const isWaiting = was?.status !== "True" && waitingReasons.has(is.reason);
  return isWaiting ? [] : [event(specialReasons[is.reason] ?? (was?.status === "True" ? named?.bad : undefined), `${type}: ${text}`)];
}

function event(reason: EventReason | undefined, message: string): PlannedEvent {
  return { severity: reason === "Paused" || reason === "ResumePaused" ? "Normal" : "Warning", reason: reason ?? "ConditionChanged", message };
}

function continued(was: Condition | undefined): readonly PlannedEvent[] {
  return was?.type === "Paused" && was.status === "True" ? [{ severity: "Normal", reason: "Continued", message: "The pause was taken back." }] : [];
}

function incidentEvents(before: DurableTimerStatus | undefined, after: DurableTimerStatus): readonly PlannedEvent[] {
  const had = before?.incidents ?? [];
  const has = after.incidents ?? [];
  const raised = has.filter(({ id }) => !had.some((one) => one.id === id));
  const settled = had.filter(({ id }) => !has.some((one) => one.id === id));
  return [
    ...raised.map(({ message }): PlannedEvent => ({ severity: "Warning", reason: "IncidentRaised", message })),
    ...settled.map(({ id }): PlannedEvent => ({ severity: "Normal", reason: "IncidentAcknowledged", message: `Incident ${id} is settled.` })),
  ];
}

/** Reasons of their own for conditions that people watch. */
const namedEvents: Readonly<Partial<Record<ConditionType, { readonly good?: EventReason; readonly bad?: EventReason }>>> = {
  Ready: { good: "Ready", bad: "NotReady" },
  BrokerReachable: { good: "BrokerRecovered", bad: "BrokerLost" },
  WorkersReady: { good: "WorkersAvailable" },
  ResumeOpen: { good: "ResumeOpened" },
  AdmissionOpen: { good: "AdmissionOpened", bad: "AdmissionClosed" },
  Stalled: { bad: "Stalled" },
  Paused: { bad: "Paused" },
};

const specialReasons: Readonly<Record<string, EventReason>> = {
  OwnedByAnother: "OwnedByAnother",
  WorkersFailing: "WorkersFailing",
  ResumePaused: "ResumePaused",
  ClosedBySpec: "AdmissionClosed",
  ClosedByCapacity: "AdmissionClosed",
  SpecInvalid: "SpecInvalid",
};

const openingTypes: ReadonlySet<ConditionType> = new Set(["Ready", "WorkersReady", "ResumeOpen"]);

const waitingReasons: ReadonlySet<string> = new Set([
  "Provisioning", "WaitingForTopology", "WaitingForBroker", "WaitingForWorkers", "WorkersProgressing", "NotObserved", "ProgressingWithRetry", "ScaledToZero",
]);
