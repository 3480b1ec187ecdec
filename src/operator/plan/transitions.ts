/** Events of a pass, from what changed between two statuses: a state that lasts makes no event. */
import { conditionTypes, findCondition } from "../../resource/conditions.ts";
import type { Condition, ConditionType, EventReason } from "../../resource/conditions.ts";
import type { DurableTimerStatus } from "../../resource/durable-timer.ts";
import type { Action } from "./action.ts";

/** An event that a pass emits once its change is stored. */
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
    case "DeleteStream":
      return event("StreamDeleted", `Deleted stream ${action.stream}.`);
    case "PurgeStream":
    case "SetFinalizer":
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
  if (type === "Stalled") return [{ severity: "Warning", reason: "Stalled", message: textOf(is) }];
  if (type === "Paused") return pausedEvent(was, is);
  return is.status === "True" ? goodEvent(type, was, is) : badEvent(type, was, is);
}

function pausedEvent(was: Condition | undefined, is: Condition): readonly PlannedEvent[] {
  if (is.status === "True") return [{ severity: "Normal", reason: "Paused", message: textOf(is) }];
  return was?.status === "True" ? [{ severity: "Normal", reason: "Continued", message: "The pause was taken back." }] : [];
}

function goodEvent(type: ConditionType, was: Condition | undefined, is: Condition): readonly PlannedEvent[] {
  const reason = namedEvents[type]?.good;
  const isOpening = was?.status === "False" || (was?.status === "Unknown" && openingTypes.has(type));
  return isOpening && reason !== undefined ? [{ severity: "Normal", reason, message: textOf(is) }] : [];
}

function badEvent(type: ConditionType, was: Condition | undefined, is: Condition): readonly PlannedEvent[] {
  const isTurn = was?.status === "True";
  // Waiting for an earlier gate is no news of its own, and Ready repeats its gate unless it was True before.
  if (!isTurn && (type === "Ready" || waitingReasons.has(is.reason))) return [];
  const reason = specialReasons[is.reason] ?? (isTurn ? namedEvents[type]?.bad : undefined) ?? "ConditionChanged";
  const severity = reason === "ResumePaused" ? "Normal" : "Warning";
  return [{ severity, reason, message: `${type}: ${textOf(is)}` }];
}

function textOf({ reason, message }: Condition): string {
  return message === "" ? reason : message;
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
