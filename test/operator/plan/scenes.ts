// Scenes for plans: an Observed value in which everything is as it should be, and small changes to it.

import { expect } from "vitest";
import { present } from "../../../src/base/assert.ts";
import type { DurationMs, EpochMs } from "../../../src/base/units.ts";
import type { Action } from "../../../src/operator/plan/action.ts";
import { explainAction } from "../../../src/operator/plan/explain.ts";
import { firstStatus } from "../../../src/operator/plan/status.ts";
import type {
  BrokerFacts, ConsumerFacts, ConsumerRole, FailureFact, Looked, Observed, StreamFacts, StreamRole, WorkersFacts,
} from "../../../src/operator/plan/observed.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import type { Plan } from "../../../src/operator/plan/plan.ts";
import type { DurableTimerSpec, DurableTimerStatus } from "../../../src/resource/durable-timer.ts";
import { parseSpec } from "../../../src/resource/validate.ts";
import { desiredTopology } from "../../../src/topology/desired.ts";
import type { ServerConfig, Topology } from "../../../src/topology/layout.ts";
import { stampKeys } from "../../../src/topology/stamp.ts";
import { patched } from "../../resource/examples.ts";
import type { Patch } from "../../resource/examples.ts";

export const nowMs = Date.UTC(2026, 10, 30, 20) as EpochMs;
export const clusterId = "c1";
export const ownerText = "c1/payments/orders";
export const oldIncarnation = "oldlife000";

export const streamRoles: readonly StreamRole[] = ["state", "commands", "feedback", "snapshots", "terminals", "schedules", "resumes"];

export type ReachedBroker = Extract<Observed["broker"], { readonly kind: "reached" }>;

/** A valid spec: the smallest one with a patch over it. */
export function spec(patch: Patch = {}): DurableTimerSpec {
  const parsed = parseSpec(patched(patch));
  return present(parsed.ok ? parsed.spec : undefined, "a valid spec");
}

/** A resource that was applied a moment ago, and an account in which there is nothing. */
export function empty(patch: Patch = {}): Observed {
  const resource = {
    key: { namespace: "payments", name: "orders" },
    uid: "uid-1",
    generation: 3,
    resourceVersion: "100",
    isDeletionRequested: false,
    annotations: {},
    spec: spec(patch),
  };
  return {
    nowMs,
    freshIncarnation: "newlife000",
    clusterId,
    resource: { ...resource, status: firstStatus(resource, nowMs) },
    connection: { kind: "resolved", warnings: [] },
    broker: emptyBroker(),
    workers: { kind: "found", value: { ...readyWorkers(2), exists: false, replicas: 0, updatedReplicas: 0, readyReplicas: 0 } },
  };
}

/** The same with everything in place, and the status that says so. */
export function settled(patch: Patch = {}): Observed {
  const start = empty(patch);
  const { replicas } = start.resource.spec.workers;
  const provisioned: Observed = {
    ...start,
    broker: provisionedBroker(start.resource.spec),
    workers: { kind: "found", value: readyWorkers(replicas) },
  };
  const status = plan(provisioned).status;
  return withStatus(provisioned, () => plan(withStatus(provisioned, () => status)).status);
}

/** An account in which every stream exists as wanted; `incarnation` marks their lives. */
export function provisionedBroker(of: DurableTimerSpec, incarnation = oldIncarnation): ReachedBroker {
  const topology = topologyOf(of, incarnation);
  const { replicas } = of.topology;
  const base = emptyBroker();
  return {
    ...base,
    facts: { ...base.facts, isClustered: replicas > 1, ...(replicas > 1 ? { serverCount: 5 } : {}) },
    streams: byRole(topology.streams.map(({ role, config }) => [role, found(streamFacts(config))])),
    consumers: byRole(topology.consumers.map(({ role, stream, config }) => [role, found(consumerFacts(stream, config))])),
    ownerKey: found(ownerText),
  };
}

/** What the owner wants, with all streams of one life. */
export function topologyOf(of: DurableTimerSpec, incarnation = oldIncarnation): Topology {
  return desiredTopology({ spec: of, owner: { id: ownerText, uid: "uid-1" }, incarnations: byRole(streamRoles.map((role) => [role, incarnation])) });
}

export function readyWorkers(replicas: number): WorkersFacts {
  return {
    exists: true, drift: [], foreign: [], leaving: [], wantedReplicas: replicas, replicas, updatedReplicas: replicas, readyReplicas: replicas, isObserved: true,
    hasExceededDeadline: false, selector: "durabletimer.dev/name=orders", image: "worker:1", templateHash: "5d8f", problem: "",
  };
}

