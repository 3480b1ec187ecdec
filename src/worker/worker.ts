/**
 * One worker: waits until the topology is usable, then runs the three loops, admission and the sweep until it is told
 * to stop, and drains them in order.
 *
 * A worker never creates topology: it has no rights to, so that no bug of it can re-create a lost stream empty.
 */
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Sha256 } from "../base/sha256.ts";
import { loopStallMsMax } from "../base/limits.ts";
import { TaskGroup } from "../concurrency/task-group.ts";
import { untilAborted } from "../concurrency/until-aborted.ts";
import { Admission } from "./admission.ts";
import { CorruptHolds } from "./corrupt-holds.ts";
import { Lifecycle, type UsableTopology } from "./lifecycle.ts";
import { stalledOf } from "./lifecycle-state.ts";
import { WorkLoop } from "./loop.ts";
import type { WorkerMetrics } from "./metrics.ts";
import type { SourceName, WorkerPorts } from "./ports.ts";
import { Collector } from "./retention.ts";
import type { WorkerSettings } from "./settings.ts";
import { Sweeper } from "./sweep.ts";

/** What a worker is made of. */
export type WorkerOptions = {
  readonly ports: WorkerPorts;
  readonly settings: WorkerSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly sha256: Sha256;
  readonly log: Log;
  readonly metrics: WorkerMetrics;
};

/** The whole worker, from its first look at the topology to its last acknowledgement. */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #lifecycle: Lifecycle;
  #loops: readonly WorkLoop[] = [];
  #sweeper: Sweeper | undefined;
  #admission: Admission | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#lifecycle = new Lifecycle({ topology: options.ports.topology, clock: options.clock, log: options.log });
  }

  /** Ready once everything it needs was there; a broker lost later does not take it back. */
  isReady(): boolean {
    return this.#lifecycle.isReady();
  }

  /** Why it is not ready, or which loops hang; empty when all is well. */
  problems(): readonly string[] {
    return this.#lifecycle.problems();
  }

  /** Loops that have stopped going round: only a new process helps. */
  stalled(): readonly string[] {
    return stalledOf(this.#loops, this.#options.clock.monotonicMs(), loopStallMsMax);
  }

  /** Data streams that have lost what they held: starts are held until they are back. Sentences for a person. */
  losses(): readonly string[] {
    return this.#admission?.losses() ?? [];
  }

  /** To be called when the broker was reached again: what was armed before may be gone. */
  brokerReturned(): void {
    this.#sweeper?.request("reconnected");
  }

  /**
   * Runs until `stop` aborts and everything is drained, or until a lost data stream was made anew, which only a new process
   * may begin with; `hurry` cuts the draining short. Rejects only for a bug.
   */
  async run({ stop, hurry }: { readonly stop: AbortSignal; readonly hurry: AbortSignal }): Promise<void> {
    const topology = await this.#lifecycle.waitUsable(stop);
    if (topology === undefined) return;
    const { admission, sweeper } = this.#open(topology);
    const group = new TaskGroup();
    group.spawn("admission", (signal) => admission.run(signal));
    group.spawn("sweep", (signal) => sweeper.run(signal));
    const collector = this.#openCollector(admission);
    if (collector !== undefined) group.spawn("collection", (signal) => collector.run(signal));
    for (const loop of this.#loops) group.spawn(loop.name, () => loop.run());
    await untilAborted(AbortSignal.any([stop, group.signal, admission.madeAnew]));
    const { ports, settings } = this.#options;
    await this.#lifecycle.drain({ parts: this.#loops, sources: Object.values(ports.sources), graceMs: settings.shutdownGraceMs, hurry });
    group.abort();
    await Promise.race([group.join(), untilAborted(hurry)]);
  }

  /** Nothing is collected unless the resource asks for it. */
  #openCollector({ isDataWhole }: Admission): Collector | undefined {
    const { ports, settings, clock, log, metrics, sha256, random } = this.#options;
    const { workerId, retention } = settings;
    return retention === undefined ? undefined : new Collector({ ports, clock, random, sha256, log, metrics, workerId, isDataWhole, settings: retention });
  }

  #open(topology: UsableTopology): { readonly admission: Admission; readonly sweeper: Sweeper } {
    const { ports, settings, clock, log, metrics, sha256, random } = this.#options;
    const admission = new Admission({ capacity: ports.capacity, data: ports.data, limits: settings.admission, clock, log, metrics });
    // The broker's own message limit may be lower than the configured one.
    const limits = { ...settings.limits, payloadBytesMax: Math.min(settings.limits.payloadBytesMax, topology.payloadBytesMax) };
    const loop = (name: SourceName) => new WorkLoop({
      name, ports, clock, sha256, log, metrics, limits, lookahead: settings.lookahead, gate: name === "start" ? admission : admission.dataGate, corruptHolds: new CorruptHolds(),
    });
    this.#loops = [loop("start"), loop("feedback"), loop("wake")];
    const sweeper = new Sweeper({ ports, clock, random, sha256, log, metrics, workerId: settings.workerId, settings: settings.sweep, feedback: settings.feedback });
    this.#sweeper = sweeper;
    this.#admission = admission;
    return { admission, sweeper };
  }
}
