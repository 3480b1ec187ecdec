/**
 * A durable pull consumer of the model: who gets which message, until when it may be settled, and what comes again.
 *
 * Waiting pulls are served in turn. A message that was not settled in time, or was handed back, is delivered again, in
 * whatever order the weather likes.
 */
import type { Settlement } from "../../src/nats/core/jetstream.ts";
import { matches, type Kept } from "./store.ts";
import type { ModelStream, StreamConfig, StreamSurroundings } from "./stream.ts";

/** A standing request for messages. `give` must take the message. */
export type WaitingPull = { remaining: number; readonly isOver: () => boolean; readonly onGone: () => void; readonly give: (message: Kept, deliveryCount: number) => void };

type InHand = { deadlineMs: number };

export class ModelConsumer {
  readonly name: string;
  readonly createdAt: string;
  config: StreamConfig;
  pausedUntilMs = 0;
  redeliveredCount = 0;
  readonly #stream: ModelStream;
  readonly #around: StreamSurroundings;
  readonly #inHand = new Map<number, InHand>();
  readonly #again = new Set<number>();
  readonly #counts = new Map<number, number>();
  #pulls: WaitingPull[] = [];
  #nextSequence = 1;
  #cancelDeadline: () => void = () => undefined;
  #deadlineMs = Infinity;

  constructor(stream: ModelStream, config: StreamConfig, around: StreamSurroundings) {
    this.#stream = stream;
    this.#around = around;
    this.config = config;
    this.name = String(config["durable_name"] ?? config["name"]);
    this.createdAt = new Date(around.clockMs()).toISOString();
    this.pauseUntil(typeof config["pause_until"] === "string" ? Date.parse(config["pause_until"]) : 0);
  }

  /** Delivered and not settled, waiting for their next delivery included. */
  get ackPending(): number {
    return this.#inHand.size + this.#again.size;
  }

  get waitingPulls(): number {
    return this.#pulls.length;
  }

