/**
 * Everything a plan is made from, as plain data. One pass gathers one Observed; the same value can be saved as JSON and
 * planned again elsewhere, so nothing here is a secret, a function or a class.
 *
 * O1 Every fact says how it was learnt: found, absent, or failed. Absent is an answer of the broker, never silence.
 * O2 Broker configurations are in the server's own field names, as the server reports them.
 */
import type { FailureCode, FailureKind } from "../../base/failure.ts";
import type { DurationMs, EpochMs } from "../../base/units.ts";
import type { DurableTimerSpec, DurableTimerStatus } from "../../resource/durable-timer.ts";

/** Names one DurableTimer. In local mode the namespace is `local`. */
export type ResourceKey = { readonly namespace: string; readonly name: string };

/** A DurableTimer as it was read. */
export type ObservedResource = {
  readonly key: ResourceKey;
  readonly uid: string;
  readonly generation: number;
  /** Opaque; a status write is refused with a conflict when it is no longer the last. */
  readonly resourceVersion: string;
  readonly isDeletionRequested: boolean;
  /** Since when it is being deleted. */
  readonly deletionRequestedAtMs?: EpochMs;
  /** What holds it in deletion; absent where nothing can. */
  readonly finalizers?: readonly string[];
  /** Its namespace is being deleted, and everything in it. Looked at only while the resource itself is. */
  readonly isNamespaceEnding?: boolean;
  readonly annotations: Readonly<Record<string, string>>;
  /** Valid, with every default filled in. */
  readonly spec: DurableTimerSpec;
  /** Absent when no status was ever written. */
  readonly status?: DurableTimerStatus;
};

/** A failure as data: what a report shows and what a plan decides by. */
export type FailureFact = { readonly kind: FailureKind; readonly code: FailureCode; readonly message: string };

/** The answer to a question about one thing. */
export type Looked<T> =
  | { readonly kind: "found"; readonly value: T }
  | { readonly kind: "absent" }
  | { readonly kind: "failed"; readonly failure: FailureFact };

/** Streams by what they hold. */
export type StreamRole = "state" | "commands" | "feedback" | "snapshots" | "terminals" | "schedules" | "resumes";

/** Durable consumers by what they deliver. */
export type ConsumerRole = "start" | "feedback" | "wake" | "resume";

/** A stream as its leader reports it. */
export type StreamFacts = {
  readonly name: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** RFC 3339, as the server spells it. */
  readonly createdAt: string;
  readonly messages: number;
  readonly bytes: number;
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** Absent on a single server. */
  readonly leader?: string;
  readonly replicas: readonly ReplicaFacts[];
};

/** A follower as the leader sees it. */
export type ReplicaFacts = { readonly name: string; readonly isCurrent: boolean; readonly isOffline: boolean; readonly lag: number };

/** A consumer as its leader reports it. */
export type ConsumerFacts = {
  readonly stream: string;
  readonly name: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly createdAt: string;
  readonly pending: number;
  readonly ackPending: number;
  readonly waitingPulls: number;
  readonly isPaused: boolean;
  /** The instant of the broker's clock at which a pause ends, as configured; absent when the consumer is not paused. */
  readonly pausedUntilMs?: EpochMs;
};

/** The broker and the account that the operator's connection belongs to. */
export type BrokerFacts = {
  readonly serverId: string;
  readonly serverName: string;
  readonly version: string;
  readonly clusterName?: string;
  readonly isClustered: boolean;
  /** Servers that can hold a replica, when the broker tells it: 1 for a single server. */
  readonly serverCount?: number;
  readonly payloadBytesMax: number;
  readonly apiLevel: number;
  /** Absent when the broker does not tell it. */
  readonly accountName?: string;
  readonly storageBytes: number;
  /** Absent when the account has no limit. */
  readonly storageBytesMax?: number;
  /** Reserved by the limits of streams. */
  readonly storageBytesReserved?: number;
  readonly domain?: string;
};

/** A record of one timer, or the marker of one that was removed a moment ago. */
export type StateRecordFact = { readonly sequence: number; readonly isLive: boolean };

