/**
 * A standing pull on a consumer of the model, with the promises of the real one: a bounded look-ahead, going on by itself,
 * nothing of an earlier epoch, extension of what waits in its buffer.
 */
import { ackExtendIntervalMs, pullExpiresMs, pullHeartbeatMs } from "../../src/base/limits.ts";
import type { DurationMs, MonotonicMs } from "../../src/base/units.ts";
import { WaiterList } from "../../src/concurrency/waiters.ts";
import type { Delivered, PullSource, Settlement } from "../../src/nats/core/jetstream.ts";
import type { ModelConnection } from "./connection.ts";
import type { WaitingPull } from "./consumer.ts";
import type { Kept } from "./store.ts";

type Target = { readonly stream: string; readonly consumer: string; readonly lookahead: number };

export class ModelSource implements PullSource {
  readonly #connection: ModelConnection;
  readonly #target: Target;
  readonly #takers = new WaiterList<true>();
  readonly #closing = new AbortController();
  #buffer: ModelDelivered[] = [];
  #pull: { remaining: number; isOver: boolean } | undefined;
  #isStarted = false;
  #isPaused = false;
  #isWatching = false;
  /** Given and not settled, by the epoch in which that was. */
  #inHand = { epoch: 0, count: 0 };

  constructor(connection: ModelConnection, target: Target) {
    this.#connection = connection;
    this.#target = target;
  }

  async take(options: { readonly max: number; readonly expiresMs: DurationMs; readonly signal: AbortSignal }): Promise<readonly Delivered[]> {
    this.#start();
    const taken = this.#takeNow(options.max);
    if (taken.length > 0 || options.signal.aborted) return taken;
    const giveUp = new AbortController();
    const cancel = this.#after(options.expiresMs, () => giveUp.abort());
    const onAbort = (): void => giveUp.abort();
    for (const signal of [options.signal, this.#closing.signal]) signal.addEventListener("abort", onAbort, { once: true });
    while (!giveUp.signal.aborted && !this.#closing.signal.aborted) {
      await this.#takers.wait(giveUp.signal);
      const arrived = this.#takeNow(options.max);
      if (arrived.length > 0) {
        taken.push(...arrived);
        break;
      }
    }
    for (const signal of [options.signal, this.#closing.signal]) signal.removeEventListener("abort", onAbort);
    cancel();
    return taken;
  }

  pause(): void {
    this.#isPaused = true;
    this.#watch();
  }

  resume(): void {
    this.#isPaused = false;
    this.#topUp();
  }

  close(): Promise<void> {
    this.#closing.abort();
    if (this.#pull !== undefined) this.#pull.isOver = true;
    this.#handBack();
    return Promise.resolve();
  }

  #takeNow(max: number): ModelDelivered[] {
    const taken = this.#buffer.splice(0, max);
    if (this.#buffer.length > 0) this.#takers.serve(true);
    if (taken.length > 0) this.#topUp();
    return taken;
  }

  #start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#connection.onEvent((event) => {
      if (event.kind === "disconnected") {
        this.#buffer = [];
        this.#end();
      }
      if (event.kind === "connected") this.#topUp();
    });
    this.#topUp();
  }

  #end(): void {
    if (this.#pull !== undefined) this.#pull.isOver = true;
    this.#pull = undefined;
  }

  #topUp(): void {
    const room = this.#target.lookahead - this.#buffer.length;
    if (this.#pull !== undefined || this.#isPaused || this.#closing.signal.aborted || room < 1 || !this.#connection.isConnected()) return;
    const mine = { remaining: room, isOver: false };
    this.#pull = mine;
    const { stream, consumer } = this.#target;
    // The real request is renewed when it expires or its heartbeats stop, whether or not it ever arrived.
    this.#after(pullExpiresMs, () => this.#renew(mine));
    this.#connection.tell({ kind: "pull", stream, subject: consumer }, () => {
      const found = this.#connection.broker.streams.get(stream)?.consumers.get(consumer);
      const epoch = this.#connection.epoch();
      const isOver = (): boolean => mine.isOver || this.#connection.isDead() || this.#connection.epoch() !== epoch;
      const onGone = (): void => this.#connection.receive(missingRetryMs, () => this.#renew(mine));
      if (found === undefined) onGone();
      else found.pull({ remaining: room, isOver, onGone, give: (kept, count) => this.#give(mine, kept, count) } satisfies WaitingPull);
    });
  }

  #renew(mine: { isOver: boolean }): void {
    mine.isOver = true;
    if (this.#pull !== mine) return;
    this.#pull = undefined;
    this.#topUp();
  }

  #give(mine: { remaining: number; isOver: boolean }, kept: Kept, deliveryCount: number): void {
    this.#connection.receive(this.#connection.broker.weather.deliveryMs(), () => {
      this.#buffer.push(new ModelDelivered(this.#connection, this.#target, { kept, deliveryCount, onSettled: () => this.#count(-1) }));
      this.#count(1);
      mine.remaining -= 1;
      if (mine.remaining <= 0) this.#renew(mine);
      this.#takers.serve(true);
      this.#watch();
    });
  }

  /** What was given in an earlier epoch is nobody's any more. */
  #count(by: number): void {
    const epoch = this.#connection.epoch();
    this.#inHand = { epoch, count: (this.#inHand.epoch === epoch ? this.#inHand.count : 0) + by };
    this.#connection.broker.meter.held({ client: this.#connection.name, consumer: this.#target.consumer, count: this.#inHand.count });
  }

  /** Looks after what waits here for as long as something does. */
  #watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    this.#after(pullHeartbeatMs, () => {
      this.#isWatching = false;
      if (this.#closing.signal.aborted) return;
      if (this.#isPaused) this.#handBack();
      for (const delivered of this.#buffer) delivered.keep();
      this.#topUp();
      if (this.#buffer.length > 0) this.#watch();
    });
  }

  #handBack(): void {
    for (const delivered of this.#buffer) delivered.settle({ kind: "nak", delayMs: 0 as DurationMs });
    this.#buffer = [];
  }

  #after(delayMs: number, act: () => void): () => void {
    return this.#connection.broker.timeline.after(delayMs, () => { if (!this.#connection.isDead()) act(); });
  }
}

