// A broker in memory with sweepers on it, and timers as their starts and transitions left them.

import { expect } from "vitest";
import { sweepStuckRecheckMs, sweepTickMs, wakeLeadMs } from "../../src/base/limits.ts";
import type { EpochMs } from "../../src/base/units.ts";
import { leaseKeys } from "../../src/protocol/names.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { seededRandom } from "../../src/system/random.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import type { FeedbackPolicy } from "../../src/timer/decide-timeout.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import { decodeSummary } from "../../src/worker/sweep-summary.ts";
import { Sweeper } from "../../src/worker/sweep.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { FakeLog } from "../fakes/log.ts";
import { ms, testTimer, waitingRecord, type TestTimer } from "../fakes/timers.ts";
import { FakeWorkerMetrics } from "../fakes/worker-metrics.ts";
import { FakeBroker, nameOf } from "../fakes/worker-ports.ts";

export const intervalMs = 300_000;
export const graceMs = 5_000;
/** Long enough for a turn and the second look at stuck schedules. */
export const oneSweepMs = sweepStuckRecheckMs + 1_000;
/** Until the next regular sweep has certainly ended. */
export const nextSweepMs = intervalMs + 2 * sweepTickMs + oneSweepMs;

export class SweepWorld implements AsyncDisposable {
  readonly feedback: FeedbackPolicy | undefined;
  readonly clock = new SteppedClock();
  readonly broker = new FakeBroker(this.clock);
  readonly log = new FakeLog();
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];

  constructor(feedback?: FeedbackPolicy) {
    this.feedback = feedback;
  }

  /** Starts a worker's sweeper; its start-up sweep runs as soon as time is stepped. */
  start(workerId: string) {
    const metrics = new FakeWorkerMetrics();
    const { clock, log } = this;
    const sweeper = new Sweeper({
      ports: this.broker.ports, clock, random: seededRandom(1), sha256: systemSha256, log, metrics, workerId,
      settings: { intervalMs: ms(intervalMs), graceMs: ms(graceMs) }, feedback: this.feedback,
    });
    const own = new AbortController();
    const running = sweeper.run(AbortSignal.any([this.#stop.signal, own.signal]));
    this.#running.push(running);
    return { metrics, sweeper, running, stop: () => { own.abort(); } };
  }

  /** One worker's start-up sweep. */
  async sweep(workerId = "w1") {
    const { metrics, stop } = this.start(workerId);
    await this.clock.advance(oneSweepMs);
    stop();
    await this.clock.advance(0);
    return metrics;
  }

  /** A timer as its start and its transitions left it. */
  put(timer: TestTimer, record: TimerRecord): TestTimer {
    this.broker.snapshots.set(timer.key, timer.snapshot);
    this.broker.state.set(timer.key, encodeRecord(record));
    return timer;
  }

  async arm(timer: TestTimer, record: TimerRecord): Promise<void> {
    await this.broker.ports.schedules.arm([armItemOf(timer, record)]);
  }

  /** Armed timers whose schedules the broker does not fire. */
  async armStuck(timers: readonly TestTimer[]): Promise<void> {
    await this.broker.ports.schedules.arm(timers.map((timer) => armItemOf(timer, waitingRecord(timer))));
    for (const { key } of timers) this.broker.stuck.add(nameOf(key));
  }

  summary() {
    return decodeSummary(this.broker.notes.get(leaseKeys.sweepSummary)?.text ?? "");
  }

  /** Notes that were stored; attempts that lost their race do not count. */
  noteWriteCount(): number {
    return Math.max(...[...this.broker.notes.values()].map(({ revision }) => revision));
  }

  /** A sweep that finds everything in order, so that the next one knows what was before. */
  async settleFirst(): Promise<void> {
    await this.sweep("first");
    expect(this.summary()).toBeDefined();
  }

  armed(timer: TestTimer) {
    return this.broker.schedules.get(nameOf(timer.key));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.clock.advance(oneSweepMs);
    await Promise.allSettled(this.#running);
    expect(this.clock.sleeperCount).toBe(0);
  }
}

const armItemOf = ({ key }: TestTimer, { generation, fence, dueAtMs }: TimerRecord) => ({ key, generation, fence, dueAtMs, fireAtMs: (dueAtMs - wakeLeadMs) as EpochMs });

export const many = (count: number, options: Parameters<typeof testTimer>[1] = {}) => Array.from({ length: count }, (_, index) => testTimer(index, options));
