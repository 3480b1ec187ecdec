// A flow at a steady pace, and how long each of its steps took: start to outcome, due to resume in hand, feedback to outcome.
//
// One reader serves all loads, because resumes have one subject: it completes what belongs to a load and acknowledges the rest.

import type { TimerClient } from "../../src/client/client.ts";
import type { Resume } from "../../src/protocol/resume.ts";

/** What a timer goes through, as a flow sees it. */
export type Step = "start" | "wake" | "feedback";
/** Milliseconds, one per timer that took the step. */
export type Latencies = Readonly<Record<Step, readonly number[]>>;

/** A flow's pace, and how long it is kept up. */
export type LoadOptions = { readonly flow: string; readonly perSecond: number; readonly seconds: number; readonly delayMs?: number };

/** Loads over one client. */
export class PacedLoads {
  readonly #client: TimerClient;
  readonly #stopping = new AbortController();
  readonly #elapsed = new Map<string, (resume: Resume) => void>();
  readonly #reading: Promise<void>;
  #loadCount = 0;

  constructor(client: TimerClient) {
    this.#client = client;
    this.#reading = this.#read();
  }

  /** Resolves once every timer of the load has ended; rejects when one does not. */
  async run({ flow, perSecond, seconds, delayMs = 500 }: LoadOptions): Promise<Latencies> {
    this.#loadCount += 1;
    const name = `${flow}-${String(this.#loadCount)}`;
    const latencies = { start: [] as number[], wake: [] as number[], feedback: [] as number[] };
    const timers: Promise<void>[] = [];
    const beganAtMs = performance.now();
    for (let index = 0; index < perSecond * seconds; index += 1) {
      const waitMs = beganAtMs + (index * 1_000) / perSecond - performance.now();
      if (waitMs > 1) await new Promise((resolve) => { setTimeout(resolve, waitMs); });
      timers.push(this.#live({ flow, execution: `${name}-${String(index)}`, delayMs }, latencies));
    }
    await Promise.all(timers);
    return latencies;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#reading;
  }

  async #live(timer: { readonly flow: string; readonly execution: string; readonly delayMs: number }, latencies: Record<Step, number[]>): Promise<void> {
    const elapsed = new Promise<Resume>((resolve) => { this.#elapsed.set(timer.execution, resolve); });
    const startedAtMs = performance.now();
    const started = await this.#client.start(
      { flow: { id: timer.flow, version: "1" }, execution: timer.execution, node: "n", edges: { start: "s", elapsed: "e" }, wait: { delayMs: timer.delayMs }, body: Buffer.from(timer.execution) },
      { awaitOutcome: true, outcomeTimeoutMs: 120_000 },
    );
    if (started.outcome?.kind !== "accepted") throw new Error(`${timer.execution} was not accepted: ${JSON.stringify(started.outcome)}`);
    latencies.start.push(performance.now() - startedAtMs);
    const resume = await elapsed;
    latencies.wake.push(Date.now() - resume.dueAtMs);
    const answeredAtMs = performance.now();
    const completed = await this.#client.complete(resume, { outcomeTimeoutMs: 120_000 });
    if (completed.outcome?.kind !== "accepted") throw new Error(`${timer.execution} was not completed: ${JSON.stringify(completed.outcome)}`);
    latencies.feedback.push(performance.now() - answeredAtMs);
  }

  async #read(): Promise<void> {
    for await (const delivery of this.#client.resumes({ lookahead: 1_000, signal: this.#stopping.signal })) {
      delivery.ack();
      const { resume } = delivery;
      this.#elapsed.get(resume.lineage.execution)?.(resume);
      this.#elapsed.delete(resume.lineage.execution);
    }
  }
}

/** The value that a share of `values` does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