const missingRetryMs = 150;

class ModelDelivered implements Delivered {
  readonly message: Kept;
  readonly deliveryCount: number;
  readonly receivedAtMs: MonotonicMs;
  readonly epoch: number;
  readonly #connection: ModelConnection;
  readonly #target: Target;
  readonly #onSettled: () => void;
  #waitBeganAtMs: number;
  #isSettled = false;

  constructor(connection: ModelConnection, target: Target, { kept, deliveryCount, onSettled }: { readonly kept: Kept; readonly deliveryCount: number; readonly onSettled: () => void }) {
    this.message = kept;
    this.deliveryCount = deliveryCount;
    this.receivedAtMs = connection.monotonicMs();
    this.epoch = connection.epoch();
    this.#connection = connection;
    this.#target = target;
    this.#onSettled = onSettled;
    this.#waitBeganAtMs = this.receivedAtMs;
  }

  settle(how: Settlement): boolean {
    if (this.#isSettled || this.epoch !== this.#connection.epoch()) return false;
    this.#isSettled = how.kind !== "extend";
    if (this.#isSettled) this.#onSettled();
    const { stream, consumer } = this.#target;
    const { subject, sequence } = this.message;
    return this.#connection.tell({ kind: "settle", stream, subject, how: how.kind }, () => {
      this.#connection.broker.streams.get(stream)?.consumers.get(consumer)?.settle(sequence, how);
    });
  }

  /** Its acknowledgement wait begins anew when it is time to. */
  keep(): void {
    const nowMs = this.#connection.monotonicMs();
    if (nowMs - this.#waitBeganAtMs < ackExtendIntervalMs) return;
    this.#waitBeganAtMs = nowMs;
    this.settle({ kind: "extend" });
  }
}
