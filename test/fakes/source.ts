// A work-queue consumer in memory: explicit acknowledgement, redelivery after the ack wait, and epochs.

import type { Clock } from "../../src/base/clock.ts";
import { ackWaitMs } from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { WaiterList } from "../../src/concurrency/waiters.ts";
import type { StoredMessage } from "../../src/protocol/message.ts";
import type { Delivery, Source } from "../../src/worker/ports.ts";

type Entry = { readonly message: StoredMessage; availableAtMs: number; deliveryCount: number };

export type Settled = { readonly sequence: number; readonly how: "ack" | "nak" | "extend" | "terminate"; readonly reason?: string };

export type FakeSourceOptions = {
  readonly clock: Clock;
  readonly epoch: () => number;
  /** Called before every look at the queue: a schedule that is due puts its wake there now. */
  readonly refill?: () => void;
  /** When `refill` will have something next. */
  readonly nextRefillAtMs?: () => number | undefined;
};

export class FakeSource implements Source {
  /** What became of deliveries, in order. */
  readonly settled: Settled[] = [];
  readonly #options: FakeSourceOptions;
  readonly #entries = new Map<number, Entry>();
  readonly #takers = new WaiterList<true>();
  #isPaused = false;
  #isClosed = false;

  constructor(options: FakeSourceOptions) {
    this.#options = options;
  }

  add(message: StoredMessage): void {
    this.#entries.set(message.sequence, { message, availableAtMs: 0, deliveryCount: 0 });
    this.#takers.serve(true);
  }

  /** Messages that the stream still holds, in hand or not. */
  get messages(): readonly StoredMessage[] {
    return [...this.#entries.values()].map(({ message }) => message);
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Lets a waiting taker look again: what will be refilled next has changed. */
  poke(): void {
    this.#takers.serve(true);
  }

  /** Everything in hand is available again at once, as after the death of its worker and the ack wait. */
  redeliverAll(): void {
    for (const entry of this.#entries.values()) entry.availableAtMs = 0;
    this.#takers.serve(true);
  }

  removeAll(): void {
    this.#entries.clear();
  }

  async take({ max, expiresMs, signal }: { readonly max: number; readonly expiresMs: DurationMs; readonly signal: AbortSignal }): Promise<readonly Delivery[]> {
    const untilMs = this.#options.clock.monotonicMs() + expiresMs;
    while (!signal.aborted && !this.#isClosed) {
      this.#options.refill?.();
      const ready = this.#isPaused ? [] : [...this.#entries.values()].filter((entry) => entry.availableAtMs <= this.#nowMs()).slice(0, max);
      if (ready.length > 0) return ready.map((entry) => this.#deliver(entry));
      const waitMs = untilMs - this.#options.clock.monotonicMs();
      if (waitMs <= 0) return [];
      await this.#untilChange(Math.min(waitMs, this.#nextChangeMs()), signal);
    }
    return [];
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#takers.serve(true);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#takers.dismiss();
    return Promise.resolve();
  }

  #nowMs(): number {
    return this.#options.clock.nowMs();
  }

  #nextChangeMs(): number {
    const times = [...this.#entries.values()].map((entry) => entry.availableAtMs);
    const refillAtMs = this.#options.nextRefillAtMs?.();
    if (refillAtMs !== undefined) times.push(refillAtMs);
    return Math.max(1, Math.min(...times.map((at) => at - this.#nowMs()), Number.MAX_SAFE_INTEGER));
  }

  async #untilChange(waitMs: number, signal: AbortSignal): Promise<void> {
    const done = new AbortController();
    const either = AbortSignal.any([signal, done.signal]);
    await Promise.race([this.#options.clock.sleep(waitMs as DurationMs, either), this.#takers.wait(either)]);
    done.abort();
  }

  #deliver(entry: Entry): Delivery {
    const { message } = entry;
    const epoch = this.#options.epoch();
    entry.deliveryCount += 1;
    entry.availableAtMs = this.#nowMs() + ackWaitMs;
    const { deliveryCount } = entry;
    const isCurrent = (): boolean => this.#options.epoch() === epoch;
    const settle = (settled: Omit<Settled, "sequence">, change: () => void): boolean => {
      if (!isCurrent()) return false;
      this.settled.push({ sequence: message.sequence, ...settled });
      change();
      return true;
    };
    const until = (delayMs: number) => () => { entry.availableAtMs = this.#nowMs() + delayMs; };
    const gone = (): void => { this.#entries.delete(message.sequence); };
    return {
      message,
      deliveryCount,
      isCurrent,
      ack: () => settle({ how: "ack" }, gone),
      nak: (delayMs) => settle({ how: "nak" }, () => { until(delayMs)(); this.#takers.serve(true); }),
      extend: () => settle({ how: "extend" }, until(ackWaitMs)),
      terminate: (reason) => settle({ how: "terminate", reason }, gone),
    };
  }
}
