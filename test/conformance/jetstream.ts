/**
 * What every JetStream of ours must do, whatever stands behind it: real servers of either version, or a model of them.
 *
 * All parts share one broker; each test makes streams of its own, under names that nobody else has.
 */
import { afterAll, beforeAll, describe } from "vitest";
import type { DurationMs } from "../../src/base/units.ts";
import type { BrokerConnection, Delivered, JetStream, OutgoingMessage, PullSource, StreamState, Told } from "../../src/nats/core/jetstream.ts";
import { describeAdmin } from "./admin.ts";
import { describeCrash } from "./crash.ts";
import { describeReads } from "./reads.ts";
import { describeSchedules } from "./schedules.ts";
import { describeSources } from "./sources.ts";
import { describeWrites } from "./writes.ts";

/** A broker with one connection to it. */
export type ConformanceBroker = {
  readonly connection: BrokerConnection;
  readonly replicas: 1 | 3;
  /** The broker dies without a word and comes back with its store; resolves once `connection` is connected again. */
  crash(): Promise<void>;
  close(): Promise<void>;
};

/** Opens a broker for one run of the suite. */
export type OpenBroker = () => Promise<ConformanceBroker>;

/** Runs the whole suite against what `open` gives. */
export function describeJetStream(name: string, open: OpenBroker): void {
  describe(name, () => {
    const bed = new TestBed();
    beforeAll(async () => bed.begin(await open()));
    afterAll(() => bed.end());
    describeWrites(bed);
    describeReads(bed);
    describeSources(bed);
    describeSchedules(bed);
    describeAdmin(bed);
    // Last, because it takes the broker down.
    describeCrash(bed);
  });
}

/** What the tests of one run share. */
export class TestBed {
  #broker: ConformanceBroker | undefined;
  #streamCount = 0;

  begin(broker: ConformanceBroker): void {
    this.#broker = broker;
  }

  async end(): Promise<void> {
    await this.#broker?.close();
  }

  get broker(): ConformanceBroker {
    if (this.#broker === undefined) throw new Error("no broker was opened");
    return this.#broker;
  }

  get connection(): BrokerConnection {
    return this.broker.connection;
  }

  get jetStream(): JetStream {
    return this.connection.jetStream;
  }

  /** A new stream over `<stream>.>`, with the settings that most streams of ours have; it has a leader, which a replicated one elects after it was made. */
  async stream(config: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const stream = this.unusedName();
    must(await this.connection.admin.createStream({ ...this.streamConfig(stream), ...config }));
    await eventually("the stream has a leader", async () => (await this.jetStream.streamState(stream)).kind === "told");
    return stream;
  }

  streamConfig(stream: string): Readonly<Record<string, unknown>> {
    return {
      name: stream, subjects: [`${stream}.>`], num_replicas: this.broker.replicas, storage: "file", retention: "limits", discard: "new",
      allow_direct: true, allow_atomic: true, allow_rollup_hdrs: true, allow_msg_ttl: true,
    };
  }

  /** A work queue and its consumer. */
  async workQueue(consumer: Readonly<Record<string, unknown>> = {}): Promise<{ readonly stream: string; readonly consumer: string }> {
    const stream = await this.stream({ retention: "workqueue" });
    must(await this.connection.admin.createConsumer(stream, { ...consumerConfig, ...consumer }));
    await eventually("the consumer has a leader", async () => (await this.jetStream.consumerState(stream, consumerConfig.durable_name)).kind === "told");
    return { stream, consumer: consumerConfig.durable_name };
  }

  unusedName(): string {
    this.#streamCount += 1;
    return `S${String(this.#streamCount)}_${Math.random().toString(36).slice(2, 8)}`;
  }

  /** Stores what a test needs to be there; a replicated stream may be without a leader for a moment, and then surely stores nothing. */
  async store(messages: readonly OutgoingMessage[]): Promise<readonly number[]> {
    for (let attempt = 1; ; attempt += 1) {
      const outcomes = await this.jetStream.publish(messages);
      const isLeaderless = outcomes.every((outcome) => outcome.kind === "refused" && outcome.failure.kind === "transient");
      if (isLeaderless && attempt < storeAttemptsMax) {
        await new Promise((resolve) => setTimeout(resolve, storePauseMs));
        continue;
      }
      return outcomes.map((outcome) => {
        if (outcome.kind !== "stored") throw new Error(`a message was not stored: ${outcome.kind}`);
        return outcome.sequence;
      });
    }
  }

  async state(stream: string): Promise<StreamState> {
    return must(await this.jetStream.streamState(stream));
  }
}

const storeAttemptsMax = 50;
const storePauseMs = 100;

export const consumerConfig = { durable_name: "C", ack_policy: "explicit", ack_wait: 30_000_000_000, max_deliver: -1, deliver_policy: "all" } as const;

export function must<T>(told: Told<T>): T {
  if (told.kind === "failed") throw told.failure;
  return told.value;
}

export function message(subject: string, over: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return { subject, headers: [], body: text("body"), ...over };
}

export const text = (value: string): Uint8Array => new TextEncoder().encode(value);
export const ms = (value: number): DurationMs => value as DurationMs;
export const never = new AbortController().signal;

/** Takes until `count` messages came, and fails when they do not. */
export async function takeExactly(source: PullSource, count: number, timeoutMs = 30_000): Promise<readonly Delivered[]> {
  const taken: Delivered[] = [];
  const untilMs = Date.now() + timeoutMs;
  while (taken.length < count && Date.now() < untilMs) taken.push(...(await source.take({ max: count - taken.length, expiresMs: ms(500), signal: never })));
  if (taken.length !== count) throw new Error(`${String(taken.length)} of ${String(count)} messages came`);
  return taken;
}

/** Polls until `isTrue`, with a bound. */
export async function eventually(what: string, isTrue: () => Promise<boolean> | boolean, timeoutMs = 30_000): Promise<void> {
  const untilMs = Date.now() + timeoutMs;
  while (!(await isTrue())) {
    if (Date.now() > untilMs) throw new Error(`never true: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