/** A stream of the same life whose last sequence is lower than it was seen to be: its end is lost. */
export type Rewind = {
  readonly fromSequence: number;
  readonly toSequence: number;
  /** Seen at two looks: a single one may come from a leader that was deposed. */
  readonly isConfirmed: boolean;
};

/** All that was learnt from the broker in one pass. */
export type BrokerObservation =
  | {
      readonly kind: "reached";
      readonly facts: BrokerFacts;
      /** The broker's clock when it answered; pauses are set by it. */
      readonly brokerTimeMs: EpochMs;
      readonly streams: Readonly<Record<StreamRole, Looked<StreamFacts>>>;
      readonly consumers: Readonly<Record<ConsumerRole, Looked<ConsumerFacts>>>;
      /** Text of the owner's key in the state bucket. */
      readonly ownerKey: Looked<string>;
      /** Text of the sweep's summary in the state bucket. */
      readonly sweepSummary: Looked<string>;
      /** The last record of any timer in STATE, looked at before the streams: a snapshot precedes its record. */
      readonly stateRecord: Looked<StateRecordFact>;
    }
  | {
      readonly kind: "unreached";
      readonly failure: FailureFact;
      /** How long this session has been without its broker; counted from its opening when it never had one. */
      readonly lostForMs: DurationMs;
    };

/** What the operator's own connection is made of could be read, or why not. */
export type ConnectionFact =
  | {
      readonly kind: "resolved";
      readonly warnings: readonly string[];
      /** What the workers' own connection lacks; each problem says which thing and what to do. */
      readonly workerProblems?: readonly string[];
    }
  /** Something named by the resource is not there or not usable; each problem says which and what to do. */
  | { readonly kind: "missing"; readonly problems: readonly string[] }
  /** `failedForMs` counts from the first failure of an unbroken row. */
  | { readonly kind: "failed"; readonly failure: FailureFact; readonly failedForMs: DurationMs };

/** The workers as the desired ones want them. Everything that follows from the spec is rendered by the cluster port. */
export type DesiredWorkers = {
  readonly key: ResourceKey;
  readonly uid: string;
  readonly ownerId: string;
  readonly spec: DurableTimerSpec;
};

/** The workers as they run. */
export type WorkersFacts = {
  /** Some part of them exists. */
  readonly exists: boolean;
  /** Fields (or whole objects) that differ from the desired ones, sorted; empty means nothing to do. */
  readonly drift: readonly string[];
  /** Same-named objects that belong to somebody else; they are never touched. */
  readonly foreign: readonly string[];
  /** Same-named objects that are about to go: in deletion, or left by an earlier resource of this name. */
  readonly leaving: readonly string[];
  /** How many there should be, as they were last told. */
  readonly wantedReplicas: number;
  readonly replicas: number;
  readonly updatedReplicas: number;
  readonly readyReplicas: number;
  /** The controller of the workers has seen their last change. */
  readonly isObserved: boolean;
  readonly hasExceededDeadline: boolean;
  /** Selector of the pods, for the scale subresource. */
  readonly selector: string;
  readonly image: string;
  readonly templateHash: string;
  /** What is wrong with a worker that is not ready (image not pulled, crash loop, out of memory); empty when nothing. */
  readonly problem: string;
};

/** Everything one plan is made from. */
export type Observed = {
  readonly nowMs: EpochMs;
  /** Gives new streams their incarnation, so that the plan needs no randomness of its own. */
  readonly freshIncarnation: string;
  /** Identity of this cluster (or of the local state folder): the first part of the owner id. */
  readonly clusterId: string;
  readonly resource: ObservedResource;
  readonly connection: ConnectionFact;
  /** Absent when there is no connection to observe through. */
  readonly broker?: BrokerObservation;
  /** For how long the broker has been answering without telling everything; absent while it tells everything. */
  readonly unreadForMs?: DurationMs;
  /** Streams that lost their end while this operator watched. */
  readonly rewinds?: Readonly<Partial<Record<StreamRole, Rewind>>>;
  readonly workers: Looked<WorkersFacts>;
};
