/**
 * The worker processes of one resource: as many as wanted, with the wanted configuration, new before old.
 *
 * The steps are those of roll.ts; this file carries them out and knows how far they have come.
 */
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import type { DurationMs, MonotonicMs } from "../base/units.ts";
import { nextRollStep } from "./roll.ts";
import { WorkerSlot, type WorkerLauncher, type WorkerNotice } from "./worker-slot.ts";

/** The workers as they are wanted. Equal hashes mean equal configurations. */
export type PoolPlan = {
  readonly replicas: number;
  readonly hash: string;
  readonly launcher: WorkerLauncher;
  readonly minReadyMs: DurationMs;
  readonly graceMs: DurationMs;
  /** A rollout that makes no progress for this long counts as stuck. */
  readonly progressDeadlineMs: DurationMs;
};

/** The workers as they are. */
export type PoolFacts = {
  readonly wantedReplicas: number;
  readonly hash: string;
  readonly minReadyMs: DurationMs;
  readonly progressDeadlineMs: DurationMs;
  readonly replicas: number;
  readonly updatedReplicas: number;
  readonly readyReplicas: number;
  readonly hasExceededDeadline: boolean;
  readonly problem: string;
  readonly workers: readonly { readonly slot: string; readonly pid?: number; readonly isReady: boolean; readonly isUpdated: boolean }[];
};

export type PoolOptions = {
  readonly clock: Clock;
  readonly random: Random;
  readonly onNotice: (notice: WorkerNotice) => void;
  /** Called after each change of the facts. */
  readonly onChange: () => void;
};

/** The pool of one resource; every change of a worker leads to its next step. */
export class WorkerPool {
  readonly #options: PoolOptions;
  readonly #running = new Set<Promise<void>>();
  readonly #hurry = new AbortController();
  readonly #slots = new Map<string, WorkerSlot>();
  #plan: PoolPlan | undefined;
  #startedCount = 0;
  #progressAtMs: MonotonicMs;
  #progressMark = "";
  #isTurning = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#progressAtMs = options.clock.monotonicMs();
  }

  /** Wants these workers from now on. Wanting the same again changes nothing. */
  want(plan: PoolPlan): void {
    const isSame = this.#plan !== undefined && this.#plan.hash === plan.hash && this.#plan.replicas === plan.replicas;
    this.#plan = plan;
    if (!isSame) this.#progressAtMs = this.#options.clock.monotonicMs();
    this.#turn();
  }

  /** Undefined before anything was wanted. */
  facts(): PoolFacts | undefined {
    const plan = this.#plan;
    if (plan === undefined) return undefined;
    const live = [...this.#slots.values()].filter(({ isStopping }) => !isStopping);
    const updated = live.filter(({ hash }) => hash === plan.hash);
    const available = live.filter(({ isAvailable }) => isAvailable);
    const isDone = updated.length === plan.replicas && available.length === plan.replicas && live.length === plan.replicas;
    return {
      wantedReplicas: plan.replicas,
      hash: plan.hash,
      minReadyMs: plan.minReadyMs,
      progressDeadlineMs: plan.progressDeadlineMs,
      replicas: live.length,
      updatedReplicas: updated.length,
      readyReplicas: available.length,
      hasExceededDeadline: !isDone && this.#options.clock.monotonicMs() - this.#progressAtMs > plan.progressDeadlineMs,
      problem: live.map(({ problem }) => problem).find((problem) => problem !== "") ?? "",
      workers: live.map(({ slot, pid, isReady, hash }) => ({ slot, ...(pid === undefined ? {} : { pid }), isReady, isUpdated: hash === plan.hash })),
    };
  }

  /** Stops every worker with its grace, or at once when `hurry` aborts. Idempotent. */
  async stop(hurry?: AbortSignal): Promise<void> {
    hurry?.addEventListener("abort", () => { this.#hurry.abort(); }, { once: true });
    if (hurry?.aborted === true) this.#hurry.abort();
    this.#plan = undefined;
    for (const slot of this.#slots.values()) slot.stop();
    await Promise.all(this.#running);
  }

  /** Ends every worker without waiting. */
  kill(): void {
    this.#plan = undefined;
    for (const slot of this.#slots.values()) slot.kill();
  }

  /** Takes the next step. A step itself changes slots, which asks for another turn: hence the guard. */
  #turn(): void {
    const plan = this.#plan;
    if (plan === undefined || this.#isTurning) return;
    this.#isTurning = true;
    const step = nextRollStep([...this.#slots.values()], plan);
    for (const name of step.stopSlots) this.#slots.get(name)?.stop();
    for (let count = 0; count < step.startCount; count += 1) this.#start(plan);
    this.#isTurning = false;
    this.#noteProgress(plan);
    this.#options.onChange();
  }

  #start(plan: PoolPlan): void {
    const { clock, random, onNotice } = this.#options;
    this.#startedCount += 1;
    const slot = `w${String(this.#startedCount)}`;
    const { hash, launcher, minReadyMs, graceMs } = plan;
    const worker = new WorkerSlot({ slot, hash, launcher, minReadyMs, graceMs, clock, random, onNotice, onChange: () => { this.#turn(); } });
    this.#slots.set(slot, worker);
    // A slot ends only when it is stopped; if it throws, that is a bug, and an unhandled rejection ends the process.
    const running = this.#run(worker).finally(() => { this.#running.delete(running); });
    this.#running.add(running);
  }

  async #run(worker: WorkerSlot): Promise<void> {
    await worker.run(this.#hurry.signal);
    this.#slots.delete(worker.slot);
    this.#turn();
  }

  /** Progress is a change in how many workers are updated or available. */
  #noteProgress(plan: PoolPlan): void {
    const slots = [...this.#slots.values()];
    const updated = slots.filter(({ hash }) => hash === plan.hash);
    const mark = `${plan.hash} ${String(slots.length)} ${String(updated.length)} ${String(updated.filter(({ isAvailable }) => isAvailable).length)}`;
    if (mark === this.#progressMark) return;
    this.#progressMark = mark;
    this.#progressAtMs = this.#options.clock.monotonicMs();
  }
}
