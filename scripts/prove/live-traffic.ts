// Timers that are started and resumed while something else goes on, and how late their resumes were.

import type { TimerClient } from "../../src/client/client.ts";
import type { BrokerConnection } from "../../src/nats/core/jetstream.ts";
import { prepareFeedback } from "../../src/client/feedback.ts";
import { commandSubjects, consumerNames, headerNames, streamNames } from "../../src/protocol/names.ts";
import { readResume, type Resume } from "../../src/protocol/resume.ts";
import { systemSha256 } from "../../src/system/sha256.ts";

/** One resume: when it was due, and when the broker stored it. */
type Resumed = { readonly dueAtMs: number; readonly lateMs: number };

/** Starts timers at a steady rate, and takes every resume. */
export class LiveTraffic {
  readonly #resumed: Resumed[] = [];
  readonly #stop = new AbortController();
  readonly #running: readonly Promise<unknown>[];
  #startCount = 0;
  #failedCount = 0;

  constructor(options: { readonly client: TimerClient; readonly broker: BrokerConnection; readonly perSecond: number }) {
    this.#running = [this.#startTimers(options.client, options.perSecond), this.#takeResumes(options.broker)];
  }

  /** Lateness of the resumes that were due within a time. */
  latenessIn(fromMs: number, untilMs: number): { readonly count: number; readonly p50Ms: number; readonly p99Ms: number; readonly earlyCount: number } {
    const late = this.#resumed.filter(({ dueAtMs }) => dueAtMs >= fromMs && dueAtMs < untilMs).map(({ lateMs }) => lateMs).sort((a, b) => a - b);
    const at = (share: number): number => late[Math.min(late.length - 1, Math.floor(late.length * share))] ?? Number.NaN;
    return { count: late.length, p50Ms: at(0.5), p99Ms: at(0.99), earlyCount: late.filter((lateMs) => lateMs < 0).length };
  }

  counts(): { readonly started: number; readonly failed: number; readonly resumed: number } {
    return { started: this.#startCount, failed: this.#failedCount, resumed: this.#resumed.length };
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
  }

  async #startTimers(client: TimerClient, perSecond: number): Promise<void> {
    const pending = new Set<Promise<void>>();
    const beganAtMs = performance.now();
    while (!this.#stop.signal.aborted) {
      const wanted = Math.floor(((performance.now() - beganAtMs) / 1_000) * perSecond);
      for (; this.#startCount < wanted; this.#startCount += 1) {
        const request = { flow: { id: "live", version: "1" }, execution: `live-${String(this.#startCount)}`, node: "wait", edges: { start: "a", elapsed: "b" }, wait: { delayMs: 1_500 }, maxRetries: 0, body: Buffer.from("{}") };
        const one = client.start(request).then(() => undefined, () => { this.#failedCount += 1; }).finally(() => pending.delete(one));
        pending.add(one);
      }
      await pause(20);
    }
    await Promise.all(pending);
  }

  /** The flow's answer, so that timers end as they do in life. */
  #complete(broker: BrokerConnection, resume: Resume): void {
    const { lineage, generation, fence, snapshotHash } = resume;
    const message = prepareFeedback({ verb: "complete", target: { lineage, generation, fence, snapshotHash }, body: new Uint8Array(0) }, { brokerPayloadBytesMax: undefined }, systemSha256);
    const publish = broker.jetStream.publish([{ subject: commandSubjects.complete, headers: [[headerNames.context, message.contextHeader]], body: message.body, messageId: message.messageId }]);
    publish.then(([outcome]) => { if (outcome?.kind !== "stored") this.#failedCount += 1; }, () => { this.#failedCount += 1; });
  }

  async #takeResumes(broker: BrokerConnection): Promise<void> {
    const source = broker.jetStream.openSource({ stream: streamNames.resumes, consumer: consumerNames.resume, lookahead: 500 });
    while (!this.#stop.signal.aborted) {
      for (const delivered of await source.take({ max: 500, expiresMs: 1_000 as never, signal: this.#stop.signal })) {
        const read = readResume(delivered.message, systemSha256);
        if (read.ok) this.#complete(broker, read.resume);
        if (read.ok) this.#resumed.push({ dueAtMs: read.resume.dueAtMs, lateMs: Number(delivered.message.timestampNs / 1_000n) / 1_000 - read.resume.dueAtMs });
        delivered.settle({ kind: "ack" });
      }
    }
    await source.close();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => { setTimeout(resolve, ms); });
}