export function withSpec(observed: Observed, patch: Patch): Observed {
  return { ...observed, resource: { ...observed.resource, generation: observed.resource.generation + 1, spec: spec(patch) } };
}

export function withStatus(observed: Observed, change: (status: DurableTimerStatus | undefined) => DurableTimerStatus | undefined): Observed {
  const { status, ...resource } = observed.resource;
  const next = change(status);
  return { ...observed, resource: next === undefined ? resource : { ...resource, status: next } };
}

export function withBroker(observed: Observed, change: (broker: ReachedBroker) => ReachedBroker): Observed {
  const broker = observed.broker?.kind === "reached" ? observed.broker : undefined;
  return { ...observed, broker: change(present(broker, "a reached broker")) };
}

export function withFacts(observed: Observed, facts: Partial<BrokerFacts>): Observed {
  return withBroker(observed, (broker) => ({ ...broker, facts: { ...broker.facts, ...facts } }));
}

/** Replaces what was found of one stream; undefined removes it, with its consumers. */
export function withStream(observed: Observed, role: StreamRole, change: ((stream: StreamFacts) => StreamFacts) | undefined): Observed {
  return withBroker(observed, (broker) => {
    const looked = broker.streams[role];
    if (change !== undefined) return { ...broker, streams: { ...broker.streams, [role]: found(change(valueOf(looked))) } };
    const gone = Object.entries(broker.consumers).filter(([, of]) => of.kind === "found" && looked.kind === "found" && of.value.stream === looked.value.name);
    return {
      ...broker,
      streams: { ...broker.streams, [role]: absent },
      consumers: { ...broker.consumers, ...Object.fromEntries(gone.map(([name]) => [name, absent])) },
      ...(role === "state" ? { ownerKey: absent, stateRecord: absent } : {}),
    };
  });
}

export function withStreamConfig(observed: Observed, role: StreamRole, config: ServerConfig): Observed {
  return withStream(observed, role, (stream) => ({ ...stream, config: { ...stream.config, ...config } }));
}

export function withMetadata(observed: Observed, role: StreamRole, metadata: Readonly<Record<string, string>>): Observed {
  return withStream(observed, role, (stream) => ({ ...stream, config: { ...stream.config, metadata } }));
}

export function withConsumer(observed: Observed, role: ConsumerRole, change: ((consumer: ConsumerFacts) => ConsumerFacts) | undefined): Observed {
  return withBroker(observed, (broker) => {
    const next = change === undefined ? absent : found(change(valueOf(broker.consumers[role])));
    return { ...broker, consumers: { ...broker.consumers, [role]: next } };
  });
}

export function withWorkers(observed: Observed, change: Partial<WorkersFacts>): Observed {
  return { ...observed, workers: found({ ...valueOf(observed.workers), ...change }) };
}

/** Every stream has held data, in status and broker. */
export function withData(observed: Observed): Observed {
  const filled = streamRoles.reduce((scene, role) => withStream(scene, role, (stream) => ({ ...stream, messages: 5, lastSequence: 9, bytes: 5_000 })), observed);
  const holding = withBroker(filled, (broker) => ({ ...broker, stateRecord: found({ sequence: 1, isLive: true }) }));
  return withStatus(holding, () => plan(holding).status);
}

export function unreached(observed: Observed, failure: FailureFact, lostForMs: number): Observed {
  return { ...observed, broker: { kind: "unreached", failure, lostForMs: lostForMs as DurationMs } };
}

export const outage: FailureFact = { kind: "transient", code: "BROKER_UNREACHABLE", message: "connect to nats://nats.example:4222: connection refused" };

export const absent = { kind: "absent" } as const;

export function found<T>(value: T): Looked<T> {
  return { kind: "found", value };
}

export function valueOf<T>(looked: Looked<T>): T {
  return present(looked.kind === "found" ? looked.value : undefined, "something that was found");
}

/** The actions in short. */
export function actionTexts({ actions }: { readonly actions: readonly Action[] }): readonly string[] {
  return actions.map(explainAction);
}

/** Conditions that a plan would show otherwise than the status has them, as `type status reason`. */
export function turned(observed: Observed, { status }: Pick<Plan, "status">): readonly string[] {
  const had = conditionTexts(observed.resource.status);
  const has = conditionTexts(status);
  const gone = had.filter((text) => !has.some((other) => other.split(" ")[0] === text.split(" ")[0])).map((text) => `no ${String(text.split(" ")[0])}`);
  return [...has.filter((text) => !had.includes(text)), ...gone];
}

