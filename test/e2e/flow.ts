// A flow's owner for tests: starts timers through the client, completes each resume that comes, and remembers all of them.

import { connectTimers, type TimerClient, type TimersOptions } from "../../src/client/index.ts";
import { waitUntil } from "../cluster/processes.ts";

/** A resume as it came, repeated ones too. */
export type SeenResume = { readonly execution: string; readonly generation: number; readonly fence: number; readonly latenessMs: number; readonly body: Uint8Array };

/** Bytes that no text and no JSON could hold, and that tell timers apart. */
export function bodyOf(execution: string): Uint8Array {
  return new Uint8Array([0, 255, 254, ...new TextEncoder().encode(execution), 0]);
}

export class Flow implements AsyncDisposable {
  readonly seen: SeenResume[] = [];
  readonly #timers: TimerClient;
  readonly #consuming: Promise<void>;

  private constructor(timers: TimerClient) {
    this.#timers = timers;
    this.#consuming = this.#consume();
  }

  static async connect(options: TimersOptions): Promise<Flow> {
    return new Flow(await connectTimers(options));
  }

  /** Starts timers and waits until workers have accepted them. Returns their executions. */
  async start(name: string, { count, delayMs }: { readonly count: number; readonly delayMs: number }): Promise<readonly string[]> {
    return await this.#startAll(name, { count, delayMs, awaitOutcome: true });
  }

  /** Starts timers that nobody may be there to accept; the broker has them. */
  async submit(name: string, { count, delayMs }: { readonly count: number; readonly delayMs: number }): Promise<readonly string[]> {
    return await this.#startAll(name, { count, delayMs, awaitOutcome: false });
  }

  /** Waits until each of them was resumed. */
  async untilResumed(executions: readonly string[], timeoutMs: number): Promise<readonly SeenResume[]> {
    const missing = (): readonly string[] => executions.filter((execution) => !this.seen.some((resume) => resume.execution === execution));
    try {
      await waitUntil({ what: "every timer was resumed", probe: () => Promise.resolve(missing().length === 0), timeoutMs });
    } catch (error) {
      throw new Error(`${String(missing().length)} of ${String(executions.length)} timers were not resumed within ${String(timeoutMs)} ms`, { cause: error });
    }
    return this.of(executions);
  }

  /** What came of these. */
  of(executions: readonly string[]): readonly SeenResume[] {
    return this.seen.filter(({ execution }) => executions.includes(execution));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#timers.close();
    await this.#consuming;
  }

  async #startAll(name: string, { count, delayMs, awaitOutcome }: { readonly count: number; readonly delayMs: number; readonly awaitOutcome: boolean }): Promise<readonly string[]> {
    const executions = Array.from({ length: count }, (_, index) => `${name}-${String(index)}`);
    const receipts = await Promise.all(
      executions.map(async (execution) => {
        const request = { flow: { id: "orders", version: "1" }, execution, node: "wait", edges: { start: "in", elapsed: "out" }, wait: { delayMs }, body: bodyOf(execution) };
        return await this.#timers.start(request, { awaitOutcome, outcomeTimeoutMs: 30_000 });
      }),
    );
    const refused = receipts.filter(({ outcome }) => awaitOutcome && outcome?.kind !== "accepted");
    if (refused.length > 0) throw new Error(`starts were not accepted: ${JSON.stringify(refused[0])}`);
    return executions;
  }

  async #consume(): Promise<void> {
    for await (const delivery of this.#timers.resumes()) {
      const { resume, publishedAtMs } = delivery;
      const { lineage, generation, fence, dueAtMs, body } = resume;
      this.seen.push({ execution: lineage.execution, generation, fence, body, latenessMs: publishedAtMs - dueAtMs });
      const { outcome } = await this.#timers.complete(resume);
      if (outcome?.kind === "accepted" || outcome?.kind === "duplicate") delivery.ack();
      else delivery.nak(500);
    }
  }
}
