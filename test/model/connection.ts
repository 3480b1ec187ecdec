/**
 * One client's connection to the broker of the model: requests that take time, get lost, or are done without an answer;
 * epochs; and the end of the client's process, after which nothing of it ever goes on.
 */
import { Failure } from "../../src/base/failure.ts";
import { apiTimeoutMs, publishTimeoutMs, reconnectDelayMsMin } from "../../src/base/limits.ts";
import type { DurationMs, MonotonicMs } from "../../src/base/units.ts";
import { timeoutFailure } from "../../src/nats/core/classify.ts";
import type { BrokerConnection, BrokerEvent, BrokerIdentity, JetStream, JetStreamAdmin, Told } from "../../src/nats/core/jetstream.ts";
import { ModelAdmin } from "./admin.ts";
import type { ModelBroker } from "./broker.ts";
import { ModelJetStream } from "./jetstream.ts";
import type { Fate, Operation } from "./weather.ts";

export type ModelConnectionOptions = {
  readonly broker: ModelBroker;
  /** Names the client in traces and to the weather. */
  readonly name: string;
  readonly monotonicMs: () => MonotonicMs;
  /** Called when the weather ends the client's process. */
  readonly onDeath?: () => void;
};

/** What became of a request: answered, not sent at all, or sent and not answered. */
export type Reply<T> =
  | { readonly kind: "answer"; readonly value: T }
  | { readonly kind: "unsent" | "unanswered"; readonly failure: Failure };

/** What is asked; of one thing, unless it says otherwise. */
type Asked = Omit<Operation, "client" | "count"> & { readonly count?: number };

export type Request<T> = {
  readonly operation: Asked;
  /** For failures: what is attempted, on which thing. */
  readonly attempt: string;
  /** What the broker does when the request arrives. */
  readonly act: () => T;
};

type Awaited = { readonly settle: (reply: { readonly kind: "unanswered"; readonly failure: Failure }) => void; readonly attempt: string };

export class ModelConnection implements BrokerConnection {
  readonly jetStream: JetStream;
  readonly admin: JetStreamAdmin;
  readonly broker: ModelBroker;
  readonly name: string;
  readonly monotonicMs: () => MonotonicMs;
  readonly #onDeath: () => void;
  readonly #listeners = new Set<(event: BrokerEvent) => void>();
  readonly #awaited = new Set<Awaited>();
  readonly #arrivals = new Map<string, number>();
  readonly #detach: () => void;
  #epoch = 1;
  #isConnected = false;
  #isDead = false;
  #isClosed = false;

  constructor(options: ModelConnectionOptions) {
    this.broker = options.broker;
    this.name = options.name;
    this.monotonicMs = options.monotonicMs;
    this.#onDeath = options.onDeath ?? (() => undefined);
    this.jetStream = new ModelJetStream(this);
    this.admin = new ModelAdmin(this);
    this.#detach = this.broker.attach({ onUp: () => this.#dial(), onDown: () => this.cut() });
    this.#dial();
  }

  isConnected(): boolean {
    return this.#isConnected;
  }

  isDead(): boolean {
    return this.#isDead;
  }

  epoch(): number {
    return this.#epoch;
  }

  identity(): BrokerIdentity | undefined {
    return this.#isConnected ? this.broker.identity() : undefined;
  }

  connected(timeoutMs: DurationMs): Promise<Told<BrokerIdentity>> {
    const identity = this.identity();
    if (identity !== undefined) return Promise.resolve({ kind: "told", value: identity });
    return new Promise((resolve) => {
      const done = (told: Told<BrokerIdentity>): void => {
        stop();
        cancel();
        resolve(told);
      };
      const stop = this.onEvent((event) => { if (event.kind === "connected") done({ kind: "told", value: event.identity }); });
      const cancel = this.broker.timeline.after(timeoutMs, () => done({ kind: "failed", failure: this.unreachable("connect") }));
    });
  }

