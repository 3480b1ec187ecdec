/**
 * The operator's way to a broker: everything observed in one go, and single changes, each proved by the server's answer.
 *
 * Whether STATE holds a record is looked at before the streams are: a snapshot precedes its record, so that SNAPSHOTS
 * seen empty afterwards has lost something, and has not merely not been written yet.
 */
import { utf8 } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import { Failure } from "../base/failure.ts";
import { apiTimeoutMs } from "../base/limits.ts";
import type { Random } from "../base/random.ts";
import type { DurationMs, EpochMs, MonotonicMs } from "../base/units.ts";
import { consumerNames, leaseKeys, stateRecordFilter, stateSubject, streamNames } from "../protocol/names.ts";
import type { BrokerObservation, ConsumerFacts, ConsumerRole, Looked, StateRecordFact, StreamFacts, StreamRole } from "../operator/plan/observed.ts";
import type { BrokerConnectionOptions, BrokerPort, BrokerSession, Done, ServerConfig, StreamMark } from "../operator/ports.ts";
import { openBroker } from "./core/connection.ts";
import type { BrokerConnection, LastMessage, PublishOutcome, StreamState, Told } from "./core/jetstream.ts";
import { brokerFacts, consumerFacts, failureFact, looked, streamFacts } from "./observation.ts";
import { isMarker } from "./records.ts";

/** What each session needs to dial and to wait. */
export type BrokerTools = { readonly clock: Clock; readonly random: Random };

/** Sessions over real connections. */
export function natsBrokerPort(tools: BrokerTools): BrokerPort {
  return {
    open: (options: BrokerConnectionOptions) => new NatsBrokerSession(openBroker(options, tools), tools.clock),
  };
}

class NatsBrokerSession implements BrokerSession {
  readonly #connection: BrokerConnection;
  readonly #clock: Clock;
  /** Undefined while the broker answers. */
  #lostSinceMs: MonotonicMs | undefined;

  constructor(connection: BrokerConnection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
    this.#lostSinceMs = clock.monotonicMs();
    connection.onEvent(({ kind }) => {
      if (kind === "disconnected") this.#lostSinceMs ??= clock.monotonicMs();
    });
  }