  get pending(): number {
    let count = 0;
    for (let sequence = this.#nextSequence; sequence <= this.#stream.store.lastSequence; sequence += 1) if (this.#wants(sequence)) count += 1;
    return count;
  }

  isPaused(): boolean {
    return this.pausedUntilMs > this.#around.clockMs();
  }

  pauseUntil(untilMs: number): void {
    this.pausedUntilMs = untilMs;
    const remainingMs = untilMs - this.#around.clockMs();
    if (remainingMs > 0) this.#around.after(Math.min(remainingMs, longestWaitMs), () => this.deliver());
    else this.deliver();
  }

  pull(pull: WaitingPull): void {
    this.#pulls.push(pull);
    this.deliver();
  }

  settle(sequence: number, how: Settlement): void {
    const inHand = this.#inHand.get(sequence);
    const kept = this.#stream.store.get(sequence);
    if (how.kind === "ack" || how.kind === "terminate") {
      if (inHand === undefined && !this.#again.has(sequence)) return;
      this.forget(sequence);
      if (kept !== undefined && this.#stream.config["retention"] === "workqueue") this.#stream.drop(kept, how.kind === "ack" ? "acked" : "terminated");
      this.deliver();
      return;
    }
    if (inHand === undefined) return;
    inHand.deadlineMs = this.#around.nowMs() + (how.kind === "extend" ? this.#ackWaitMs() : how.delayMs);
    this.#planDeadline();
  }

  /** The message has gone. */
  forget(sequence: number): void {
    this.#inHand.delete(sequence);
    this.#again.delete(sequence);
    this.#counts.delete(sequence);
  }

  /** Hands out what can be handed out. */
  deliver(): void {
    if (!this.#around.isUp() || this.isPaused()) return;
    const pendingMax = Number(this.config["max_ack_pending"] ?? 1_000);
    for (;;) {
      this.#pulls = this.#pulls.filter((pull) => pull.remaining > 0 && !pull.isOver());
      const pull = this.#pulls.shift();
      if (pull === undefined) return;
      const kept = this.#next(pendingMax);
      if (kept === undefined) {
        this.#pulls.unshift(pull);
        return;
      }
      pull.remaining -= 1;
      this.#pulls.push(pull);
      this.#giveTo(pull, kept);
    }
  }

  /** It was deleted: whoever waits is told. */
  dismiss(): void {
    for (const pull of this.#pulls) pull.onGone();
    this.disconnectAll();
  }

  /** The connections of everyone are gone; what they had in hand comes again after its wait. */
  disconnectAll(): void {
    this.#pulls = [];
    this.#cancelDeadline();
    this.#deadlineMs = Infinity;
  }

  /** After a restart or under a new leader: nothing beyond the stream's end was ever delivered. */
  recover(): void {
    this.#pulls = [];
    const { lastSequence } = this.#stream.store;
    for (const sequence of [...this.#inHand.keys(), ...this.#again]) {
      if (sequence > lastSequence || this.#stream.store.get(sequence) === undefined) this.forget(sequence);
    }
    this.#nextSequence = Math.min(this.#nextSequence, lastSequence + 1);
    // An undone acknowledgement: the message is there again, and its consumer owes it.
    for (let sequence = 1; sequence < this.#nextSequence; sequence += 1) {
      if (this.#wants(sequence) && !this.#inHand.has(sequence)) this.#again.add(sequence);
    }
    this.#planDeadline();
  }

  #giveTo(pull: WaitingPull, kept: Kept): void {
    const count = (this.#counts.get(kept.sequence) ?? 0) + 1;
    if (count > 1) this.redeliveredCount += 1;
    this.#counts.set(kept.sequence, count);
    this.#inHand.set(kept.sequence, { deadlineMs: this.#around.nowMs() + this.#ackWaitMs() });
    this.#planDeadline();
    pull.give(kept, count);
  }

  #next(pendingMax: number): Kept | undefined {
    while (this.#again.size > 0) {
      const waiting = [...this.#again];
      const sequence = waiting[this.#around.nextRedelivery(waiting.length)] ?? waiting[0] ?? 0;
      this.#again.delete(sequence);
      const kept = this.#stream.store.get(sequence);
      if (kept !== undefined) return kept;
      this.forget(sequence);
    }
    if (this.ackPending >= pendingMax) return undefined;
    while (this.#nextSequence <= this.#stream.store.lastSequence) {
      const sequence = this.#nextSequence;
      this.#nextSequence += 1;
      if (this.#wants(sequence)) return this.#stream.store.get(sequence);
    }
    return undefined;
  }

  #wants(sequence: number): boolean {
    const kept = this.#stream.store.get(sequence);
    const filter = this.config["filter_subject"];
    return kept !== undefined && (typeof filter !== "string" || filter === "" || matches(filter, kept.subject));
  }

  #ackWaitMs(): number {
    return Number(this.config["ack_wait"] ?? 30_000_000_000) / 1_000_000;
  }

  #planDeadline(): void {
    let firstMs = Infinity;
    for (const { deadlineMs } of this.#inHand.values()) firstMs = Math.min(firstMs, deadlineMs);
    if (firstMs === this.#deadlineMs) return;
    this.#cancelDeadline();
    this.#deadlineMs = firstMs;
    if (firstMs === Infinity) return;
    this.#cancelDeadline = this.#around.after(firstMs - this.#around.nowMs(), () => this.#onDeadline());
  }

  #onDeadline(): void {
    this.#deadlineMs = Infinity;
    const nowMs = this.#around.nowMs();
    for (const [sequence, { deadlineMs }] of this.#inHand) {
      if (deadlineMs > nowMs) continue;
      this.#inHand.delete(sequence);
      this.#again.add(sequence);
    }
    this.#planDeadline();
    this.deliver();
  }
}

/** Timers of the platform take no more; whoever waits looks again then. */
const longestWaitMs = 86_400_000;
