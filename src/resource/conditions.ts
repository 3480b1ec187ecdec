/**
 * Conditions and events: the closed lists of their types and reasons, and how a new list follows from the last one.
 *
 * 1. The order of conditions is fixed: the summary, the gates in their order, kstatus, then the independent ones.
 * 2. `lastTransitionTime` moves only when the status flips, so that an unchanged resource gives an unchanged list.
 * 3. Reconciling and Stalled are present only while they are True: their absence is what tools read as settled.
 */
import type { EpochMs } from "../base/units.ts";
import { isoFromEpochMs } from "../base/units.ts";

/** Gates in the order in which they open; Ready is True when all are. */
export const gateTypes = ["BrokerReachable", "BrokerCompatible", "TopologyReady", "WorkersReady", "ResumeOpen"] as const;

/** Present only while True. */
export const progressTypes = ["Reconciling", "Stalled"] as const;

/** Facts of their own, which close no gate. DurableOnAck appears only where it is known. */
export const independentTypes = ["AdmissionOpen", "ReplicasHealthy", "CapacityOK", "DurableOnAck", "CredentialsValid", "InSync", "Paused"] as const;

/** Every type, in the order in which a status shows them. */
export const conditionTypes = ["Ready", ...gateTypes, ...progressTypes, ...independentTypes] as const;

/** A type of the list. */
export type ConditionType = (typeof conditionTypes)[number];
/** Unknown is what nobody has looked at, or could not. */
export type ConditionStatus = "True" | "False" | "Unknown";

/** Every reason that a condition may have. */
export const conditionReasons = [
  // Nothing known yet, or no longer.
  "NotObserved",
  // Ready.
  "Serving",
  // BrokerReachable and CredentialsValid.
  "Connected",
  "BrokerUnreachable",
  "CredentialsMissing",
  "CredentialsInvalid",
  "CredentialsRefused",
  "CredentialsValid",
  "WorkersShareCredentials",
  // BrokerCompatible.
  "Compatible",
  "BrokerTooOld",
  "BrokerFeatureMissing",
  "JetStreamDisabled",
  "WrongAccount",
  "AccountUnknown",
  "ReplicasExceedCluster",
  "PermissionDenied",
  // TopologyReady.
  "Provisioned",
  "Provisioning",
  "Migrating",
  "OwnedByAnother",
  "AdoptionRefused",
  "ImmutableFieldChanged",
  "StreamIncompatible",
  "ConsumerIncompatible",
  "SubjectOverlap",
  "InsufficientStorage",
  "SizeBelowUse",
  "ReplicasUnavailable",
  "TopologyLost",
  "BrokerChanged",
  "WaitingForBroker",
  // WorkersReady.
  "WorkersAvailable",
  "WaitingForTopology",
  "WorkersProgressing",
  "WorkersFailing",
  "WorkersForeign",
  "WorkersRefused",
  "ScaledToZero",
  "ProgressDeadlineExceeded",
  // ResumeOpen.
  "Open",
  "WaitingForWorkers",
  "ResumePaused",
  // Reconciling and Stalled.
  "ProgressingWithRetry",
  "SpecInvalid",
  "Deleting",
  "TimersWaiting",
  // AdmissionOpen and CapacityOK.
  "ClosedBySpec",
  "ClosedByCapacity",
  "ClosedByIncident",
  "ConsumerPaused",
  "BelowSoftLimit",
  "AboveSoftLimit",
  // ReplicasHealthy.
  "AllCurrent",
  "SingleReplica",
  "ReplicasBehind",
  "ReplicaOffline",
  "NoLeader",
  // DurableOnAck.
  "FsyncOnAck",
  "Replicated",
  "Lazy",
  // InSync and Paused.
  "InSync",
  "Drifted",
  "DriftIgnored",
  "NotPaused",
  "PausedByAnnotation",
] as const;

/** A reason of the list. */
export type ConditionReason = (typeof conditionReasons)[number];

/** Every reason of an event. An event is emitted when something changes, never for a state that lasts. */
export const eventReasons = [
  "StreamCreated", "StreamDeleted", "StreamUpdated", "ConsumerCreated", "ConsumerUpdated", "DriftRepaired", "Adopted", "OwnedByAnother", "Restored",
  "IncidentRaised", "IncidentAcknowledged", "WorkersCreated", "WorkersUpdated", "WorkersAvailable", "WorkersFailing",
  "ResumeOpened", "ResumePaused", "AdmissionClosed", "AdmissionOpened", "BrokerLost", "BrokerRecovered",
  "ConditionChanged", "Ready", "NotReady", "Stalled", "Paused", "Continued", "SpecInvalid", "DataRetained",
] as const;

/** A reason of the list. */
export type EventReason = (typeof eventReasons)[number];

/** One condition, in the shape of metav1. */
export type Condition = {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
  /** RFC 3339 in whole seconds. */
  readonly lastTransitionTime: string;
};

/** A condition as it is wanted, without what follows from its history. The message is stable: sorted, and without times. */
export type WantedCondition = {
  readonly type: ConditionType;
  readonly status: ConditionStatus;
  readonly reason: ConditionReason;
  readonly message: string;
};

/** What a resource shows before anything was looked at: everything Unknown. */
export const unobservedConditions: readonly WantedCondition[] = conditionTypes
  .filter((type) => type !== "Reconciling" && type !== "Stalled" && type !== "DurableOnAck")
  .map((type) => ({ type, status: "Unknown", reason: "NotObserved", message: "" }));

/** The list that shows `wanted` now. What is not wanted is dropped; the order of `wanted` does not matter. */
export function nextConditions(
  previous: readonly Condition[],
  wanted: readonly WantedCondition[],
  at: { readonly generation: number; readonly nowMs: EpochMs },
): readonly Condition[] {
  return conditionTypes.flatMap((type) => {
    const want = wanted.findLast((condition) => condition.type === type);
    if (want === undefined || (isProgress(type) && want.status !== "True")) return [];
    return [nextCondition(findCondition(previous, type), want, at)];
  });
}

/** The condition of a type, if the list has it. */
export function findCondition(conditions: readonly Condition[], type: ConditionType): Condition | undefined {
  return conditions.find((condition) => condition.type === type);
}

/** True when the list has that condition with status True. */
export function isTrue(conditions: readonly Condition[], type: ConditionType): boolean {
  return findCondition(conditions, type)?.status === "True";
}

/** An instant as Kubernetes writes it: RFC 3339 in whole seconds. */
export function kubernetesTime(instant: EpochMs): string {
  return isoFromEpochMs(instant).replace(/\.\d{3}Z$/, "Z");
}

function nextCondition(had: Condition | undefined, want: WantedCondition, at: { readonly generation: number; readonly nowMs: EpochMs }): Condition {
  const lastTransitionTime = had !== undefined && had.status === want.status ? had.lastTransitionTime : kubernetesTime(at.nowMs);
  return { type: want.type, status: want.status, reason: want.reason, message: want.message, observedGeneration: at.generation, lastTransitionTime };
}

function isProgress(type: ConditionType): boolean {
  return type === "Reconciling" || type === "Stalled";
}
