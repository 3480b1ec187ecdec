import { expect, test } from "vitest";
import type { EpochMs } from "../../src/base/units.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import type { SweepView } from "../../src/worker/sweep-decide.ts";
import { SweepTally } from "../../src/worker/sweep-tally.ts";
import { elapsedRecord, ms, terminalRecord, testTimer, waitingRecord } from "../fakes/timers.ts";

const startedAtMs = Date.UTC(2030, 0, 1);
const at = (afterStartMs: number) => (startedAtMs + afterStartMs) as EpochMs;
const view: SweepView = { beganAtMs: at(100_000), feedback: { timeoutMs: ms(30_000), onTimeout: "none" }, nowMs: at(100_000), graceMs: ms(5_000), horizonMs: at(200_000), checkedRevision: 0 };
const timer = testTimer(1, { startedAtMs });

test("timers are counted by phase, with the oldest of each, and what is neither is left out", () => {
  const tally = new SweepTally();
  const met: readonly TimerRecord[] = [
    waitingRecord(timer, { dueAtMs: at(95_000) }), waitingRecord(timer, { dueAtMs: at(94_999) }), waitingRecord(timer, { dueAtMs: at(40_000) }),
    elapsedRecord(timer, { elapsedAtMs: at(60_000) }), elapsedRecord(timer, { elapsedAtMs: at(99_000) }), terminalRecord(timer),
  ];
  met.forEach((record, index) => { tally.meet({ key: timer.key, revision: 10 - index, record: { kind: "found", value: record, revision: 10 - index } }, view); });
  tally.meet({ key: timer.key, revision: 3, record: { kind: "unreadable", problem: "is not JSON", revision: 3 } }, view);
  expect(tally.counts()).toEqual({ waiting: 3, elapsed: 2, unanswered: 1, overdue: 2, unreadable: 1, oldestOverdueMs: 60_000, oldestElapsedMs: 40_000 });
  expect(tally.revisionMax()).toBe(10);
});

test("actions are counted, and only a failed resume is a debt", () => {
  const tally = new SweepTally();
  tally.act("armed", waitingRecord(timer));
  tally.act("armed", waitingRecord(timer));
  tally.act("failed", waitingRecord(timer));
  expect(Object.fromEntries(tally.actions())).toEqual({ armed: 2, failed: 1 });
  expect(tally.hasOwedFailure()).toBe(false);
  tally.act("failed", elapsedRecord(timer));
  expect(tally.failedCount()).toBe(2);
  expect(tally.hasOwedFailure()).toBe(true);
});

test("a loose end is remembered", () => {
  const tally = new SweepTally();
  expect(tally.hasLooseEnd()).toBe(false);
  tally.leaveLoose();
  expect(tally.hasLooseEnd()).toBe(true);
});
