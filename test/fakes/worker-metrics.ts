// Worker metrics that a test can read back.

import type { DurationMs } from "../../src/base/units.ts";
import type { AdmissionReason, CollectionAction, CollectionResult, SweepAction, SweepResult, TimerCounts, WorkerMetrics } from "../../src/worker/metrics.ts";
import type { DataStream } from "../../src/worker/ports.ts";

export class FakeWorkerMetrics implements WorkerMetrics {
  /** By `<loop> <outcome>`, `rejected <code>`, `sweep <action>`. */
  readonly counts = new Map<string, number>();
  readonly latenessMs: DurationMs[] = [];
  readonly sweeps: SweepResult[] = [];
  readonly collections: CollectionResult[] = [];
  overdueMs: number | undefined;
  readonly admissions: { readonly isOpen: boolean; readonly reason: AdmissionReason }[] = [];
  readonly skews: { readonly workerMs: DurationMs; readonly leadersMs: DurationMs }[] = [];
  usagePercent: number | undefined;
  lostStreams: readonly DataStream[] = [];
  held = 0;
  found: TimerCounts | undefined;
  isConnected: boolean | undefined;
  epoch = 0;

  count(name: string): number {
    return this.counts.get(name) ?? 0;
  }

  taken(loop: string, batch: { readonly count: number }): void {
    this.#add(`${loop} taken`, batch.count);
  }

  settled(loop: string, outcome: string, count: number): void {
    this.#add(`${loop} ${outcome}`, count);
  }

  rejected(code: string, count: number): void {
    this.#add(`rejected ${code}`, count);
  }

  batchFinished(loop: string): void {
    this.#add(`${loop} batches`, 1);
  }

  resumed(latenessMs: DurationMs): void {
    this.latenessMs.push(latenessMs);
  }

  wakesHeld(count: number): void {
    this.held = count;
  }

  unreadableMet(count: number): void {
    this.#add("unreadable", count);
  }

  admission(state: { readonly isOpen: boolean; readonly reason: AdmissionReason }): void {
    this.admissions.push(state);
  }

  usage(percent: number | undefined): void {
    this.usagePercent = percent;
  }

  dataLost(streams: readonly DataStream[]): void {
    this.lostStreams = streams;
  }

  swept(result: SweepResult): void {
    this.sweeps.push(result);
  }

  sweepActed(action: SweepAction, count: number): void {
    this.#add(`sweep ${action}`, count);
  }

  timers(counts: TimerCounts): void {
    this.found = counts;
  }

  collectionActed(action: CollectionAction, count: number): void {
    this.#add(`collection ${action}`, count);
  }

  collectionEnded(result: CollectionResult): void {
    this.collections.push(result);
  }

  collectionBehind(overdueMs: DurationMs): void {
    this.overdueMs = overdueMs;
  }

  sourceStalled(loop: string): void {
    this.#add(`${loop} stalled`, 1);
  }

  clockSkew(skew: { readonly workerMs: DurationMs; readonly leadersMs: DurationMs }): void {
    this.skews.push(skew);
  }

  brokerConnected(isConnected: boolean): void {
    this.isConnected = isConnected;
  }

  brokerEpoch(epoch: number): void {
    this.epoch = epoch;
  }

  #add(name: string, count: number): void {
    this.counts.set(name, this.count(name) + count);
  }
}
