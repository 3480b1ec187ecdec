/**
 * From a failure's code to the condition that shows it, and to what a person can do about it. One table, so that the
 * same failure reads the same wherever it is met.
 */
import type { FailureCode } from "../../base/failure.ts";
import type { ConditionReason, ConditionType } from "../../resource/conditions.ts";
import type { FailureFact } from "./observed.ts";

/** Where a failure is shown. `remedy` is a sentence for a person; empty when waiting is the remedy. */
export type Shown = { readonly type: ConditionType; readonly reason: ConditionReason; readonly remedy: string };

/** Where a failure is shown; `fallback` is for codes which say nothing of their own about a gate. */
export function shownFailure(code: FailureCode, fallback: ConditionType): Shown {
  return byCode[code] ?? { type: fallback, reason: "ProgressingWithRetry", remedy: "" };
}

/** True when trying again soon, with nothing changed, may succeed. */
export function isPassing(failure: FailureFact): boolean {
  return failure.kind === "transient" || failure.kind === "conflict";
}

/** The failure's text with its remedy. */
export function failureMessage(failure: FailureFact, remedy: string): string {
  const text = failure.message.replace(/\.$/, "");
  return remedy === "" ? `${text}.` : `${text}. ${remedy}`;
}

const unreachable: Shown = {
  type: "BrokerReachable",
  reason: "BrokerUnreachable",
  remedy: "Check spec.nats.servers, the network policy and that the servers run.",
};

const byCode: Readonly<Partial<Record<FailureCode, Shown>>> = {
  BROKER_UNREACHABLE: unreachable,
  BROKER_TIMEOUT: unreachable,
  // A server that is reached and does not answer for JetStream has it off, or its cluster has no leader now.
  BROKER_NO_RESPONDERS: { type: "BrokerCompatible", reason: "JetStreamDisabled", remedy: "Enable JetStream on the servers; in a cluster, make sure that a majority of them runs." },
  BROKER_CLOSED: unreachable,
  BROKER_OVERLOADED: unreachable,
  BROKER_AUTH: {
    type: "BrokerReachable",
    reason: "CredentialsRefused",
    remedy: "Check that the Secret named by spec.nats.auth holds credentials that the servers accept, and that they have not expired.",
  },
  CREDENTIALS_MISSING: { type: "BrokerReachable", reason: "CredentialsMissing", remedy: "Create what spec.nats.auth and spec.nats.tls name." },
  CONFIG_INVALID: { type: "BrokerReachable", reason: "CredentialsInvalid", remedy: "Check the contents of what spec.nats.auth and spec.nats.tls name." },
  BROKER_PERMISSION: {
    type: "BrokerCompatible",
    reason: "PermissionDenied",
    remedy: "Grant the operator's NATS user the JetStream API subjects of the account.",
  },
  BROKER_TOO_OLD: { type: "BrokerCompatible", reason: "BrokerTooOld", remedy: "Install NATS 2.14.4 or later; 2.15 is recommended." },
  BROKER_FEATURE_MISSING: {
    type: "BrokerCompatible",
    reason: "BrokerFeatureMissing",
    remedy: "Install NATS 2.14.4 or later on every server of the cluster; 2.15 is recommended.",
  },
  JETSTREAM_DISABLED: { type: "BrokerCompatible", reason: "JetStreamDisabled", remedy: "Enable JetStream on the servers and for this account." },
  STREAM_INCOMPATIBLE: { type: "TopologyReady", reason: "StreamIncompatible", remedy: "" },
  BROKER_REFUSED: { type: "TopologyReady", reason: "StreamIncompatible", remedy: "" },
  CONSUMER_INCOMPATIBLE: { type: "TopologyReady", reason: "ConsumerIncompatible", remedy: "" },
  STREAM_SUBJECT_OVERLAP: {
    type: "TopologyReady",
    reason: "SubjectOverlap",
    remedy: "Another stream of this account takes the same subjects; remove it or give this resource an account of its own.",
  },
  STREAM_REPLICAS_UNAVAILABLE: {
    type: "TopologyReady",
    reason: "ReplicasUnavailable",
    remedy: "Bring enough servers up, or change spec.topology.replicas or spec.topology.placement.",
  },
  STORAGE_INSUFFICIENT: {
    type: "TopologyReady",
    reason: "InsufficientStorage",
    remedy: "Lower the sizes in spec.topology.streams, or raise the storage limits of the account or of the servers.",
  },
  CLUSTER_DENIED: { type: "WorkersReady", reason: "WorkersRefused", remedy: "Check the operator's role." },
  CLUSTER_INVALID: { type: "WorkersReady", reason: "WorkersRefused", remedy: "Check spec.workers, above all its podTemplate." },
  CLUSTER_EXISTS: { type: "WorkersReady", reason: "WorkersForeign", remedy: "Remove the object of that name, or rename this resource." },
  PROCESS_FAILED: { type: "WorkersReady", reason: "WorkersFailing", remedy: "" },
};
