/**
 * What the worker counts. Every label is a closed union: a timer, a subject or a text is never one, so the number of
 * series is known beforehand. Calls never throw and cost next to nothing.
 */
import type { DurationMs } from "../base/units.ts";
import type { MalformedCode } from "../protocol/command.ts";
import type { RejectionCode } from "../timer/decision.ts";
import type { DataStream, SourceName } from "./ports.ts";

/** How one delivery ended for its loop. `held` and `handed_back` leave the message with the broker. */
export type DeliveryOutcome = "accepted" | "duplicate" | "rejected" | "malformed" | "ignored" | "held" | "handed_back";

/** Why a command was rejected, by the domain or before it got there. */
export type RejectedCode = RejectionCode | MalformedCode | "timer_unreadable";

/** Why starts are not taken; `open` while they are. */
export type AdmissionReason = "open" | "usage_unknown" | "data_lost" | "state_full" | "snapshots_full" | "terminals_full" | "account_full";

/** What the sweep did about one record, or why it left it alone although something seemed wrong. */
export type SweepAction =
  /** A waiting record had neither schedule nor wake. */
  | "armed"
  /** Its schedule belonged to an older transition and was replaced. */
  | "rearmed"
  /** Its schedule was overdue and did not fire: published again. */
  | "republished"
  /** An elapsed record had lost its wake: its resume was published again. */
  | "resumed"
  /** No feedback came in time: the timer was ended. */
  | "timed_out"
  /** No feedback came in time: the same resume was published once more. */
  | "resumed_again"
  /** A terminal record was archived and removed. */
  | "finished"
  /** A live record of an archived timer was removed. */
  | "removed"
  /** The record changed while it was looked at; its writer takes care of it. */
  | "superseded"
  /** A look or a write had no certain result; the next sweep tries again. */
  | "failed"
  /** What is stored contradicts itself: only a person can carry it on. */
  | "set_aside";

/** `incomplete` sweeps saw every record and could not carry on all of them. */
export type SweepResult = "completed" | "incomplete" | "interrupted" | "held_by_another" | "failed";

/** The timers as the last sweep found them. */
export type TimerCounts = {
  readonly waiting: number;
  readonly elapsed: number;
  /** Elapsed, and without feedback for longer than `spec.feedback` has it. */
  readonly unanswered: number;
  /** Waiting beyond due time and grace. */
  readonly overdue: number;
  /** Records and notes that this version cannot read. */
  readonly unreadable: number;
  readonly oldestOverdueMs: DurationMs;
  readonly oldestElapsedMs: DurationMs;
};

/** What collection did about one ended timer or snapshot, or why it kept it. */
export type CollectionAction =
  /** Archive and snapshot of an ended timer gave way to its tombstone. */
  | "collected"
  /** A snapshot that nothing belongs to was removed. */
  | "orphan_collected"
  /** A tombstone that an interrupted collection left without an end was given one. */
  | "tombstone_finished"
  /** A live record stands beside it: the sweep's business. */
  | "kept_live"
  /** What is stored contradicts itself or cannot be read: only a person can judge it. */
  | "kept_unreadable"
  /** It changed while it was looked at. */
  | "superseded"
  /** A look or a write had no certain result; the next pass tries again. */
  | "failed";

/** `incomplete` passes came to their end and had failures on the way. */
export type CollectionResult = "completed" | "incomplete" | "interrupted" | "held_by_another" | "failed";

export interface WorkerMetrics {
  /** Messages taken from a source; `oldestAgeMs` is how long the oldest of them lay there. */
  taken(loop: SourceName, batch: { readonly count: number; readonly oldestAgeMs?: DurationMs }): void;
  settled(loop: SourceName, outcome: DeliveryOutcome, count: number): void;
  rejected(code: RejectedCode, count: number): void;
  /** From taking a batch until its last message was settled; held wakes do not count as unsettled. */
  batchFinished(loop: SourceName, durationMs: DurationMs): void;
  /** A resume was stored this long after its due time. */
  resumed(latenessMs: DurationMs): void;
  wakesHeld(count: number): void;
  /** A record that a loop met and this version cannot read. */
  unreadableMet(count: number): void;
  /** Called at every decision; closes and reopens are counted where `isOpen` differs from the call before. */
  admission(state: { readonly isOpen: boolean; readonly reason: AdmissionReason }): void;
  /** Streams that have lost what they held; called at every look, mostly with none. */
  dataLost(streams: readonly DataStream[]): void;
  /** Usage of the fullest stream or of the account, in percent of its limit; undefined when unknown. */
  usage(percent: number | undefined): void;
  swept(result: SweepResult, durationMs: DurationMs): void;
  sweepActed(action: SweepAction, count: number): void;
  timers(counts: TimerCounts): void;
  collectionActed(action: CollectionAction, count: number): void;
  collectionEnded(result: CollectionResult, durationMs: DurationMs): void;
  /** How long the oldest archive record that is still there has been due for collection; 0 when none is. */
  collectionBehind(overdueMs: DurationMs): void;
  /** A source's consumer held messages and delivered none of them; it was asked anew. */
  sourceStalled(loop: SourceName): void;
  /** How far clocks are certainly apart: the brokers' from this machine's (signed, positive when ahead), and leaders' from each other. */
  clockSkew(skew: { readonly workerMs: DurationMs; readonly leadersMs: DurationMs }): void;
  brokerConnected(isConnected: boolean): void;
  /** Grows at each disconnect. */
  brokerEpoch(epoch: number): void;
}
