/** What one sweep has met and done so far. */
import { unreachable } from "../base/assert.ts";
import { since, type DurationMs } from "../base/units.ts";
import type { TimerRecord } from "../timer/record.ts";
import type { SweepAction, TimerCounts } from "./metrics.ts";
import type { WalkedRecord } from "./ports.ts";
import { isLeftUnanswered, isOverdue, type SweepView } from "./sweep-decide.ts";

/** Counts of one pass, on their way to metrics and summary. */
export class SweepTally {
  readonly #actions = new Map<SweepAction, number>();
  #waiting = 0;
  #elapsed = 0;
  #unanswered = 0;
  #overdue = 0;
  #unreadable = 0;
  #oldestOverdueMs = 0;
  #oldestElapsedMs = 0;
  #revisionMax = 0;
  #hasOwedFailure = false;
  #hasLooseEnd = false;

  meet({ revision, record }: WalkedRecord, view: SweepView): void {
    this.#revisionMax = Math.max(this.#revisionMax, revision);
    if (record.kind === "found") this.#count(record.value, view);
    if (record.kind === "unreadable") this.#unreadable += 1;
  }

  act(action: SweepAction, record: TimerRecord): void {
    this.#actions.set(action, (this.#actions.get(action) ?? 0) + 1);
    if (action === "failed" && record.phase === "elapsed") this.#hasOwedFailure = true;
  }

  actions(): ReadonlyMap<SweepAction, number> {
    return this.#actions;
  }

  failedCount(): number {
    return this.#actions.get("failed") ?? 0;
  }

  /** True when a resume that is owed after a break could not be published again. */
  hasOwedFailure(): boolean {
    return this.#hasOwedFailure;
  }

  /** A record was noted as resumed again, or not, and whether its resume followed is not known. */
  leaveLoose(): void {
    this.#hasLooseEnd = true;
  }

  /** True when the next sweep has to look again at what this one resumed again. */
  hasLooseEnd(): boolean {
    return this.#hasLooseEnd;
  }

  /** Highest revision met. */
  revisionMax(): number {
    return this.#revisionMax;
  }

  counts(): TimerCounts {
    return {
      waiting: this.#waiting,
      elapsed: this.#elapsed,
      unanswered: this.#unanswered,
      overdue: this.#overdue,
      unreadable: this.#unreadable,
      oldestOverdueMs: this.#oldestOverdueMs as DurationMs,
      oldestElapsedMs: this.#oldestElapsedMs as DurationMs,
    };
  }

  #count(record: TimerRecord, view: SweepView): void {
    switch (record.phase) {
      case "waiting":
        this.#waiting += 1;
        if (!isOverdue(record, view)) return;
        this.#overdue += 1;
        this.#oldestOverdueMs = Math.max(this.#oldestOverdueMs, since(view.nowMs, record.dueAtMs));
        return;
      case "elapsed":
        this.#elapsed += 1;
        if (isLeftUnanswered(record, view)) this.#unanswered += 1;
        this.#oldestElapsedMs = Math.max(this.#oldestElapsedMs, since(view.nowMs, record.elapsedAtMs));
        return;
      case "terminal":
        return;
      default:
        return unreachable(record);
    }
  }
}
