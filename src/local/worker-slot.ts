/**
 * One place for a worker process: it starts the process, watches its readiness, and starts it again when it ends by
 * itself, as a kubelet does with a container of a pod.
 *
 * W1 A process that ends is started again after a delay that grows with each failure in a row; being ready for a while
 *    clears its record.
 * W2 A slot that was told to stop starts nothing more; its process gets its grace and is then ended.
 */
import type { Clock } from "../base/clock.ts";
import { Failure } from "../base/failure.ts";
import {
  childProbeFailureCountMax, childProbeIntervalMs, childRecheckIntervalMs, childRestartMsMax, childRestartMsMin, childSettledMs,
} from "../base/limits.ts";
import type { Random } from "../base/random.ts";
import type { DurationMs, MonotonicMs } from "../base/units.ts";
import { backoffMs } from "../concurrency/backoff.ts";
import { describeExit, stopChild, type Child } from "./child-process.ts";

/** A started worker. */
export type RunningWorker = Child & {
  /** Whether it says that it is ready; never rejects. */
  isReady(): Promise<boolean>;
};

/** Starts worker processes. */
export interface WorkerLauncher {
  /** Rejects with a Failure when the process cannot be started. */
  launch(slot: string): Promise<RunningWorker>;
}

/** What happens to the process of a slot. */
export type WorkerNotice = { readonly slot: string } & (
  | { readonly kind: "worker_started"; readonly pid: number }
  | { readonly kind: "worker_ready"; readonly pid: number }
  | { readonly kind: "worker_unready"; readonly pid: number }
  | { readonly kind: "worker_exited"; readonly problem: string; readonly restartMs: DurationMs }
  | { readonly kind: "worker_stopped" }
);

export type SlotOptions = {
  readonly slot: string;
  /** Hash of the configuration that the launcher gives. */
  readonly hash: string;
  readonly launcher: WorkerLauncher;
  /** A worker counts as available once it has been ready for this long. */
  readonly minReadyMs: DurationMs;
  readonly graceMs: DurationMs;
  readonly clock: Clock;
  readonly random: Random;
  readonly onNotice: (notice: WorkerNotice) => void;
  /** Called after each change of what the getters say. */
  readonly onChange: () => void;
};

/** One place for a worker; `run` is its life. */
export class WorkerSlot {
  readonly slot: string;
  readonly hash: string;
  readonly #options: SlotOptions;
  readonly #stopping = new AbortController();
  #worker: RunningWorker | undefined;
  #readySinceMs: MonotonicMs | undefined;
  #isAvailable = false;
  #failureCount = 0;
  #problem = "";

  constructor(options: SlotOptions) {
    this.slot = options.slot;
    this.hash = options.hash;
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#worker?.pid;
  }

  get isReady(): boolean {
    return this.#readySinceMs !== undefined;
  }

  get isAvailable(): boolean {
    return this.#isAvailable;
  }

  get isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Why the worker is not ready, as a stable phrase; empty when there is nothing to complain about. */
  get problem(): string {
    return this.isReady ? "" : this.#problem;
  }

  /** Asks the slot to end; `run` resolves when it has. Idempotent. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Ends the process without waiting. */
  kill(): void {
    this.#stopping.abort();
    this.#worker?.kill();
  }

  /** Runs until `stop`; `hurry` cuts the grace of a stopping process short. */
  async run(hurry: AbortSignal): Promise<void> {
    const { clock, onNotice, random, slot } = this.#options;
    while (!this.isStopping) {
      const problem = await this.#runOnce(hurry);
      if (this.isStopping) break;
      this.#failureCount += 1;
      this.#problem = `worker ${slot} ${problem}`;
      const restartMs = backoffMs({ minMs: childRestartMsMin, maxMs: childRestartMsMax }, this.#failureCount, random.fraction());
      onNotice({ kind: "worker_exited", slot, problem, restartMs });
      this.#options.onChange();
      await clock.sleep(restartMs, this.#stopping.signal);
    }
    onNotice({ kind: "worker_stopped", slot });
  }

  /** From start to end of one process; says how it ended. */
  async #runOnce(hurry: AbortSignal): Promise<string> {
    const { clock, graceMs, launcher, onNotice, slot } = this.#options;
    try {
      const worker = await launcher.launch(slot);
      this.#worker = worker;
      onNotice({ kind: "worker_started", slot, pid: worker.pid });
      const ended = new AbortController();
      const exited = worker.exited.then((exit) => {
        ended.abort();
        return exit;
      });
      await this.#watch(worker, AbortSignal.any([ended.signal, this.#stopping.signal]));
      if (!ended.signal.aborted) await stopChild(worker, { clock, graceMs, signal: hurry });
      return describeExit(await exited);
    } catch (error) {
      if (error instanceof Failure) return `could not be started: ${error.message}`;
      throw error;
    } finally {
      this.#worker = undefined;
      this.#setReady(undefined);
    }
  }

  /** Follows the readiness of a process until `until` aborts. */
  async #watch(worker: RunningWorker, until: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    let silentCount = 0;
    while (!until.aborted) {
      silentCount = (await worker.isReady()) ? 0 : silentCount + 1;
      if (until.aborted) return;
      this.#judge(worker, silentCount);
      await clock.sleep(this.#isAvailable ? childRecheckIntervalMs : childProbeIntervalMs, until);
    }
  }

  #judge(worker: RunningWorker, silentCount: number): void {
    const { clock, minReadyMs, onNotice, slot } = this.#options;
    const readySinceMs = this.#readySinceMs;
    if (silentCount === 0 && readySinceMs === undefined) {
      onNotice({ kind: "worker_ready", slot, pid: worker.pid });
      this.#setReady(clock.monotonicMs());
    } else if (silentCount >= childProbeFailureCountMax && readySinceMs !== undefined) {
      onNotice({ kind: "worker_unready", slot, pid: worker.pid });
      this.#problem = `worker ${slot} is no longer ready`;
      this.#setReady(undefined);
    }
    const readyMs = this.#readySinceMs === undefined ? -1 : clock.monotonicMs() - this.#readySinceMs;
    if (readyMs >= childSettledMs) this.#failureCount = 0;
    if (readyMs >= minReadyMs && !this.#isAvailable) {
      this.#isAvailable = true;
      this.#options.onChange();
    }
  }

  #setReady(sinceMs: MonotonicMs | undefined): void {
    if ((sinceMs === undefined) === (this.#readySinceMs === undefined)) return;
    this.#readySinceMs = sinceMs;
    if (sinceMs === undefined) this.#isAvailable = false;
    this.#options.onChange();
  }
}
