/**
 * The work queue of a level-triggered controller: it holds keys, not events.
 *
 * 1. A key that waits is not added twice, and never runs twice at once.
 * 2. A key that is added while it runs runs once more afterwards: a change seen in the middle is never lost.
 * 3. Taking a key cancels its delayed add, because the turn that begins now sees what the delayed one would have seen.
 * 4. A failed key returns after its own back-off; a change may bring it back sooner, without forgetting the failures.
 * 5. At most `keyCountMax` keys are known at once (I13): waiting, delayed and running together.
 */
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import type { DurationMs, MonotonicMs } from "../base/units.ts";
import { backoffMs, type BackoffPolicy } from "./backoff.ts";
import { WaiterList } from "./waiters.ts";

/** One key to work on; every turn must be given back with `finish`. */
export type QueueTurn = {
  readonly key: string;
  /** Failures in a row before this turn. */
  readonly failureCount: number;
  /** From the moment the key was due to the moment it was taken. */
  readonly waitedMs: DurationMs;
};

export type TurnOutcome =
  /** Failures are forgotten; the key returns after `requeueAfterMs`, or when it is added again. */
  | { readonly kind: "done"; readonly requeueAfterMs?: DurationMs }
  /** The key returns after its back-off, and not before `delayMsMin`, which a server may have asked for. */
  | { readonly kind: "failed"; readonly delayMsMin?: DurationMs };

type Running = { isDirty: boolean };
type Delayed = { readonly dueAtMs: number; readonly cancel: AbortController };

/** The queue of one controller; several tasks may take from it. */
export class KeyedQueue {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #backoff: BackoffPolicy;
  readonly #keyCountMax: number;
  readonly #waitingSinceMs = new Map<string, MonotonicMs>();
  readonly #delayed = new Map<string, Delayed>();
  readonly #running = new Map<string, Running>();
  readonly #failureCounts = new Map<string, number>();
  readonly #takers = new WaiterList<QueueTurn>();
  #isStopped = false;

  constructor(options: { readonly clock: Clock; readonly random: Random; readonly backoff: BackoffPolicy; readonly keyCountMax: number }) {
    assert(options.keyCountMax >= 1, "a queue with room");
    this.#clock = options.clock;
    this.#random = options.random;
    this.#backoff = options.backoff;
    this.#keyCountMax = options.keyCountMax;
  }

  get waitingCount(): number {
    return this.#waitingSinceMs.size;
  }

  get delayedCount(): number {
    return this.#delayed.size;
  }

  get runningCount(): number {
    return this.#running.size;
  }

  /** Makes `key` due now. False when the queue is stopped, or full and `key` unknown; then nothing changed. */
  add(key: string): boolean {
    if (!this.#hasRoomFor(key)) return false;
    const running = this.#running.get(key);
    if (running !== undefined) running.isDirty = true;
    else if (!this.#waitingSinceMs.has(key)) this.#enqueue(key);
    return true;
  }

  /** Makes `key` due after `delayMs`, unless it is due sooner already. False as in `add`. */
  addAfter(key: string, delayMs: DurationMs): boolean {
    if (!this.#hasRoomFor(key)) return false;
    const dueAtMs = this.#clock.monotonicMs() + delayMs;
    const present = this.#delayed.get(key);
    if (this.#waitingSinceMs.has(key) || (present !== undefined && present.dueAtMs <= dueAtMs)) return true;
    present?.cancel.abort();
    const delayed: Delayed = { dueAtMs, cancel: new AbortController() };
    this.#delayed.set(key, delayed);
    // A sleep never rejects; if it did, that bug should end the process as any other.
    this.#clock.sleep(delayMs, delayed.cancel.signal).then(() => this.#endDelay(key, delayed), rethrow);
    return true;
  }

  /** The key that is due longest; waits for one. Undefined when `signal` aborts or the queue is stopped. */
  async take(signal?: AbortSignal): Promise<QueueTurn | undefined> {
    if (this.#isStopped || signal?.aborted === true) return undefined;
    for (const key of this.#waitingSinceMs.keys()) return this.#begin(key);
    return await this.#takers.wait(signal);
  }

  /** Ends a turn, exactly once. */
  finish(turn: QueueTurn, outcome: TurnOutcome): void {
    const running = this.#running.get(turn.key);
    assert(running !== undefined, "a turn that is finished once");
    this.#running.delete(turn.key);
    if (this.#isStopped) return;
    const delayMs = outcome.kind === "done" ? this.#settleDone(turn.key, outcome.requeueAfterMs) : this.#settleFailed(turn, outcome.delayMsMin);
    if (running.isDirty) this.#enqueue(turn.key);
    else if (delayMs !== undefined) this.addAfter(turn.key, delayMs);
  }

  /** Forgets everything that waits and sends every taker away; running turns may still be finished. Idempotent. */
  stop(): void {
    this.#isStopped = true;
    for (const { cancel } of this.#delayed.values()) cancel.abort();
    this.#delayed.clear();
    this.#waitingSinceMs.clear();
    this.#failureCounts.clear();
    this.#takers.dismiss();
  }

  #settleDone(key: string, requeueAfterMs: DurationMs | undefined): DurationMs | undefined {
    this.#failureCounts.delete(key);
    return requeueAfterMs;
  }

  #settleFailed(turn: QueueTurn, delayMsMin: DurationMs | undefined): DurationMs {
    const failureCount = turn.failureCount + 1;
    this.#failureCounts.set(turn.key, failureCount);
    const delayMs = backoffMs(this.#backoff, failureCount, this.#random.fraction());
    return Math.max(delayMs, delayMsMin ?? 0) as DurationMs;
  }

  #enqueue(key: string): void {
    this.#cancelDelayed(key);
    this.#waitingSinceMs.set(key, this.#clock.monotonicMs());
    if (this.#takers.size > 0) this.#takers.serve(this.#begin(key));
  }

  #begin(key: string): QueueTurn {
    const sinceMs = this.#waitingSinceMs.get(key) ?? this.#clock.monotonicMs();
    this.#waitingSinceMs.delete(key);
    this.#cancelDelayed(key);
    const failureCount = this.#failureCounts.get(key) ?? 0;
    this.#running.set(key, { isDirty: false });
    return { key, failureCount, waitedMs: (this.#clock.monotonicMs() - sinceMs) as DurationMs };
  }

  #endDelay(key: string, delayed: Delayed): void {
    if (delayed.cancel.signal.aborted) return;
    this.#delayed.delete(key);
    this.add(key);
  }

  #cancelDelayed(key: string): void {
    this.#delayed.get(key)?.cancel.abort();
    this.#delayed.delete(key);
  }

  #hasRoomFor(key: string): boolean {
    if (this.#isStopped) return false;
    const isKnown = this.#waitingSinceMs.has(key) || this.#delayed.has(key) || this.#running.has(key);
    return isKnown || this.#waitingSinceMs.size + this.#delayed.size + this.#running.size < this.#keyCountMax;
  }
}

function rethrow(error: unknown): never {
  throw error;
}
