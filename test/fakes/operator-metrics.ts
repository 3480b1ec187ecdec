// Operator metrics that keep what they were told.

import type { DurationMs } from "../../src/base/units.ts";
import type { OperatorMetrics, ReconcileResult } from "../../src/operator/ports.ts";

export class FakeOperatorMetrics implements OperatorMetrics {
  readonly results: ReconcileResult[] = [];
  readonly actions: string[] = [];
  readonly durationsMs: DurationMs[] = [];
  depth = 0;
  isLeading = false;
  ready = { ready: 0, notReady: 0 };

  reconciled(result: ReconcileResult, durationMs: DurationMs): void {
    this.results.push(result);
    this.durationsMs.push(durationMs);
  }

  acted(action: string, outcome: "done" | "failed"): void {
    this.actions.push(`${action} ${outcome}`);
  }

  queueDepth(count: number): void {
    this.depth = count;
  }

  leading(isLeader: boolean): void {
    this.isLeading = isLeader;
  }

  resourcesReady(counts: { readonly ready: number; readonly notReady: number }): void {
    this.ready = counts;
  }
}
