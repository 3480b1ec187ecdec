// A broker in memory behind the operator's port: it keeps configurations, answers INFO, counts writes and fails where a test says
// so. What a real server does with these configurations is shown by the integration test.

import { Failure } from "../../src/base/failure.ts";
import type { DurationMs, EpochMs } from "../../src/base/units.ts";
import type { BrokerObservation, ConsumerFacts, ConsumerRole, Looked, StreamFacts, StreamRole } from "../../src/operator/plan/observed.ts";
import type { BrokerConnectionOptions, BrokerPort, BrokerSession, Done, ServerConfig, StreamMark } from "../../src/operator/ports.ts";
import { consumerNames, streamNames } from "../../src/protocol/names.ts";

type Planted = { readonly write: string; readonly failure: Failure; remaining: number };

export class FakeBroker implements BrokerPort {
  readonly streams = new Map<string, StreamFacts>();
  readonly consumers = new Map<string, ConsumerFacts>();
  ownerKey: string | undefined;
  /** Every write, as `call name`. */
  readonly writes: string[] = [];
  readonly sessions: FakeSession[] = [];
  /** Streams whose updates succeed and change nothing. */
  readonly ignoredUpdates = new Set<string>();
  /** The broker is away, for so long by now. */
  lostForMs: number | undefined;
  nowMs: () => EpochMs;
  readonly #planted: Planted[] = [];

  constructor(options: { readonly nowMs: () => EpochMs }) {
    this.nowMs = options.nowMs;
  }

  get openSessions(): number {
    return this.sessions.filter(({ isClosed }) => !isClosed).length;
  }

  /** The next `count` writes of that name fail; a write is `call name`. */
  plant(write: string, failure: Failure, count = 1): void {
    this.#planted.push({ write, failure, remaining: count });
  }

  /** Removes a stream and what hangs on it, as somebody else would. */
  removeStream(name: string): void {
    this.streams.delete(name);
    for (const [key, { stream }] of this.consumers) if (stream === name) this.consumers.delete(key);
    if (name === streamNames.state) this.ownerKey = undefined;
  }

  /** Something was stored in the stream. */
  fill(name: string): void {
    const stream = this.streams.get(name);
    if (stream !== undefined) this.streams.set(name, { ...stream, messages: stream.messages + 1, lastSequence: stream.lastSequence + 1, bytes: stream.bytes + 100 });
  }

  open(options: BrokerConnectionOptions): BrokerSession {
    const session = new FakeSession(this, options);
    this.sessions.push(session);
    return session;
  }

  /** Something is stored in that stream just before the next write of that name reaches the server. */
  fillBefore: { readonly write: string; readonly stream: string } | undefined;

  write(write: string, change: () => Failure | undefined): Done {
    const planted = this.#planted.find((one) => one.write === write && one.remaining > 0);
    if (planted !== undefined) {
      planted.remaining -= 1;
      return { kind: "failed", failure: planted.failure };
    }
    if (this.fillBefore?.write === write) {
      this.fill(this.fillBefore.stream);
      this.fillBefore = undefined;
    }
    const failure = change();
    if (failure !== undefined) return { kind: "failed", failure };
    this.writes.push(write);
    return { kind: "done" };
  }

  /** Tells every session that its connection came or went. */
  signal(): void {
    for (const session of this.sessions) for (const listener of session.listeners) listener();
  }
}

export class FakeSession implements BrokerSession {
  readonly options: BrokerConnectionOptions;
  readonly listeners = new Set<() => void>();
  isClosed = false;
  readonly #broker: FakeBroker;

  constructor(broker: FakeBroker, options: BrokerConnectionOptions) {
    this.#broker = broker;
    this.options = options;
  }

  async observe(): Promise<BrokerObservation> {
    const broker = this.#broker;
    if (broker.lostForMs !== undefined) {
      const failure = { kind: "transient", code: "BROKER_UNREACHABLE", message: "connect" } as const;
      return { kind: "unreached", failure, lostForMs: broker.lostForMs as DurationMs };
    }
    const streams = Object.fromEntries(Object.entries(streamNames).map(([role, name]) => [role, lookedAt(broker.streams, name)]));
    const consumers = Object.fromEntries(Object.entries(consumerNames).map(([role, name]) => [role, lookedAt(broker.consumers, name)]));
    return {
      kind: "reached",
      facts: {
        serverId: "NF", serverName: "fake", version: "2.15.2", isClustered: false, payloadBytesMax: 1_048_576, apiLevel: 5, accountName: "A", storageBytes: 0,
      },
      brokerTimeMs: broker.nowMs(),
      streams: streams as Readonly<Record<StreamRole, Looked<StreamFacts>>>,
      consumers: consumers as Readonly<Record<ConsumerRole, Looked<ConsumerFacts>>>,
      ownerKey: broker.ownerKey === undefined ? { kind: "absent" } : { kind: "found", value: broker.ownerKey },
      sweepSummary: { kind: "absent" },
      stateRecord: { kind: "absent" },
    };
  }

