import { describe, expect, test } from "vitest";
import { feedbackTimeoutMsMin } from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { decideTimeout, isUnanswered, type FeedbackPolicy, type TimeoutDecision } from "../../src/timer/decide-timeout.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import { at, elapsed, receipt, terminal, waiting } from "./records.ts";

const timeoutMs = feedbackTimeoutMsMin;
const policy = (onTimeout: FeedbackPolicy["onTimeout"], ms: DurationMs = timeoutMs): FeedbackPolicy => ({ timeoutMs: ms, onTimeout });
/** The records elapse a second after their start. */
const upAtMs = 1_000 + timeoutMs;
const leave: TimeoutDecision = { kind: "leave" };
const failed = terminal({
  outcome: "failed", failure: { code: "feedback_timeout", message: "no feedback came within 300 seconds" }, endedAtMs: at(upAtMs), elapsedAtMs: at(1_000),
});
const { receipt: _receipt, ...failedAtOnce } = failed;

describe("an elapsed timer without feedback", () => {
  const rows: readonly { name: string; record?: TimerRecord; policy: FeedbackPolicy; nowMs?: number; want: TimeoutDecision; because: string }[] = [
    { name: "is left when nothing is asked for", policy: policy("none"), want: leave, because: "it is only counted" },
    { name: "is left a millisecond before its time is up", policy: policy("fail"), nowMs: upAtMs - 1, want: leave, because: "never before: the clock given is a lower bound" },
    { name: "is ended when its time is up", policy: policy("fail"), want: { kind: "fail", next: failedAtOnce, writes: ["state", "archive", "remove"] }, because: "that is the policy" },
    {
      name: "is ended with the receipt of its last retry", record: elapsed({ generation: 1, fence: 4, armedFence: 3, receipt: receipt() }), policy: policy("fail"),
      want: { kind: "fail", next: { ...failed, generation: 1, fence: 5, receipt: receipt() }, writes: ["state", "archive", "remove"] },
      because: "a second copy of that retry may still come, and is a duplicate",
    },
    {
      name: "is ended although it was resumed again", record: elapsed({ resumedAgainAtMs: at(1_500) }), policy: policy("fail"),
      want: { kind: "fail", next: failedAtOnce, writes: ["state", "archive", "remove"] }, because: "the policy was changed since",
    },
    {
      name: "is resumed again under its fence", policy: policy("resume_again"),
      want: { kind: "resume_again", next: elapsed({ resumedAgainAtMs: at(upAtMs) }), writes: ["state", "resume"] }, because: "I2: one generation has one fence",
    },
    { name: "is resumed again once only", record: elapsed({ resumedAgainAtMs: at(upAtMs) }), policy: policy("resume_again"), nowMs: 10 * upAtMs, want: leave, because: "the record says that it was" },
    { name: "and its time is counted from each elapse", record: elapsed({ generation: 1, fence: 4, armedFence: 3, elapsedAtMs: at(upAtMs) }), policy: policy("fail"), want: leave, because: "an accepted retry is an answer" },
    { name: "that waits is none", record: waiting(), policy: policy("fail"), nowMs: 10 * upAtMs, want: leave, because: "its resume is not due yet" },
    { name: "that has ended is none", record: terminal(), policy: policy("resume_again"), nowMs: 10 * upAtMs, want: leave, because: "I7" },
  ];
  test.each(rows)("$name", ({ record = elapsed(), policy: asked, nowMs = upAtMs, want, because }) => {
    expect(decideTimeout(record, asked, at(nowMs)), because).toEqual(want);
  });
});

test("counts as unanswered from the time on, whatever the policy does about it", () => {
  for (const onTimeout of ["none", "fail", "resume_again"] as const) {
    expect([upAtMs - 1, upAtMs].map((nowMs) => isUnanswered(elapsed(), policy(onTimeout), at(nowMs)))).toEqual([false, true]);
  }
  expect(isUnanswered(elapsed({ resumedAgainAtMs: at(upAtMs) }), policy("resume_again"), at(upAtMs))).toBe(true);
});