  onEvent(listener: (event: BrokerEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.cut();
    this.#detach();
    return Promise.resolve();
  }

  /** The process ends here and now: nothing that it awaits ever comes, nothing more of it is sent. */
  die(): void {
    if (this.#isDead) return;
    this.#isDead = true;
    this.#isConnected = false;
    this.#epoch += 1;
    this.#awaited.clear();
    this.#listeners.clear();
    this.#detach();
    this.#onDeath();
  }

  /** The connection is lost; another one is dialled. */
  cut(): void {
    if (!this.#isConnected) return;
    this.#isConnected = false;
    this.#epoch += 1;
    const lost = [...this.#awaited];
    this.#awaited.clear();
    for (const { settle, attempt } of lost) settle({ kind: "unanswered", failure: this.unreachable(attempt) });
    this.#emit({ kind: "disconnected" });
    if (!this.#isClosed) this.broker.timeline.after(reconnectDelayMsMin, () => this.#dial());
  }

  /** Asks the broker for something. Never resolves once the process is dead. */
  request<T>(request: Request<T>): Promise<Reply<T>> {
    if (this.#isDead) return never();
    if (!this.#isConnected) return Promise.resolve({ kind: "unsent", failure: this.unreachable(request.attempt) });
    const fate = this.#fateOf(request.operation);
    if (fate === undefined) return never();
    return new Promise((resolve) => this.#send(request, fate, resolve));
  }

  /** Tells the broker something that is not answered; what it does arrives in order. */
  tell(operation: Asked, act: () => void): boolean {
    if (this.#isDead || !this.#isConnected) return false;
    const fate = this.#fateOf(operation);
    if (fate === undefined) return false;
    this.#travel(operation.stream, fate, () => {
      if (fate.kind !== "lose_request") act();
      if (fate.kind === "die_after") this.die();
    });
    return true;
  }

  /** Something from the broker reaches this client after a while, unless the connection is lost before. */
  receive(delayMs: number, act: () => void): void {
    const epoch = this.#epoch;
    this.broker.timeline.after(delayMs, () => { if (this.#epoch === epoch && !this.#isDead) act(); });
  }

  unreachable(attempt: string): Failure {
    return new Failure("transient", "BROKER_UNREACHABLE", attempt);
  }

  #fateOf(asked: Asked): Fate | undefined {
    const operation = { client: this.name, count: 1, ...asked };
    this.broker.meter.asked(operation);
    const fate = this.broker.weather.fate(operation);
    if (fate.kind !== "die_before") return fate;
    this.die();
    return undefined;
  }

  #send<T>(request: Request<T>, fate: Fate, resolve: (reply: Reply<T>) => void): void {
    const { operation, attempt, act } = request;
    let cancel = (): void => undefined;
    const awaited: Awaited = { attempt, settle: (reply) => { cancel(); resolve(reply); } };
    this.#awaited.add(awaited);
    const timeoutMs = operation.kind === "publish" || operation.kind === "batch" ? publishTimeoutMs : apiTimeoutMs;
    const giveUp = (): void => {
      cancel = this.broker.timeline.after(timeoutMs, () => {
        if (this.#awaited.delete(awaited)) resolve({ kind: "unanswered", failure: timeoutFailure(attempt) });
      });
    };
    if (fate.kind !== "arrive") giveUp();
    else if (operation.kind === "info" && fate.thereMs < promptMs && this.#isClear(operation.stream)) {
      // Nothing is ahead of it: that it is answered as things stand now, and not a moment later, is one event less.
      const value = act();
      return this.receive(fate.thereMs + fate.backMs, () => { if (this.#awaited.delete(awaited)) resolve({ kind: "answer", value }); });
    }
    this.#travel(operation.stream, fate, () => {
      const value = fate.kind === "lose_request" ? undefined : act();
      if (fate.kind === "die_after") return this.die();
      if (fate.kind !== "arrive" || value === undefined) return;
      this.receive(fate.backMs, () => { if (this.#awaited.delete(awaited)) resolve({ kind: "answer", value }); });
    }, giveUp);
  }

  #isClear(stream: string): boolean {
    return (this.#arrivals.get(stream) ?? 0) <= this.broker.timeline.nowMs();
  }

  /** What a client sends to one stream arrives in the order in which it was sent, but for what is late. */
  #travel(stream: string, fate: Fate, arrive: () => void, onLost: () => void = () => undefined): void {
    const { timeline } = this.broker;
    const nowMs = timeline.nowMs();
    const earliestMs = fate.kind === "late" ? 0 : (this.#arrivals.get(stream) ?? 0);
    const atMs = Math.max(nowMs + fate.thereMs, earliestMs);
    if (fate.kind !== "late") this.#arrivals.set(stream, atMs);
    const epoch = this.#epoch;
    timeline.after(atMs - nowMs, () => {
      const isCut = this.#epoch !== epoch;
      if (this.broker.isUp() && (!isCut || this.broker.weather.survivesCut())) arrive();
      else if (!isCut) onLost();
    });
  }

  #dial(): void {
    if (this.#isConnected || this.#isDead || this.#isClosed || !this.broker.isUp()) return;
    this.#isConnected = true;
    this.#arrivals.clear();
    this.#emit({ kind: "connected", identity: this.broker.identity(), epoch: this.#epoch });
  }

  #emit(event: BrokerEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
}

/** Answers of the broker about itself that are faster than this count as immediate. */
const promptMs = 5;

function never<T>(): Promise<T> {
  return new Promise(() => undefined);
}
