/** Processes of a simulation: a clock of their own each, a connection, an end that nothing survives. */
import type { Clock } from "../../src/base/clock.ts";
import type { Log } from "../../src/base/log.ts";
import type { DurationMs, EpochMs, MonotonicMs } from "../../src/base/units.ts";
import { openWorkerPorts } from "../../src/nats/worker-ports.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { topologyRules } from "../../src/topology/requirements.ts";
import type { WorkerSettings } from "../../src/worker/settings.ts";
import { Worker } from "../../src/worker/worker.ts";
import { FakeWorkerMetrics } from "../fakes/worker-metrics.ts";
import type { ModelBroker } from "../model/broker.ts";
import { ModelConnection } from "../model/connection.ts";
import type { Dice } from "./dice.ts";

/** A process's clock: its monotonic one runs a little wrong, its wall clock shows anything. */
export class ProcessClock implements Clock {
  readonly #broker: ModelBroker;
  readonly #rate: number;
  readonly #wallOffsetMs: number;
  readonly #beganAtMs: number;
  isDead = false;

  constructor(broker: ModelBroker, dice: Dice) {
    this.#broker = broker;
    // Within the drift that the product allows for, with a little to spare for rounding.
    this.#rate = 1 + dice.between(-0.00045, 0.00045);
    this.#wallOffsetMs = dice.between(-3_600_000, 3_600_000);
    this.#beganAtMs = broker.timeline.nowMs();
  }

  nowMs(): EpochMs {
    return Math.floor(this.#broker.timeline.nowMs() + this.#wallOffsetMs) as EpochMs;
  }

  monotonicMs(): MonotonicMs {
    return ((this.#broker.timeline.nowMs() - this.#beganAtMs) * this.#rate) as MonotonicMs;
  }

  sleep(duration: DurationMs, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const finish = (): void => {
        if (this.isDead) return;
        cancel();
        signal?.removeEventListener("abort", finish);
        resolve();
      };
      const cancel = this.#broker.timeline.after(duration / this.#rate, finish);
      signal?.addEventListener("abort", finish, { once: true });
    });
  }
}

export type WorkerOptions = {
  readonly broker: ModelBroker;
  readonly name: string;
  readonly dice: Dice;
  readonly settings: WorkerSettings;
  readonly log: Log;
  /** Its process has ended without a word. */
  readonly onDeath: () => void;
  /** A promise inside the program was broken. */
  readonly onBug: (error: unknown) => void;
};

/** The real worker over the model. */
export class WorkerProcess {
  readonly name: string;
  readonly connection: ModelConnection;
  readonly metrics = new FakeWorkerMetrics();
  readonly #clock: ProcessClock;
  readonly #stopping = new AbortController();
  #isStopped = false;

  constructor(options: WorkerOptions) {
    const { broker, name, dice, settings, log } = options;
    this.name = name;
    const clock = new ProcessClock(broker, dice);
    this.#clock = clock;
    this.connection = new ModelConnection({
      broker, name, monotonicMs: () => clock.monotonicMs(),
      onDeath: () => { clock.isDead = true; options.onDeath(); },
    });
    const ports = openWorkerPorts(this.connection, { clock, rules: topologyRules, lookahead: settings.lookahead });
    const worker = new Worker({ ports, settings, clock, random: dice, sha256: systemSha256, log, metrics: this.metrics });
    this.connection.onEvent(({ kind }) => { if (kind === "connected") worker.brokerReturned(); });
    const running = worker.run({ stop: this.#stopping.signal, hurry: new AbortController().signal });
    running.then(() => this.#end(), options.onBug);
  }

  isGone(): boolean {
    return this.#clock.isDead || this.#isStopped;
  }

  /** As SIGKILL does. */
  kill(): void {
    this.connection.die();
  }

  /** As SIGTERM does: it drains, then it is gone. */
  stop(): void {
    this.#stopping.abort();
  }

  async #end(): Promise<void> {
    this.#isStopped = true;
    await this.connection.close();
  }
}
