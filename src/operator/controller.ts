/**
 * Keeps every resource reconciled: keys from the cluster's watch and from broker sessions go into one queue, and a few
 * workers take them.
 *
 * 1. Level-triggered: a key says only that something may have changed; the pass looks for itself.
 * 2. Every known resource is looked at at least once per resync interval, spread by jitter.
 * 3. One poisoned resource never stops the others: a pass that throws is logged, counted and tried again after its
 *    back-off. This is the one place where a bug does not end the process, because it would end it for everyone.
 * 4. Actions that are the same twice in a row have no effect, and are repeated with a growing delay only.
 * 5. At most `reconcilesInFlightMax` passes run at once, and never two for one resource (I13).
 */
import type { Clock } from "../base/clock.ts";
import { failureIn } from "../base/failure.ts";
import { reconcileBackoffMsMax, reconcileBackoffMsMin, reconcileQueueSizeMax, reconcilesInFlightMax, resyncIntervalMs } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { DurationMs } from "../base/units.ts";
import { KeyedQueue } from "../concurrency/keyed-queue.ts";
import type { QueueTurn, TurnOutcome } from "../concurrency/keyed-queue.ts";
import { TaskGroup } from "../concurrency/task-group.ts";
import type { BrokerPort, ClusterPort, OperatorMetrics } from "./ports.ts";
import { reconcile } from "./reconcile.ts";
import type { Reconciled } from "./reconcile.ts";
import { BrokerSessions, keyFromText, keyText } from "./sessions.ts";

/** What a controller works with. */
export type ControllerOptions = {
  readonly cluster: ClusterPort;
  readonly broker: BrokerPort;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: OperatorMetrics;
  readonly log: Log;
};

/** Runs once: created, run until it is told to stop, and gone. */
export class Controller {
  readonly #options: ControllerOptions;
  readonly #queue: KeyedQueue;
  readonly #sessions: BrokerSessions;
  readonly #readiness = new Map<string, boolean>();
  readonly #lastDone = new Map<string, string>();

  constructor(options: ControllerOptions) {
    this.#options = options;
    const { clock, random } = options;
    const backoff = { minMs: reconcileBackoffMsMin, maxMs: reconcileBackoffMsMax };
    this.#queue = new KeyedQueue({ clock, random, backoff, keyCountMax: reconcileQueueSizeMax });
    this.#sessions = new BrokerSessions({ broker: options.broker, onChange: (key) => this.#add(keyText(key)) });
  }

  /** Runs until `signal` aborts; then finishes the passes under way and closes every session. */
  async run(signal: AbortSignal): Promise<void> {
    const group = new TaskGroup(signal);
    group.spawn("watch resources", (stop) => this.#options.cluster.watch({ onKey: (key) => this.#add(keyText(key)), signal: stop }));
    for (let index = 0; index < reconcilesInFlightMax; index += 1) group.spawn(`reconcile ${String(index)}`, (stop) => this.#work(stop));
    try {
      await group.join();
    } finally {
      this.#queue.stop();
      await this.#sessions.closeAll();
    }
  }

  async #work(signal: AbortSignal): Promise<void> {
    for (;;) {
      const turn = await this.#queue.take(signal);
      if (turn === undefined) return;
      this.#options.metrics.queueDepth(this.#queue.waitingCount);
      this.#queue.finish(turn, await this.#pass(turn, signal));
    }
  }

  async #pass(turn: QueueTurn, signal: AbortSignal): Promise<TurnOutcome> {
    const { clock, metrics } = this.#options;
    const startedAtMs = clock.monotonicMs();
    const result = await this.#reconciled(turn, signal);
    metrics.reconciled(result.kind, (clock.monotonicMs() - startedAtMs) as DurationMs);
    if (result.kind === "failed") return this.#failed(turn, result.error, signal);
    this.#remember(turn.key, result);
    if (result.kind === "gone") return { kind: "done" };
    if (this.#repeats(turn.key, result.did)) return { kind: "failed" };
    return { kind: "done", requeueAfterMs: result.requeueAfterMs ?? this.#resyncMs() };
  }

  async #reconciled(turn: QueueTurn, signal: AbortSignal): Promise<PassResult> {
    try {
      const result = await reconcile({ ...this.#options, sessions: this.#sessions }, keyFromText(turn.key), signal);
      return result.kind === "failed" ? { kind: "failed", error: result.failure } : result;
    } catch (error) {
      return { kind: "failed", error };
    }
  }

  #failed(turn: QueueTurn, error: unknown, signal: AbortSignal): TurnOutcome {
    if (signal.aborted) return { kind: "done" };
    const { log } = this.#options;
    const failure = failureIn(error);
    const fields = { ...keyFromText(turn.key), failureCount: turn.failureCount + 1, code: failure?.code, err: error };
    // A lost race is the ordinary price of optimistic writes; anything that is no Failure is a bug of ours.
    if (failure === undefined) log.error(fields, "Reconciled into a bug");
    else if (failure.kind === "conflict") log.debug(fields, "Lost a race");
    else log.warn(fields, "Stopped reconciling for now");
    return { kind: "failed" };
  }

  /** A server that spells a field its own way would otherwise be updated as fast as it answers. */
  #repeats(key: string, did: string | undefined): boolean {
    const before = this.#lastDone.get(key);
    if (did === undefined) this.#lastDone.delete(key);
    else this.#lastDone.set(key, did);
    if (did === undefined || did !== before) return false;
    this.#options.log.warn({ ...keyFromText(key), did }, "Repeated the same actions");
    return true;
  }

  #remember(key: string, { kind, isReady }: Exclude<PassResult, { readonly kind: "failed" }>): void {
    if (kind === "gone") this.#forget(key);
    else if (isReady !== undefined) this.#readiness.set(key, isReady);
    const readyCount = [...this.#readiness.values()].filter(Boolean).length;
    this.#options.metrics.resourcesReady({ ready: readyCount, notReady: this.#readiness.size - readyCount });
  }

  #forget(key: string): void {
    this.#readiness.delete(key);
    this.#lastDone.delete(key);
  }

  #resyncMs(): DurationMs {
    const spread = 1 - resyncJitter + 2 * resyncJitter * this.#options.random.fraction();
    return Math.round(resyncIntervalMs * spread) as DurationMs;
  }

  #add(key: string): void {
    if (!this.#queue.add(key)) this.#options.log.warn({ ...keyFromText(key) }, "Dropped a key from a full queue");
    this.#options.metrics.queueDepth(this.#queue.waitingCount);
  }
}

type PassResult = Exclude<Reconciled, { readonly kind: "failed" }> | { readonly kind: "failed"; readonly error: unknown };

/** Share of the resync interval by which looks are spread. */
const resyncJitter = 0.1;