export function conditionTexts(status: DurableTimerStatus | undefined): readonly string[] {
  return (status?.conditions ?? []).map(({ type, status: is, reason }) => `${type} ${is} ${reason}`);
}

/** One row of a table about plans. */
export type Row = {
  readonly name: string;
  readonly scene: () => Observed;
  /** Every action, in order. */
  readonly actions: readonly string[];
  /** Every condition that turns, as `type status reason`; `no type` for one that goes. In the order of conditions. */
  readonly turns: readonly string[];
  readonly requeueAfterMs?: number;
  readonly because: string;
};

/** Compares the whole plan of a row's scene with what it names. */
export function check({ scene, actions, turns, requeueAfterMs, because }: Row): void {
  const observed = scene();
  const planned = plan(observed);
  const { requeueAfterMs: requeue } = planned;
  expect({ actions: actionTexts(planned), turns: turned(observed, planned), ...(requeue === undefined ? {} : { requeueAfterMs: requeue }) }, because).toEqual({
    actions,
    turns,
    ...(requeueAfterMs === undefined ? {} : { requeueAfterMs }),
  });
}

/** The metadata of a stream of that owner. */
export const stamp = (ownerId: string, more: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> => ({
  [stampKeys.ownerId]: ownerId, [stampKeys.ownerUid]: "uid-9", [stampKeys.incarnation]: oldIncarnation, [stampKeys.layoutVersion]: "1", ...more,
});

/** Every stream with that metadata. */
export function stampedAll(observed: Observed, metadata: Readonly<Record<string, string>>): Observed {
  return streamRoles.reduce((scene, role) => withMetadata(scene, role, metadata), observed);
}

/** A consumer that is paused until that instant. */
export const paused = (untilMs: number) => (consumer: ConsumerFacts): ConsumerFacts => ({ ...consumer, isPaused: true, pausedUntilMs: untilMs as EpochMs });

/** A stream that fills that share of its limit. */
export const share = (percent: number, ofBytes: number) => (stream: StreamFacts): StreamFacts => ({ ...stream, bytes: (ofBytes * percent) / 100 });

export const gibibyte = 1024 ** 3;

function emptyBroker(): ReachedBroker {
  return {
    kind: "reached",
    facts: {
      serverId: "NA", serverName: "n1", version: "2.15.2", isClustered: false, payloadBytesMax: 1_048_576, apiLevel: 5,
      accountName: "PAYMENTS", storageBytes: 0,
    },
    brokerTimeMs: nowMs,
    streams: { state: absent, commands: absent, feedback: absent, snapshots: absent, terminals: absent, schedules: absent, resumes: absent },
    consumers: { start: absent, feedback: absent, wake: absent, resume: absent },
    ownerKey: absent,
    sweepSummary: absent,
    stateRecord: absent,
  };
}

function streamFacts(config: ServerConfig): StreamFacts {
  const isReplicated = Number(config["num_replicas"]) > 1;
  return {
    name: String(config["name"]),
    config: reported(config),
    createdAt: "2026-11-30T19:00:00.123456789Z",
    messages: 0,
    bytes: 0,
    firstSequence: 1,
    lastSequence: 0,
    ...(isReplicated ? { leader: "n1" } : {}),
    replicas: isReplicated ? ["n2", "n3"].map((name) => ({ name, isCurrent: true, isOffline: false, lag: 0 })) : [],
  };
}

function consumerFacts(stream: string, config: ServerConfig): ConsumerFacts {
  return {
    stream, name: String(config["durable_name"]), config: reported(config), createdAt: "2026-11-30T19:00:01Z",
    pending: 0, ackPending: 0, waitingPulls: 1, isPaused: false,
  };
}

/** As a server reports a configuration: without what is empty, with defaults and marks of its own. */
function reported(config: ServerConfig): ServerConfig {
  const kept = Object.entries(config).filter(([, value]) => value !== false && value !== 0);
  const metadata = { ...(config["metadata"] as Record<string, string>), "_nats.ver": "2.15.2", "_nats.level": "5" };
  return { ...Object.fromEntries(kept), compression: "none", metadata };
}

function byRole<Role extends string, T>(pairs: readonly (readonly [Role, T])[]): Readonly<Record<Role, T>> {
  return Object.fromEntries(pairs) as Readonly<Record<Role, T>>;
}
