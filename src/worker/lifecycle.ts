/**
 * Takes a worker from its first look at the broker to its orderly end.
 *
 * It owns the phase, and with it readiness. It does not own the loops: they are handed to it to be drained. The order
 * of the end: readiness goes, nothing more is taken, what is in flight finishes within the grace, the rest is handed
 * back to the broker, the sources are closed. Whoever runs the process closes the connection after that.
 */
import type { Clock } from "../base/clock.ts";
import { sourceCloseMsMax, topologyCheckMsMax, topologyCheckMsMin } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import type { DurationMs } from "../base/units.ts";
import { backoffMs } from "../concurrency/backoff.ts";
import { untilAborted } from "../concurrency/until-aborted.ts";
import { advance, initialLifecycle, type LifecycleEvent, type LifecyclePhase, type LifecycleState } from "./lifecycle-state.ts";
import type { Source, TopologyFinding, TopologyProbe } from "./ports.ts";

/** What a lifecycle is made of. */
export type LifecycleOptions = { readonly topology: TopologyProbe; readonly clock: Clock; readonly log: Log };

/** What a worker learns from a topology that it can use. */
export type UsableTopology = Extract<TopologyFinding, { kind: "usable" }>;

/** Something that ends in order: takes no more, finishes what it can within the grace, hands back the rest. */
export type Drainable = { readonly name: string; stop(graceMs: DurationMs): Promise<void> };

export type DrainOptions = {
  readonly parts: readonly Drainable[];
  readonly sources: readonly Source[];
  readonly graceMs: DurationMs;
  /** Aborts when the process was told a second time: nothing is waited for any more. */
  readonly hurry: AbortSignal;
};

/** A worker's phase, and its orderly beginning and end. */
export class Lifecycle {
  readonly #options: LifecycleOptions;
  #state: LifecycleState = initialLifecycle;

  constructor(options: LifecycleOptions) {
    this.#options = options;
  }

  get phase(): LifecyclePhase {
    return this.#state.phase;
  }

  isReady(): boolean {
    return this.#state.phase === "serving";
  }

  /** Why it is not ready; empty when it is. */
  problems(): readonly string[] {
    return this.#state.problems;
  }

  /** Asks until everything that a worker needs is there; undefined when `signal` aborts first. */
  async waitUsable(signal: AbortSignal): Promise<UsableTopology | undefined> {
    for (let checkCount = 1; !signal.aborted; checkCount += 1) {
      const finding = await this.#options.topology.check();
      this.#on({ kind: "topology_checked", finding });
      if (finding.kind === "usable") return finding;
      // The middle of the range: workers that start together are spread by their own start-up already.
      await this.#options.clock.sleep(backoffMs({ minMs: topologyCheckMsMin, maxMs: topologyCheckMsMax }, checkCount, 0.5), signal);
    }
    return undefined;
  }

  /** Ends everything in order; resolves at the latest after the grace and a moment, or when `hurry` aborts. */
  async drain({ parts, sources, graceMs, hurry }: DrainOptions): Promise<void> {
    const { clock, log } = this.#options;
    this.#on({ kind: "stop_requested" });
    const beganAtMs = clock.monotonicMs();
    const hurried = untilAborted(hurry);
    await Promise.race([Promise.all(parts.map((part) => part.stop(graceMs))), hurried]);
    const enough = new AbortController();
    const closing = Promise.all(sources.map((source) => source.close()));
    await Promise.race([closing, clock.sleep(sourceCloseMsMax, enough.signal), hurried]);
    enough.abort();
    this.#on({ kind: "drained" });
    log.info({ durationMs: Math.round(clock.monotonicMs() - beganAtMs), hurried: hurry.aborted }, "Drained the worker");
  }

  #on(event: LifecycleEvent): void {
    const before = this.#state;
    this.#state = advance(before, event);
    const { phase, problems } = this.#state;
    if (phase === before.phase && problems.join() === before.problems.join()) return;
    if (phase === "serving") this.#options.log.info({}, "Found everything the worker needs");
    if (phase === "starting") this.#options.log.warn({ problems }, "Waited for what the worker needs");
    if (phase === "draining") this.#options.log.info({}, "Began to drain the worker");
  }
}
