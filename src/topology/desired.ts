/**
 * From a spec to the streams and consumers that it wants.
 *
 * T1 Live data has no time-based expiry and no stream that evicts: every stream but SCHEDULES refuses when it is full.
 * T2 SCHEDULES discards old messages, because servers refuse schedules together with `discard: new`; it therefore has no
 *    limit at all, since any limit would evict pending timers. Its content is derived from STATE.
 * T3 With one replica SCHEDULES is written asynchronously, which atomic batches exclude.
 * T4 Only what this product itself rolls up may be rolled up: a sender could otherwise remove every pending command with
 *    one header. Servers insist on it for streams of schedules, to which senders have no right.
 * T5 Consumers of work queues deliver all, acknowledge explicitly and never give up on a message.
 * T6 Feedback that waits for a second look stays unacknowledged for as long: it has room of its own, or a flood of it would
 *    keep all other feedback from being delivered.
 */
import { ackWaitMs, doubtfulCountMax, duplicateWindowMs } from "../base/limits.ts";
import {
  commandSubjects, consumerNames, feedbackVerbs, resumeSubject, streamNames, subjectFilters, type ConsumerRole, type StreamRole,
} from "../protocol/names.ts";
import type { DurableTimerSpec } from "../resource/durable-timer.ts";
import type { ConsumerSpec, Owner, ServerConfig, StreamSpec, Topology } from "./layout.ts";
import { consumerStamp, streamStamp } from "./stamp.ts";

export type DesiredInput = {
  readonly spec: DurableTimerSpec;
  readonly owner: Owner;
  /** The mark of each stream's life: that of the existing stream, or a fresh one for a stream that is to be created. */
  readonly incarnations: Readonly<Record<StreamRole, string>>;
};

/** The streams and consumers that `spec` wants, each list in the order of creation. */
export function desiredTopology(input: DesiredInput): Topology {
  return {
    streams: streamOrder.map((role) => desiredStream(role, input)),
    consumers: consumerOrder.map((role) => desiredConsumer(role, input)),
  };
}

/** Everything in one order of creation: each consumer after its stream, and the door of COMMANDS last. */
export function creationOrder(topology: Topology): readonly (StreamSpec | ConsumerSpec)[] {
  return topology.streams.flatMap((stream) => [stream, ...topology.consumers.filter(({ streamRole }) => streamRole === stream.role)]);
}

/** What is the same for every DurableTimer: the part that workers depend on. */
export function fixedStreamConfig(role: StreamRole): ServerConfig {
  return { ...commonStreamConfig, ...fixedByRole[role] };
}

/** What is the same for every DurableTimer. */
export function fixedConsumerConfig(role: ConsumerRole): ServerConfig {
  return { ...commonConsumerConfig, ...(role === "wake" ? { filter_subject: subjectFilters.wakes } : {}) };
}

/** Schedules that have not fired, in their stream. */
export const scheduleFilter: string = subjectFilters.schedules;

/** Where a consumer delivers from. */
export const consumerStreams: Readonly<Record<ConsumerRole, StreamRole>> = {
  wake: "schedules", resume: "resumes", feedback: "feedback", start: "commands",
};

function desiredStream(role: StreamRole, { spec, owner, incarnations }: DesiredInput): StreamSpec {
  const { replicas, placement, streams } = spec.topology;
  const isAsync = role === "schedules" && replicas === 1;
  const config = {
    name: streamNames[role],
    ...fixedStreamConfig(role),
    num_replicas: replicas,
    max_bytes: role === "schedules" ? -1 : streams[role].maxBytes,
    // T3.
    allow_atomic: !isAsync,
    ...(role === "schedules" ? { persist_mode: isAsync ? "async" : "default" } : {}),
    ...(placement === undefined ? {} : { placement: { cluster: placement.cluster ?? "", tags: placement.tags ?? [] } }),
    metadata: streamStamp(owner, incarnations[role]),
  };
  return { kind: "stream", role, name: streamNames[role], config };
}

function desiredConsumer(role: ConsumerRole, { spec, owner }: DesiredInput): ConsumerSpec {
  const streamRole = consumerStreams[role];
  const isResume = role === "resume";
  const config = {
    durable_name: consumerNames[role],
    ...fixedConsumerConfig(role),
    ack_wait: isResume ? spec.resume.ackWaitSeconds * nanosPerSecond : ackWaitMs * nanosPerMs,
    max_ack_pending: isResume ? spec.resume.maxAckPending : spec.workers.maxAckPending + (role === "feedback" ? doubtfulCountMax : 0),
    metadata: consumerStamp(owner),
  };
  return { kind: "consumer", role, stream: streamNames[streamRole], streamRole, name: consumerNames[role], config };
}

const nanosPerMs = 1_000_000;
const nanosPerSecond = 1_000_000_000;

const streamOrder: readonly StreamRole[] = ["state", "snapshots", "terminals", "schedules", "resumes", "feedback", "commands"];
const consumerOrder: readonly ConsumerRole[] = ["wake", "resume", "feedback", "start"];

const commonStreamConfig = {
  storage: "file",
  max_msgs: -1,
  max_age: 0,
  max_msg_size: -1,
  max_msgs_per_subject: -1,
  discard: "new",
  discard_new_per_subject: false,
  allow_direct: true,
  // T4.
  allow_rollup_hdrs: false,
  deny_delete: false,
  deny_purge: false,
  sealed: false,
  no_ack: false,
  duplicate_window: duplicateWindowMs * nanosPerMs,
} as const;

const fixedByRole: Readonly<Record<StreamRole, ServerConfig>> = {
  state: { subjects: [subjectFilters.state], retention: "limits", max_msgs_per_subject: 1, allow_msg_ttl: true, allow_rollup_hdrs: true },
  commands: { subjects: [commandSubjects.start], retention: "workqueue" },
  feedback: { subjects: feedbackVerbs.map((verb) => commandSubjects[verb]), retention: "workqueue" },
  snapshots: { subjects: [subjectFilters.snapshots], retention: "limits", max_msgs_per_subject: 1, allow_msg_ttl: true },
  terminals: { subjects: [subjectFilters.terminals], retention: "limits", allow_msg_ttl: true, allow_rollup_hdrs: true },
  // T2.
  schedules: { subjects: [subjectFilters.schedules, subjectFilters.wakes], retention: "workqueue", discard: "old", allow_msg_schedules: true, allow_rollup_hdrs: true },
  resumes: { subjects: [resumeSubject], retention: "workqueue" },
};

const commonConsumerConfig = {
  deliver_policy: "all",
  ack_policy: "explicit",
  replay_policy: "instant",
  max_deliver: -1,
  max_waiting: 512,
  num_replicas: 0,
  inactive_threshold: 0,
} as const;
