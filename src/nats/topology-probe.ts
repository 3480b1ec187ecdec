/**
 * Whether the broker is as the worker needs it: new enough, with every stream and consumer. What is needed is the
 * topology room's to say; it comes in as a function.
 */
import { Failure } from "../base/failure.ts";
import { payloadHeadroomBytes } from "../base/limits.ts";
import type { ConsumerRole, StreamRole } from "../protocol/names.ts";
import { consumerNames, streamNames } from "../protocol/names.ts";
import type { ReportedConsumers, ReportedStreams } from "../topology/requirements.ts";
import type { StampReader } from "./data-probe.ts";
import type { StreamIdentity, TopologyFinding, TopologyProbe } from "../worker/ports.ts";
import { brokerProblem } from "./core/broker-version.ts";
import type { BrokerConnection, BrokerIdentity, ConsumerState, StreamState, Told } from "./core/jetstream.ts";

/** The topology room's knowledge. */
export type TopologyRules = {
  readonly unmetRequirements: (streams: ReportedStreams, consumers: ReportedConsumers) => readonly string[];
  readonly readStamp: StampReader;
};

/** `onStream` sees the state of every stream that exists. */
export type TopologyProbeParts = { readonly connection: BrokerConnection; readonly rules: TopologyRules; readonly onStream: (state: StreamState) => void };

/** A probe that asks for everything anew at each check. */
export function natsTopologyProbe(parts: TopologyProbeParts): TopologyProbe {
  const { jetStream } = parts.connection;
  return {
    async check() {
      const [account, streams, consumers] = await Promise.all([
        jetStream.accountState(),
        askEach(streamRoles, (role) => jetStream.streamState(streamNames[role])),
        askEach(consumerRoles, (role) => jetStream.consumerState(streamNames[consumerStreams[role]], consumerNames[role])),
      ]);
      const identity = parts.connection.identity();
      if (account.kind === "failed") return { kind: "unreachable", failure: account.failure };
      const silence = streams.failure ?? consumers.failure;
      if (silence !== undefined || identity === undefined) return { kind: "unreachable", failure: silence ?? lostFailure() };
      for (const state of streams.found.values()) parts.onStream(state);
      const tooOld = brokerProblem(identity, account.value);
      if (tooOld !== undefined) return { kind: "unusable", problems: [tooOld.message] };
      return finding({ rules: parts.rules, identity, streams: streams.found, consumers: consumers.found });
    },
  };
}

type Found = {
  readonly rules: TopologyRules;
  readonly identity: BrokerIdentity;
  readonly streams: ReadonlyMap<StreamRole, StreamState>;
  readonly consumers: ReadonlyMap<WorkerConsumer, ConsumerState>;
};

function finding({ rules, identity, streams, consumers }: Found): TopologyFinding {
  const reportedStreams = Object.fromEntries(streamRoles.map((role) => [role, streams.get(role)?.config])) as ReportedStreams;
  const reportedConsumers: ReportedConsumers = Object.fromEntries([...consumers].map(([role, { config }]) => [role, config]));
  const problems = rules.unmetRequirements(reportedStreams, reportedConsumers);
  const schedules = streams.get("schedules");
  if (problems.length > 0 || schedules === undefined) return { kind: "unusable", problems };
  return {
    kind: "usable",
    schedules: identityOf(schedules, { identity, incarnation: rules.readStamp(schedules.config)?.incarnation ?? "", createdAt: createdAtOf(streams) }),
    payloadBytesMax: identity.payloadBytesMax - payloadHeadroomBytes,
  };
}

/**
 * Resumes are owed anew after SCHEDULES was made anew, and also after any of the others was put back from a backup: STATE,
 * because feedback that was taken since is forgotten; RESUMES, because what was stored since is gone; SNAPSHOTS, because
 * timers whose snapshot was missing can be resumed now.
 */
function createdAtOf(streams: ReadonlyMap<StreamRole, StreamState>): string {
  return (["schedules", "state", "resumes", "snapshots"] as const).map((role) => streams.get(role)?.createdAt ?? "").join(" ");
}

/** A single server gives itself a new id at each start, which shows that unsynchronised data may be lost. */
function identityOf(state: StreamState, { identity, incarnation, createdAt }: { readonly identity: BrokerIdentity; readonly incarnation: string; readonly createdAt: string }): StreamIdentity {
  const { lastSequence } = state;
  return { incarnation, createdAt, lastSequence, ...(identity.isClustered ? {} : { serverId: identity.serverId }) };
}

/** Asks for each role; what does not exist is missing in `found`, and any other failure is told. */
async function askEach<R extends string, T>(roles: readonly R[], ask: (role: R) => Promise<Told<T>>): Promise<{ readonly found: ReadonlyMap<R, T>; readonly failure?: Failure }> {
  const told = await Promise.all(roles.map(async (role) => [role, await ask(role)] as const));
  const found = new Map<R, T>();
  for (const [role, answer] of told) {
    if (answer.kind === "told") found.set(role, answer.value);
    else if (!isMissing(answer.failure)) return { found, failure: answer.failure };
  }
  return { found };
}

function isMissing({ code }: Failure): boolean {
  return code === "STREAM_MISSING" || code === "CONSUMER_MISSING";
}

function lostFailure(): Failure {
  return new Failure("transient", "BROKER_UNREACHABLE", "check the topology");
}

type WorkerConsumer = Exclude<ConsumerRole, "resume">;
const streamRoles = Object.keys(streamNames) as readonly StreamRole[];
const consumerRoles: readonly WorkerConsumer[] = ["wake", "feedback", "start"];
const consumerStreams: Readonly<Record<WorkerConsumer, StreamRole>> = { wake: "schedules", feedback: "feedback", start: "commands" };
