import { expect, test } from "vitest";
import { feedbackTimeoutMsDefault } from "../../src/base/limits.ts";
import { elapsedRecord, testTimer } from "../fakes/timers.ts";
import { decideTimeout, isUnanswered } from "../../src/timer/decide-timeout.ts";
import { later } from "../../src/base/units.ts";
import { feedbackPolicyDefault } from "../../src/worker/settings.ts";

test("a worker that is told nothing counts resumes as unanswered after a day, and does nothing about them", () => {
  const record = elapsedRecord(testTimer(1));
  const nowMs = later(record.elapsedAtMs, feedbackTimeoutMsDefault);
  expect(isUnanswered(record, feedbackPolicyDefault, nowMs)).toBe(true);
  expect(decideTimeout(record, feedbackPolicyDefault, nowMs)).toEqual({ kind: "leave" });
});
