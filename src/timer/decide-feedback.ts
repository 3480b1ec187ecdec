import { unreachable } from "../base/assert.ts";
import { dueAtMsMax } from "../base/limits.ts";
import { later, type EpochMs } from "../base/units.ts";
import type { Decision, RejectionCode, TimerView } from "./decision.ts";
import { sameLineage } from "./identity.ts";
import type { FeedbackInput } from "./input.ts";
import {
  inputAge, recordBase, type ElapsedRecord, type FailureCause, type Receipt, type TerminalRecord, type TimerRecord, type WaitingRecord,
} from "./record.ts";
import { followingWrites, isAtLeast } from "./writes.ts";

/** The failure code of a timer whose retry went beyond its limit. */
export const maxRetriesExceeded = "max_retries_exceeded";

/** Feedback moves an elapsed timer on or ends it; a fail also ends a waiting one. The order of checks is part of the contract. */
export function decideFeedback(view: TimerView, feedback: FeedbackInput): Decision {
  const known = view.record ?? view.archived;
  if (known === undefined) return concludeTwice(view, "unknown_timer");
  if (!sameLineage(known.lineage, feedback.lineage) || known.snapshotHash !== feedback.snapshotHash) {
    return isAtLeast(view.basis, "leader") ? reject("lineage_mismatch", known) : { kind: "unsure", needs: "leader" };
  }
  if (isReceipt(known.receipt, feedback)) return repeat(view, known);
  switch (inputAge(feedback, known)) {
    case "older":
      return reject("stale", known);
    case "newer":
      return concludeTwice(view, "unknown_fence", known);
    case "equal":
      return meet(view, known, feedback);
    default:
      return unreachable(inputAge(feedback, known) as never);
  }
}

function isReceipt(receipt: Receipt | undefined, feedback: FeedbackInput): boolean {
  if (receipt === undefined) return false;
  return receipt.verb === feedback.verb && receipt.generation === feedback.generation
    && receipt.fence === feedback.fence && receipt.hash === feedback.receiptHash;
}

/** A second copy: complete whatever its transition may have left half done. */
function repeat(view: TimerView, known: TimerRecord): Decision {
  if (!isAtLeast(view.basis, "leader")) return { kind: "unsure", needs: "leader" };
  // An elapsed record after an accepted retry is a later transition's; its resume belongs to its wake.
  const writes = view.record === undefined || known.phase === "elapsed" ? [] : followingWrites(known);
  return { kind: "complete", record: known, writes, answer: { outcome: "duplicate", record: known } };
}

function meet(view: TimerView, known: TimerRecord, feedback: FeedbackInput): Decision {
  // Feedback that names a terminal record's own fence came from nobody: no resume carries it.
  if (known.phase === "terminal") return concludeTwice(view, "unknown_fence", known);
  if (known.phase === "waiting" && feedback.verb !== "fail") return concludeTwice(view, "not_elapsed", known);
  const next = advance(known, feedback);
  return { kind: "advance", next, writes: ["state", ...followingWrites(next)], answer: { outcome: "accepted", record: next } };
}

function advance(known: WaitingRecord | ElapsedRecord, feedback: FeedbackInput): TimerRecord {
  switch (feedback.verb) {
    case "complete":
      return end(known, feedback);
    case "fail":
      return end(known, feedback, feedback.failure ?? { code: "", message: "" });
    case "retry":
      return retry(known, feedback);
    default:
      return unreachable(feedback.verb);
  }
}

function retry(known: WaitingRecord | ElapsedRecord, feedback: FeedbackInput): TimerRecord {
  const { retryDelayMs } = known;
  if (known.generation >= known.maxRetries || retryDelayMs === undefined) {
    const message = `the timer was retried ${String(known.generation)} times, which is its limit`;
    return end(known, feedback, { code: maxRetriesExceeded, message });
  }
  const dueAtMs = Math.min(later(feedback.receivedAtMs, retryDelayMs), dueAtMsMax) as EpochMs;
  return {
    ...recordBase(known), phase: "waiting", dueAtMs, retryDelayMs,
    generation: known.generation + 1, fence: known.fence + 1, receipt: receiptOf(feedback),
  };
}

function end(known: WaitingRecord | ElapsedRecord, feedback: FeedbackInput, failure?: FailureCause): TerminalRecord {
  return {
    ...recordBase(known), phase: "terminal", outcome: failure === undefined ? "completed" : "failed",
    ...(failure === undefined ? {} : { failure }),
    fence: known.fence + 1, receipt: receiptOf(feedback), endedAtMs: feedback.receivedAtMs,
    ...(known.phase === "elapsed" ? { elapsedAtMs: known.elapsedAtMs } : {}),
  };
}

function receiptOf(feedback: FeedbackInput): Receipt {
  return { verb: feedback.verb, generation: feedback.generation, fence: feedback.fence, hash: feedback.receiptHash };
}

function reject(code: RejectionCode, known: TimerRecord): Decision {
  return { kind: "reject", answer: { outcome: "rejected", code, record: known } };
}

/** R2: what a lagging replica or leader could also say is concluded only from the leader's second answer. */
function concludeTwice(view: TimerView, code: RejectionCode, known?: TimerRecord): Decision {
  if (!isAtLeast(view.basis, "leader_again")) return { kind: "unsure", needs: "leader_again" };
  return { kind: "reject", answer: { outcome: "rejected", code, ...(known === undefined ? {} : { record: known }) } };
}
