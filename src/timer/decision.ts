/** What is known of a timer when an input arrives, and what may be decided about it: the two ends of `decide`. */
import type { EpochMs } from "../base/units.ts";
import type { ContentHash, TerminalRecord, TimerRecord } from "./record.ts";
import type { Tombstone } from "./tombstone.ts";

/**
 * How a view came to be, weakest first: nothing was read and absence is assumed; any replica; the leader; the leader
 * for the second time, after the recheck interval.
 */
export type Basis = "assumed" | "replica" | "leader" | "leader_again";

/** What is known of a timer when an input is decided. */
export type TimerView = {
  readonly basis: Basis;
  readonly record?: TimerRecord;
  /** Read from the leader only when no record was found. */
  readonly archived?: TerminalRecord;
  /** Hash of the stored snapshot; read only for starts, when neither a record nor an archived one was found. */
  readonly snapshot?: ContentHash;
  /** What stands in the snapshot's place once the timer was collected. */
  readonly tombstone?: Tombstone;
};

/** A durable write, in the order of the list: later ones only once earlier ones are stored. */
export type Write = "snapshot" | "state" | "schedule" | "resume" | "archive" | "unschedule" | "remove";

/** Codes of rejected commands, as answered and counted. */
export type RejectionCode =
  | "start_conflict"
  | "unknown_timer"
  | "not_elapsed"
  | "stale"
  | "unknown_fence"
  | "lineage_mismatch";

/** What is told to the sender, and to the metrics. */
export type Answer =
  | { readonly outcome: "accepted"; readonly record: TimerRecord }
  | { readonly outcome: "duplicate"; readonly record: TimerRecord | Tombstone }
  | { readonly outcome: "rejected"; readonly code: RejectionCode; readonly record?: TimerRecord | Tombstone };

export type Decision =
  /** The record becomes `next`; `writes` contains "state". */
  | { readonly kind: "advance"; readonly next: TimerRecord; readonly writes: readonly Write[]; readonly answer: Answer }
  /** The record stays; `writes` completes what an earlier transition may have left half done. All are idempotent. */
  | { readonly kind: "complete"; readonly record: TimerRecord; readonly writes: readonly Write[]; readonly answer: Answer }
  /** Nothing is left of the timer but its tombstone, and nothing to do. */
  | { readonly kind: "recall"; readonly tombstone: Tombstone; readonly answer: Answer }
  /** Nothing to do and nobody to tell. */
  | { readonly kind: "ignore"; readonly reason: "older" | "absent" | "newer" | "ended" }
  | { readonly kind: "reject"; readonly answer: Extract<Answer, { outcome: "rejected" }> }
  /** A wake came before its timer is due: keep it until then. */
  | { readonly kind: "hold"; readonly dueAtMs: EpochMs }
  /** The view does not suffice: look again from at least this basis. */
  | { readonly kind: "unsure"; readonly needs: "leader" | "leader_again" };
