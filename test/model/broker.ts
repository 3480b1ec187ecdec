/**
 * The broker of the model: streams in memory, a clock that may jump, a process that may die and come back, leadership
 * that may move. It says nothing by itself; connections ask it.
 */
import type { BrokerIdentity } from "../../src/nats/core/jetstream.ts";
import { noMeter, type Meter } from "./meter.ts";
import { ModelStream, type Change, type StreamConfig } from "./stream.ts";
import type { Timeline } from "./timeline.ts";
import { fairWeather, type Weather } from "./weather.ts";

export type ModelBrokerOptions = {
  readonly timeline: Timeline;
  readonly replicas?: 1 | 3;
  readonly weather?: Weather;
  readonly meter?: Meter;
  /** All streams together, in bytes. */
  readonly storageBytesMax?: number;
};

/** What a connection hears from its broker. */
export type BrokerListener = { readonly onUp: () => void; readonly onDown: () => void };

export class ModelBroker {
  readonly timeline: Timeline;
  readonly weather: Weather;
  readonly meter: Meter;
  readonly replicas: 1 | 3;
  readonly streams = new Map<string, ModelStream>();
  storageBytesMax: number | undefined;
  readonly #listeners = new Set<BrokerListener>();
  readonly #watchers = new Set<(change: Change) => void>();
  readonly #subscriptions = new Set<{ readonly subject: string; readonly hear: (subject: string, body: Uint8Array) => void }>();
  #isUp = true;
  #offsetMs = 0;
  readonly #offsets: { readonly offsetMs: number; readonly untilMs: number }[] = [];
  #lifeCount = 1;
  #leaderCount = 1;

  constructor(options: ModelBrokerOptions) {
    this.timeline = options.timeline;
    this.weather = options.weather ?? fairWeather;
    this.meter = options.meter ?? noMeter;
    this.replicas = options.replicas ?? 1;
    this.storageBytesMax = options.storageBytesMax;
  }

  isUp(): boolean {
    return this.#isUp;
  }

  identity(): BrokerIdentity {
    const cluster = this.replicas === 1 ? {} : { clusterName: "model" };
    return { serverId: `MODEL${String(this.#lifeCount)}`, serverName: "model", version: "2.15.2", payloadBytesMax: 1_048_576, isClustered: this.replicas > 1, ...cluster };
  }

  /** Name of who leads every stream; absent on a single server. */
  leader(): string | undefined {
    return this.replicas === 1 ? undefined : `model-${String(this.#leaderCount % 3)}`;
  }

  clockMs(): number {
    return this.timeline.nowMs() + this.#offsetMs;
  }

  /**
   * What a client may believe its clock to show that has looked at it within the last `lookbackMs`: more than it shows now,
   * when it was set back since.
   */
  believableMs(lookbackMs: number): number {
    const nowMs = this.timeline.nowMs();
    const offsets = this.#offsets.filter(({ untilMs }) => untilMs >= nowMs - lookbackMs).map(({ offsetMs }) => offsetMs);
    return nowMs + Math.max(this.#offsetMs, ...offsets);
  }

  jumpClock(byMs: number): void {
    this.#offsets.push({ offsetMs: this.#offsetMs, untilMs: this.timeline.nowMs() });
    this.#offsetMs += byMs;
    for (const stream of this.streams.values()) stream.onClockJump();
  }

  /** It dies without a word. Streams that are written asynchronously lose up to `tail` of their last steps. */
  crash({ tail }: { readonly tail: number }): void {
    if (!this.#isUp) return;
    this.#isUp = false;
    for (const stream of this.streams.values()) stream.crash(tail);
    for (const listener of [...this.#listeners]) listener.onDown();
  }

  restart(): void {
    if (this.#isUp) return;
    this.#isUp = true;
    this.#lifeCount += 1;
    for (const stream of this.streams.values()) stream.lead({ isNewProcess: true });
    for (const listener of [...this.#listeners]) listener.onUp();
  }

  /** Another server leads every stream. */
  moveLeadership(): void {
    if (!this.#isUp || this.replicas === 1) return;
    this.#leaderCount += 1;
    for (const stream of this.streams.values()) stream.lead({ isNewProcess: false });
  }

  /** Everything is on disk now. */
  sync(): void {
    for (const stream of this.streams.values()) stream.store.sync();
  }

  addStream(config: StreamConfig): ModelStream {
    const stream = new ModelStream(config, {
      nowMs: () => this.timeline.nowMs(),
      after: (delayMs, act) => this.timeline.after(delayMs, act),
      clockMs: () => this.clockMs(),
      hasRoom: (bytes) => this.storageBytesMax === undefined || this.storageBytes() + bytes <= this.storageBytesMax,
      refusesWake: (subject) => this.weather.refusesWake(subject),
      nextRedelivery: (count) => this.weather.nextRedelivery(count),
      isUp: () => this.#isUp,
      onChange: (change) => this.#tell(change),
    });
    this.streams.set(stream.name, stream);
    return stream;
  }

  /** Its consumers go with it; false when there is none. */
  removeStream(name: string): boolean {
    for (const consumer of this.streams.get(name)?.consumers.values() ?? []) consumer.dismiss();
    return this.streams.delete(name);
  }

  storageBytes(): number {
    return [...this.streams.values()].reduce((sum, { store }) => sum + store.bytes, 0);
  }

  streamOf(subject: string): ModelStream | undefined {
    return [...this.streams.values()].find((stream) => stream.covers(subject));
  }

  attach(listener: BrokerListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls `watcher` after each change of a stream. */
  watch(watcher: (change: Change) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  subscribe(subject: string, hear: (subject: string, body: Uint8Array) => void): () => void {
    const subscription = { subject, hear };
    this.#subscriptions.add(subscription);
    return () => this.#subscriptions.delete(subscription);
  }

  /** A core message: whoever listens now hears it. */
  send(subject: string, body: Uint8Array, covers: (filter: string, subject: string) => boolean): void {
    for (const subscription of [...this.#subscriptions]) if (covers(subscription.subject, subject)) subscription.hear(subject, body);
  }

  #tell(change: Change): void {
    for (const watcher of this.#watchers) watcher(change);
  }
}