  async createStream(config: ServerConfig): Promise<Done> {
    const name = String(config["name"]);
    return this.#broker.write(`createStream ${name}`, () => {
      if (this.#broker.streams.has(name)) return new Failure("conflict", "STREAM_EXISTS", `create stream ${name}`);
      const createdAt = new Date(this.#broker.nowMs()).toISOString();
      this.#broker.streams.set(name, { name, config, createdAt, messages: 0, bytes: 0, firstSequence: 1, lastSequence: 0, replicas: [] });
      return undefined;
    });
  }

  async updateStream(config: ServerConfig): Promise<Done> {
    const name = String(config["name"]);
    return this.#broker.write(`updateStream ${name}`, () => {
      const stream = this.#broker.streams.get(name);
      if (stream === undefined) return new Failure("conflict", "STREAM_MISSING", `update stream ${name}`);
      if (!this.#broker.ignoredUpdates.has(name)) this.#broker.streams.set(name, { ...stream, config });
      return undefined;
    });
  }

  async adoptStream({ config }: { readonly config: ServerConfig; readonly mark: StreamMark }): Promise<Done> {
    return await this.updateStream(config);
  }

  async deleteStream({ stream: name, mark, mayHoldMessages }: { readonly stream: string; readonly mark: StreamMark; readonly mayHoldMessages: boolean }): Promise<Done> {
    return this.#broker.write(`deleteStream ${name}`, () => {
      const stream = this.#broker.streams.get(name);
      const metadata = (stream?.config["metadata"] ?? {}) as StreamMark;
      const isMarked = stream === undefined || Object.entries(mark).every(([key, value]) => metadata[key] === value);
      if (!isMarked || (!mayHoldMessages && (stream?.messages ?? 0) > 0)) return new Failure("conflict", "STORE_CONFLICT", `delete stream ${name}`);
      this.#broker.removeStream(name);
      return undefined;
    });
  }

  async purgeStream({ stream: name }: { readonly stream: string; readonly subject: string; readonly mark: StreamMark }): Promise<Done> {
    return this.#broker.write(`purgeStream ${name}`, () => {
      const stream = this.#broker.streams.get(name);
      if (stream !== undefined) this.#broker.streams.set(name, { ...stream, messages: 0, bytes: 0 });
      return undefined;
    });
  }

  async createConsumer({ stream, config }: { readonly stream: string; readonly config: ServerConfig }): Promise<Done> {
    const name = String(config["durable_name"]);
    return this.#broker.write(`createConsumer ${name}`, () => {
      const untilMs = config["pause_until"] === undefined ? undefined : (Date.parse(config["pause_until"] as string) as EpochMs);
      const pause = untilMs === undefined ? { isPaused: false } : { isPaused: true, pausedUntilMs: untilMs };
      this.#broker.consumers.set(name, { stream, name, config, createdAt: "2030-01-01T00:00:00Z", pending: 0, ackPending: 0, waitingPulls: 0, ...pause });
      return undefined;
    });
  }

  async updateConsumer({ config }: { readonly stream: string; readonly config: ServerConfig }): Promise<Done> {
    const name = String(config["durable_name"]);
    return this.#broker.write(`updateConsumer ${name}`, () => {
      const consumer = this.#broker.consumers.get(name);
      if (consumer === undefined) return new Failure("conflict", "CONSUMER_MISSING", `update consumer ${name}`);
      this.#broker.consumers.set(name, { ...consumer, config });
      return undefined;
    });
  }

  async pauseConsumer({ consumer: name, untilMs }: { readonly stream: string; readonly consumer: string; readonly untilMs: EpochMs }): Promise<Done> {
    return this.#broker.write(`pauseConsumer ${name}`, () => {
      const consumer = this.#broker.consumers.get(name);
      if (consumer === undefined) return new Failure("conflict", "CONSUMER_MISSING", `pause consumer ${name}`);
      const { pausedUntilMs: _had, ...rest } = consumer;
      this.#broker.consumers.set(name, untilMs > this.#broker.nowMs() ? { ...rest, isPaused: true, pausedUntilMs: untilMs } : { ...rest, isPaused: false });
      return undefined;
    });
  }

  async writeOwnerKey(text: string): Promise<Done> {
    return this.#broker.write("writeOwnerKey", () => {
      this.#broker.ownerKey = text;
      return undefined;
    });
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

function lookedAt<T>(things: ReadonlyMap<string, T>, name: string): Looked<T> {
  const value = things.get(name);
  return value === undefined ? { kind: "absent" } : { kind: "found", value };
}
