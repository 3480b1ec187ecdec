// A broker in memory with ended timers on it, and what collection needs to act on them.

import { decisionAgeMsMax, orphanAgeMs } from "../../src/base/limits.ts";
import type { EpochMs } from "../../src/base/units.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { seededRandom } from "../../src/system/random.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import type { WorkerPorts } from "../../src/worker/ports.ts";
import { collectOnce, type CollectPassOptions, type CollectPassResult } from "../../src/worker/retention-pass.ts";
import { Collector } from "../../src/worker/retention.ts";
import type { RetentionSettings } from "../../src/worker/settings.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { FakeLog } from "../fakes/log.ts";
import { ms, terminalRecord, testTimer, type TestTimer } from "../fakes/timers.ts";
import { FakeWorkerMetrics } from "../fakes/worker-metrics.ts";
import { FakeBroker } from "../fakes/worker-ports.ts";

export const archiveAgeMs = ms(3_600_000);
export const dedupeMs = ms(7_200_000);

export class RetentionWorld {
  readonly clock = new SteppedClock();
  readonly broker = new FakeBroker(this.clock);
  readonly log = new FakeLog();
  readonly metrics = new FakeWorkerMetrics();

  /** Timers that have ended and were archived now. */
  end(count: number, from = 0): readonly TestTimer[] {
    const timers = Array.from({ length: count }, (_, index) => testTimer(from + index));
    for (const timer of timers) {
      this.broker.snapshots.set(timer.key, timer.snapshot);
      this.broker.archive.set(timer.key, encodeRecord(terminalRecord(timer)));
    }
    return timers;
  }

  /** What admission says of the data streams. */
  isDataWhole = true;

  context(ports: WorkerPorts = this.broker.ports) {
    return { ports, clock: this.clock, sha256: systemSha256, log: this.log, metrics: this.metrics, dedupeMs };
  }

  /** One pass; time is stepped until it ends. */
  async pass(over: Partial<CollectPassOptions> = {}, ports?: WorkerPorts): Promise<CollectPassResult> {
    let isOver = false;
    const running = collectOnce(this.context(ports), {
      nowMs: this.clock.nowMs(), archiveAgeMs, orphanAgeMs, walksSnapshots: false, signal: new AbortController().signal, holdLease: () => Promise.resolve(true), ...over,
    }).finally(() => { isOver = true; });
    while (!isOver) await this.clock.advance(decisionAgeMsMax / 100);
    return await running;
  }

  collector(settings: Partial<RetentionSettings> = {}, workerId = "w1"): Collector {
    return new Collector({ ports: this.broker.ports, clock: this.clock, random: seededRandom(1), sha256: systemSha256, log: this.log, metrics: this.metrics, workerId, isDataWhole: () => this.isDataWhole, settings: { archiveAgeMs, dedupeMs, ...settings } });
  }

  /** What stands in a snapshot's place. */
  inPlaceOf({ key }: TestTimer) {
    return this.broker.snapshots.last(key)?.value;
  }

  agoMs(durationMs: number): EpochMs {
    return (this.clock.nowMs() - durationMs) as EpochMs;
  }
}
