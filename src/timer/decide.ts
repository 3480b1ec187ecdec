/**
 * The rules of a timer's life: a total, synchronous function from what is known and what arrived to what is to be done.
 *
 * It reads no clock, does no IO and never throws for a normal outcome. What it knows of the store is a view with a
 * basis: how the view was read bounds what may be concluded from it.
 *
 * R1 A view read from any replica may lead to an accept, since the compare-and-set guards that, and to a refusal of
 *    older input, since generations and fences only grow. Everything else needs the leader (`unsure`).
 * R2 Absence, `not_elapsed` and input newer than the record are concluded only from a second look at the leader.
 * R3 A decision lists its writes in the order in which they have to become durable; a crash between any two of them
 *    leaves something that the same input, or the sweep, completes.
 */
import { unreachable } from "../base/assert.ts";
import type { EpochMs } from "../base/units.ts";
import { decideFeedback } from "./decide-feedback.ts";
import { decideStart } from "./decide-start.ts";
import { decideWake } from "./decide-wake.ts";
import type { TimerInput } from "./input.ts";
import type { ContentHash, TerminalRecord, TimerRecord } from "./record.ts";

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
  /** Hash of the stored snapshot; read only when no record was found. */
  readonly snapshot?: ContentHash;
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
  | { readonly outcome: "accepted" | "duplicate"; readonly record: TimerRecord }
  | { readonly outcome: "rejected"; readonly code: RejectionCode; readonly record?: TimerRecord };

export type Decision =
  /** The record becomes `next`; `writes` contains "state". */
  | { readonly kind: "advance"; readonly next: TimerRecord; readonly writes: readonly Write[]; readonly answer: Answer }
  /** The record stays; `writes` completes what an earlier transition may have left half done. All are idempotent. */
  | { readonly kind: "complete"; readonly record: TimerRecord; readonly writes: readonly Write[]; readonly answer: Answer }
  /** Nothing to do and nobody to tell. */
  | { readonly kind: "ignore"; readonly reason: "older" | "absent" | "newer" | "ended" }
  | { readonly kind: "reject"; readonly answer: Extract<Answer, { outcome: "rejected" }> }
  /** A wake came before its timer is due: keep it until then. */
  | { readonly kind: "hold"; readonly dueAtMs: EpochMs }
  /** The view does not suffice: look again from at least this basis. */
  | { readonly kind: "unsure"; readonly needs: "leader" | "leader_again" };

/**
 * Decides one input. `brokerNowMs` is a lower bound of the broker's clock: a timer is due only once the bound has
 * reached its due time (I1). It is not used for commands, whose own JetStream timestamps are exact.
 */
export function decide(view: TimerView, input: TimerInput, brokerNowMs: EpochMs): Decision {
  switch (input.kind) {
    case "start":
      return decideStart(view, input);
    case "wake":
      return decideWake(view, input, brokerNowMs);
    case "feedback":
      return decideFeedback(view, input);
    default:
      return unreachable(input);
  }
}
