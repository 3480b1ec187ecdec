/**
 * Gathers one Observed value: all that a plan may know, read in one go. Reads only.
 *
 * Nothing that is read decides what else is read, so that two passes over the same world gather the same value.
 */
import type { Clock } from "../base/clock.ts";
import { describeFailure } from "../base/failure.ts";
import type { Failure } from "../base/failure.ts";
import type { Random } from "../base/random.ts";
import type { DurationMs } from "../base/units.ts";
import { ownOwnerId } from "./plan/claims.ts";
import type { ConnectionFact, FailureFact, Observed, ObservedResource } from "./plan/observed.ts";
import { unreadFailure } from "./plan/topology.ts";
import type { BrokerSession, ClusterPort, ResolvedConnection } from "./ports.ts";
import type { BrokerSessions } from "./sessions.ts";

/** Where an Observed value is read from. */
export type GatherTools = {
  readonly cluster: ClusterPort;
  readonly sessions: BrokerSessions;
  readonly clock: Clock;
  readonly random: Random;
};

/** What was observed, and the session through which the plan is carried out; absent when there is no way to the broker. */
export type Gathered = { readonly observed: Observed; readonly session?: BrokerSession };

/** Reads everything about one resource. Rejects only when `signal` aborts. */
export async function gather(tools: GatherTools, resource: ObservedResource, signal: AbortSignal): Promise<Gathered> {
  const { cluster, sessions, clock, random } = tools;
  const clusterId = cluster.clusterId();
  const { key, uid, spec } = resource;
  const connection = await cluster.resolveConnection(resource);
  const failedForMs = sessions.failedForMs(key, "connection", connection.kind === "failed" ? clock.monotonicMs() : undefined);
  const session = sessionFor(sessions, resource, connection);
  const desired = { key, uid, spec, ownerId: ownOwnerId({ clusterId, resource }) };
  const [broker, workers] = await Promise.all([session?.observe(signal), cluster.readWorkers(desired)]);
  const observed: Observed = {
    nowMs: clock.nowMs(),
    freshIncarnation: random.token(incarnationCharCount),
    clusterId,
    resource,
    connection: connectionFact(connection, failedForMs),
    ...(broker === undefined ? {} : { broker }),
    ...remembered(tools, resource, broker),
    workers,
  };
  return { observed, ...(session === undefined ? {} : { session }) };
}

/** What only earlier looks can tell: for how long something has been unread, and which numbers went back. */
function remembered({ clock, sessions }: GatherTools, { key }: ObservedResource, broker: Observed["broker"]): Pick<Observed, "unreadForMs" | "rewinds"> {
  const nowMs = clock.monotonicMs();
  const reached = broker?.kind === "reached" ? broker : undefined;
  const isUnread = reached !== undefined && unreadFailure(reached) !== undefined;
  const unreadForMs = sessions.failedForMs(key, "topology", isUnread ? nowMs : undefined);
  const rewinds = reached === undefined ? {} : sessions.sequences(key).note(reached.streams, nowMs);
  return { ...(isUnread ? { unreadForMs } : {}), ...(Object.keys(rewinds).length === 0 ? {} : { rewinds }) };
}

/** A failure as plain data. */
export function failureFact(failure: Failure): FailureFact {
  return { kind: failure.kind, code: failure.code, message: describeFailure(failure) };
}

/** Credentials that cannot be read now do not end a session that was opened with them. */
function sessionFor(sessions: BrokerSessions, { key }: ObservedResource, connection: ResolvedConnection): BrokerSession | undefined {
  return connection.kind === "resolved" ? sessions.open(key, connection.options) : sessions.current(key);
}

function connectionFact(connection: ResolvedConnection, failedForMs: DurationMs): ConnectionFact {
  switch (connection.kind) {
    case "resolved":
      return { kind: "resolved", warnings: connection.warnings, ...(connection.workerProblems === undefined ? {} : { workerProblems: connection.workerProblems }) };
    case "missing":
      return { kind: "missing", problems: connection.problems };
    case "failed":
      return { kind: "failed", failure: failureFact(connection.failure), failedForMs };
  }
}

/** 50 bits: two lives of one stream never share a mark. */
const incarnationCharCount = 10;
