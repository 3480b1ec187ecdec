/**
 * What becomes of an elapsed timer that nobody answers: the policy of its owner, as a total function of record and time.
 *
 * T1 Never before the time is up: the clock that is given is a lower bound of the broker's.
 * T2 A timer is resumed once more at most: the record says that it was, and keeps its fence, so that both resumes are
 *    the same and an answer to either one counts.
 * T3 Feedback that comes at the same moment is not asked for here: both are writes under compare-and-set, and one wins.
 */
import { unreachable } from "../base/assert.ts";
import { later, type DurationMs, type EpochMs } from "../base/units.ts";
import type { Write } from "./decision.ts";
import { recordBase, type ElapsedRecord, type TerminalRecord, type TimerRecord } from "./record.ts";
import { followingWrites } from "./writes.ts";

/** The failure code of a timer that ended because no feedback came. */
export const feedbackTimeout = "feedback_timeout";

/** How long feedback is waited for, and what happens then. */
export type FeedbackPolicy = {
  readonly timeoutMs: DurationMs;
  /** `none` only counts such timers; `fail` ends them; `resume_again` publishes the same resume once more. */
  readonly onTimeout: "none" | "fail" | "resume_again";
};

/** What the policy asks for: the record as it is to be written, and all writes in their order. */
export type TimeoutDecision =
  | { readonly kind: "leave" }
  | { readonly kind: "fail"; readonly next: TerminalRecord; readonly writes: readonly Write[] }
  | { readonly kind: "resume_again"; readonly next: ElapsedRecord; readonly writes: readonly Write[] };

/** True when feedback has been awaited for the whole time; `brokerNowMs` is a lower bound of the broker's clock. */
export function isUnanswered(record: TimerRecord, { timeoutMs }: FeedbackPolicy, brokerNowMs: EpochMs): record is ElapsedRecord {
  return record.phase === "elapsed" && later(record.elapsedAtMs, timeoutMs) <= brokerNowMs;
}

/** Decides about a timer whose resume is stored. */
export function decideTimeout(record: TimerRecord, policy: FeedbackPolicy, brokerNowMs: EpochMs): TimeoutDecision {
  if (!isUnanswered(record, policy, brokerNowMs)) return { kind: "leave" };
  switch (policy.onTimeout) {
    case "none":
      return { kind: "leave" };
    case "fail": {
      const next = fail(record, policy, brokerNowMs);
      return { kind: "fail", next, writes: ["state", ...followingWrites(next)] };
    }
    case "resume_again": {
      if (record.resumedAgainAtMs !== undefined) return { kind: "leave" };
      const next: ElapsedRecord = { ...record, resumedAgainAtMs: brokerNowMs };
      return { kind: "resume_again", next, writes: ["state", ...followingWrites(next)] };
    }
    default:
      return unreachable(policy.onTimeout);
  }
}

/** The receipt of an earlier retry stays: its second copy is still recognised. */
function fail(record: ElapsedRecord, { timeoutMs }: FeedbackPolicy, endedAtMs: EpochMs): TerminalRecord {
  return {
    ...recordBase(record), phase: "terminal", outcome: "failed",
    failure: { code: feedbackTimeout, message: `no feedback came within ${String(Math.floor(timeoutMs / 1_000))} seconds` },
    fence: record.fence + 1, endedAtMs, elapsedAtMs: record.elapsedAtMs,
    ...(record.receipt === undefined ? {} : { receipt: record.receipt }),
  };
}