  async observe(signal: AbortSignal): Promise<BrokerObservation> {
    const beganAtMs = this.#clock.monotonicMs();
    const connected = await this.#connection.connected(apiTimeoutMs, signal);
    signal.throwIfAborted();
    const observation = connected.kind === "failed" ? connected : await this.#observeConnected();
    signal.throwIfAborted();
    if (observation.kind === "failed") {
      this.#lostSinceMs ??= beganAtMs;
      const lostForMs = (this.#clock.monotonicMs() - this.#lostSinceMs) as DurationMs;
      return { kind: "unreached", failure: failureFact(observation.failure), lostForMs };
    }
    this.#lostSinceMs = undefined;
    return observation.value;
  }

  async createStream(config: ServerConfig): Promise<Done> {
    return proved(await this.#connection.admin.createStream(config), config);
  }

  async updateStream(config: ServerConfig): Promise<Done> {
    return proved(await this.#connection.admin.updateStream(config), config);
  }

  async adoptStream({ config, mark }: { readonly config: ServerConfig; readonly mark: StreamMark }): Promise<Done> {
    const marked = await this.#marked(String(config["name"]), mark);
    return marked.kind === "told" ? await this.updateStream(config) : marked;
  }

  async deleteStream({ stream, mark, mayHoldMessages }: { readonly stream: string; readonly mark: StreamMark; readonly mayHoldMessages: boolean }): Promise<Done> {
    const marked = await this.#marked(stream, mark);
    if (marked.kind === "failed") return marked.failure.code === "STREAM_MISSING" ? done : marked;
    if (!mayHoldMessages && marked.value.messages > 0) return { kind: "failed", failure: new Failure("conflict", "STORE_CONFLICT", `delete stream ${stream}, which holds messages again`) };
    const told = await this.#connection.admin.deleteStream(stream);
    return told.kind === "told" || told.failure.code === "STREAM_MISSING" ? done : told;
  }

  async purgeStream({ stream, subject, mark }: { readonly stream: string; readonly subject: string; readonly mark: StreamMark }): Promise<Done> {
    const marked = await this.#marked(stream, mark);
    if (marked.kind === "failed") return marked.failure.code === "STREAM_MISSING" ? done : marked;
    const told = await this.#connection.jetStream.purge({ stream, subject });
    return told.kind === "failed" ? told : done;
  }

  async createConsumer({ stream, config }: { readonly stream: string; readonly config: ServerConfig }): Promise<Done> {
    return proved(await this.#connection.admin.createConsumer(stream, config), config);
  }

  async updateConsumer({ stream, config }: { readonly stream: string; readonly config: ServerConfig }): Promise<Done> {
    return proved(await this.#connection.admin.updateConsumer(stream, config), config);
  }

  async pauseConsumer(target: { readonly stream: string; readonly consumer: string; readonly untilMs: EpochMs }): Promise<Done> {
    const told = await this.#connection.admin.pauseConsumer(target);
    return told.kind === "failed" ? told : done;
  }

  async writeOwnerKey(text: string): Promise<Done> {
    const present = await this.#readNote(leaseKeys.owner);
    if (present.kind === "failed") return present;
    const isThere = present.kind === "found" && !isMarker(present.message);
    if (isThere) return textOf(present) === text ? done : { kind: "failed", failure: new Failure("conflict", "STORE_CONFLICT", "create the owner's key beside another one") };
    const expectedLastSubjectSequence = present.kind === "found" ? present.message.sequence : 0;
    const outcomes = await this.#connection.jetStream.publish([{ subject: stateSubject(leaseKeys.owner), headers: [], body: utf8(text), expectedLastSubjectSequence }]);
    return writtenOwnerKey(outcomes[0]);
  }

  onChange(listener: () => void): () => void {
    return this.#connection.onEvent(({ kind }) => {
      if (kind === "connected" || kind === "disconnected") listener();
    });
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async #observeConnected(): Promise<Told<BrokerObservation>> {
    const { jetStream, admin } = this.#connection;
    const record = await this.#readLast(stateRecordFilter);
    const [account, user, streams, consumers, ownerKey, sweepSummary] = await Promise.all([
      jetStream.accountState(),
      admin.user(),
      this.#askStreams(),
      this.#askConsumers(),
      this.#readNote(leaseKeys.owner),
      this.#readNote(leaseKeys.sweepSummary),
    ]);
    const identity = this.#connection.identity();
    if (account.kind === "failed") return account;
    if (identity === undefined) return { kind: "failed", failure: new Failure("transient", "BROKER_UNREACHABLE", "observe the broker") };
    const times = [...streams.values()].map((told) => (told.kind === "told" ? told.value.serverTimeMs : undefined)).filter((time) => time !== undefined);
    if (user.kind === "told") times.push(user.value.serverTimeMs);
    return {
      kind: "told",
      value: {
        kind: "reached",
        facts: brokerFacts(identity, account.value, user),
        brokerTimeMs: times.length > 0 ? (Math.max(...times) as EpochMs) : this.#clock.nowMs(),
        streams: Object.fromEntries([...streams].map(([role, told]) => [role, looked(told, streamFacts)])) as Readonly<Record<StreamRole, Looked<StreamFacts>>>,
        consumers,
        ownerKey: lookedText(ownerKey),
        sweepSummary: lookedText(sweepSummary),
        stateRecord: lookedRecord(record),
      },
    };
  }

  async #askStreams(): Promise<ReadonlyMap<StreamRole, Told<StreamState>>> {
    const roles = Object.keys(streamNames) as readonly StreamRole[];
    return new Map(await Promise.all(roles.map(async (role) => [role, await this.#connection.jetStream.streamState(streamNames[role])] as const)));
  }

  async #askConsumers(): Promise<Readonly<Record<ConsumerRole, Looked<ConsumerFacts>>>> {
    const ask = async (role: ConsumerRole): Promise<Looked<ConsumerFacts>> => {
      const stream = streamNames[consumerStreams[role]];
      return looked(await this.#connection.jetStream.consumerState(stream, consumerNames[role]), (state) => consumerFacts(stream, state));
    };
    const [start, feedback, wake, resume] = await Promise.all([ask("start"), ask("feedback"), ask("wake"), ask("resume")]);
    return { start, feedback, wake, resume };
  }

  /** The stream as it is at this moment, if its metadata is what the plan saw. */
  async #marked(stream: string, mark: StreamMark): Promise<Told<StreamState>> {
    const told = await this.#connection.jetStream.streamState(stream);
    if (told.kind === "failed") return told;
    const metadata = (told.value.config["metadata"] ?? {}) as Readonly<Record<string, string | undefined>>;
    const isAsSeen = Object.entries(mark).every(([key, value]) => (metadata[key] ?? "") === (value ?? ""));
    return isAsSeen ? told : { kind: "failed", failure: new Failure("conflict", "STORE_CONFLICT", `write stream ${stream}, which somebody else has taken over`) };
  }

  #readNote(name: string): Promise<LastMessage> {
    return this.#readLast(stateSubject(name));
  }

  async #readLast(subject: string): Promise<LastMessage> {
    const [last] = await this.#connection.jetStream.readLast({ stream: streamNames.state, subjects: [subject], from: "leader" });
    if (last === undefined) return { kind: "absent" };
    return last.kind === "failed" && last.failure.code === "STREAM_MISSING" ? { kind: "absent" } : last;
  }
}

const consumerStreams: Readonly<Record<ConsumerRole, StreamRole>> = { start: "commands", feedback: "feedback", wake: "schedules", resume: "resumes" };
const done: Done = { kind: "done" };

/** A server that does not know a feature accepts the request and leaves the feature out of its answer. */
function proved(told: Told<{ readonly name: string; readonly config: ServerConfig }>, sent: ServerConfig): Done {
  if (told.kind === "failed") return told;
  const { name, config } = told.value;
  const dropped = Object.entries(sent).filter(([field, value]) => isDropped(value, { field, answer: config[field] })).map(([field]) => field);
  if (dropped.length === 0) return done;
  return { kind: "failed", failure: new Failure("invalid", "BROKER_FEATURE_MISSING", `configure ${name}: the server does not know ${dropped.join(", ")}`) };
}

function isDropped(sent: unknown, { field, answer }: { readonly field: string; readonly answer: unknown }): boolean {
  if (field === "pause_until") return answer === undefined;
  // The server leaves the default out of its answer.
  if (field === "persist_mode" && sent === "default") return false;
  return (sent === true || field === "persist_mode") && answer !== sent;
}

function writtenOwnerKey(outcome: PublishOutcome | undefined): Done {
  if (outcome?.kind === "stored") return done;
  const conflict = new Failure("conflict", "STORE_CONFLICT", "create the owner's key");
  return { kind: "failed", failure: outcome === undefined || outcome.kind === "conflict" ? conflict : outcome.failure };
}

function textOf({ message }: Extract<LastMessage, { readonly kind: "found" }>): string {
  return new TextDecoder().decode(message.body);
}

function lookedRecord(last: LastMessage): Looked<StateRecordFact> {
  if (last.kind === "failed") return { kind: "failed", failure: failureFact(last.failure) };
  return last.kind === "absent" ? last : { kind: "found", value: { sequence: last.message.sequence, isLive: !isMarker(last.message) } };
}

function lookedText(last: LastMessage): Looked<string> {
  if (last.kind === "failed") return { kind: "failed", failure: failureFact(last.failure) };
  if (last.kind === "absent" || isMarker(last.message)) return { kind: "absent" };
  return { kind: "found", value: textOf(last) };
}
