/** What the broker answers, as the facts that the operator's plan is made from. */
import { describeFailure } from "../base/failure.ts";
import type { Failure } from "../base/failure.ts";
import type { EpochMs } from "../base/units.ts";
import type { BrokerFacts, ConsumerFacts, FailureFact, Looked, StreamFacts } from "../operator/plan/observed.ts";
import type { AccountState, BrokerIdentity, ConsumerState, StreamState, Told, UserState } from "./core/jetstream.ts";

/** A failure as plain data. */
export function failureFact(failure: Failure): FailureFact {
  return { kind: failure.kind, code: failure.code, message: describeFailure(failure) };
}

/** An answer about one thing; that it does not exist is an answer too. */
export function looked<S, T>(told: Told<S>, factsOf: (state: S) => T): Looked<T> {
  if (told.kind === "told") return { kind: "found", value: factsOf(told.value) };
  const { code } = told.failure;
  return code === "STREAM_MISSING" || code === "CONSUMER_MISSING" ? { kind: "absent" } : { kind: "failed", failure: failureFact(told.failure) };
}

/** A stream as the plan sees it. */
export function streamFacts(state: StreamState): StreamFacts {
  const { name, config, createdAt, messages, bytes, firstSequence, lastSequence, leader } = state;
  const replicas = state.replicas.map((replica) => ({ name: replica.name, isCurrent: replica.current, isOffline: replica.offline, lag: replica.lag }));
  return { name, config, createdAt, messages, bytes, firstSequence, lastSequence, replicas, ...(leader === undefined ? {} : { leader }) };
}

/** A consumer as the plan sees it; a pause that has ended is none. */
export function consumerFacts(stream: string, state: ConsumerState): ConsumerFacts {
  const { name, config, createdAt, pending, ackPending, waitingPulls, paused } = state;
  const pausedUntilMs = Date.parse(String(config["pause_until"])) as EpochMs;
  const pause = paused && !Number.isNaN(pausedUntilMs) ? { pausedUntilMs } : {};
  return { stream, name, config, createdAt, pending, ackPending, waitingPulls, isPaused: paused, ...pause };
}

/** Unknown parts are left out. */
export function brokerFacts(identity: BrokerIdentity, account: AccountState, user: Told<UserState>): BrokerFacts {
  const { serverId, serverName, version, clusterName, isClustered, payloadBytesMax } = identity;
  const { apiLevel, storageBytes, storageBytesMax, storageBytesReserved, domain } = account;
  return {
    serverId, serverName, version, isClustered, payloadBytesMax, apiLevel, storageBytes, storageBytesReserved,
    ...(clusterName === undefined ? {} : { clusterName }),
    ...(isClustered ? {} : { serverCount: 1 }),
    ...(user.kind === "told" ? { accountName: user.value.accountName } : {}),
    ...(storageBytesMax === undefined ? {} : { storageBytesMax }),
    ...(domain === undefined ? {} : { domain }),
  };
}
