import { describe, expect, test } from "vitest";
import { stateMarkerTtlMs } from "../../src/base/limits.ts";
import type { EpochMs } from "../../src/base/units.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import type { Armed } from "../../src/worker/ports.ts";
import { decideSweep, isOverdue, needsOf, stuckOf, type Evidence, type SweepDecision, type SweepNeeds, type SweepView } from "../../src/worker/sweep-decide.ts";
import { elapsedRecord, ms, terminalRecord, testTimer, waitingRecord } from "../fakes/timers.ts";

const startedAtMs = Date.UTC(2030, 0, 1);
const at = (afterStartMs: number): EpochMs => (startedAtMs + afterStartMs) as EpochMs;
/** Due a minute after its start. */
const timer = testTimer(1, { delayMs: 60_000, startedAtMs });
const waiting = waitingRecord(timer);
const retried = waitingRecord(timer, { generation: 1, fence: 3, dueAtMs: at(120_000) });
const elapsed = elapsedRecord(timer);
const terminal = terminalRecord(timer);

const view = (nowMs: number, changes: Partial<SweepView> = {}): SweepView => ({
  beganAtMs: at(nowMs), nowMs: at(nowMs), feedback: { timeoutMs: ms(86_400_000), onTimeout: "none" }, graceMs: ms(5_000), horizonMs: at(nowMs + 600_000), checkedRevision: 0, ...changes,
});
const armed = (generation: number, fence: number, sequence = 7): Armed => ({ generation, fence, dueAtMs: at(60_000), sequence });
const seen = (armedNow: { readonly schedule?: Armed; readonly wake?: Armed }): Evidence => ({ isArchived: false, armed: armedNow });

describe("what is looked at", () => {
  const nothing: SweepNeeds = { armed: false, archive: false };
  const rows: readonly { name: string; record: TimerRecord; revision?: number; view: SweepView; want: SweepNeeds; because: string }[] = [
    { name: "a timer due soon", record: waiting, view: view(0), want: { armed: true, archive: false }, because: "its schedule must be there by now" },
    { name: "a timer due far ahead", record: waiting, view: view(0, { horizonMs: at(60_000) }), want: nothing, because: "two more sweeps come before it is due" },
    { name: "an overdue timer", record: waiting, view: view(90_000), want: { armed: true, archive: false }, because: "nobody woke it" },
    { name: "a timer due this moment", record: waiting, view: view(60_001), want: { armed: true, archive: false }, because: "after a loss of schedules it would otherwise wait a whole interval" },
    { name: "an elapsed timer in normal running", record: elapsed, view: view(90_000), want: nothing, because: "its wake is acknowledged only after its resume is stored" },
    { name: "an elapsed timer after a break", record: elapsed, view: view(90_000, { owedSinceMs: at(60_000) }), want: { armed: true, archive: false }, because: "its wake may be lost" },
    { name: "a timer that elapsed long before the break", record: elapsed, view: view(90_000, { owedSinceMs: at(60_001) }), want: nothing, because: "an earlier sweep saw its resume through" },
    { name: "an ended timer", record: terminal, view: view(90_000), want: nothing, because: "its record says everything" },
    { name: "a record created long after its start", record: waiting, view: view(stateMarkerTtlMs, { horizonMs: at(0) }), want: { armed: false, archive: true }, because: "I7: the timer may have ended before" },
    { name: "a record younger than a marker lives", record: waiting, view: view(stateMarkerTtlMs - 1, { horizonMs: at(0) }), want: nothing, because: "the marker of an ended timer would still have stopped it" },
    { name: "a record that an earlier sweep has checked", record: waiting, revision: 5, view: view(stateMarkerTtlMs, { horizonMs: at(0), checkedRevision: 5 }), want: nothing, because: "once is enough" },
    { name: "a retried record", record: retried, view: view(stateMarkerTtlMs, { horizonMs: at(0) }), want: nothing, because: "a start creates generation 0" },
  ];
  test.each(rows)("$name", ({ record, revision = 1, view: context, want, because }) => {
    expect(needsOf(record, revision, context), because).toEqual(want);
  });
});

describe("a waiting record", () => {
  const rows: readonly { name: string; record?: TimerRecord; evidence: Evidence; nowMs?: number; want: SweepDecision; because: string }[] = [
    { name: "without schedule and wake is armed", evidence: seen({}), want: { kind: "arm" }, because: "I11: nothing would wake it" },
    { name: "without schedule and wake is armed when overdue too", evidence: seen({}), nowMs: 90_000, want: { kind: "arm" }, because: "I11" },
    { name: "with its schedule is left", evidence: seen({ schedule: armed(0, 1) }), want: { kind: "leave" }, because: "as it should be" },
    { name: "with its schedule, due and within the grace, is left", evidence: seen({ schedule: armed(0, 1) }), nowMs: 65_000, want: { kind: "leave" }, because: "the broker is about to fire it" },
    { name: "with its schedule, beyond the grace, is suspect", evidence: seen({ schedule: armed(0, 1) }), nowMs: 65_001, want: { kind: "suspect", sequence: 7 }, because: "the broker may have forgotten it" },
    { name: "with its wake is left", evidence: seen({ wake: armed(0, 1) }), nowMs: 90_000, want: { kind: "leave" }, because: "it will be delivered again" },
    { name: "with wake and schedule is left", evidence: seen({ wake: armed(0, 1), schedule: armed(0, 1) }), nowMs: 90_000, want: { kind: "leave" }, because: "a broker that crashed between the two has woken it" },
    { name: "with a schedule of an older generation is armed over it", record: retried, evidence: seen({ schedule: armed(0, 1) }), want: { kind: "rearm" }, because: "the old one would be ignored when it fires" },
    { name: "with only a wake of an older generation is armed", record: retried, evidence: seen({ wake: armed(0, 1) }), want: { kind: "arm" }, because: "the old wake will be ignored" },
    { name: "with a newer schedule is left", evidence: seen({ schedule: armed(1, 3) }), want: { kind: "leave" }, because: "the record has moved on since" },
    { name: "with a newer wake is left", evidence: seen({ wake: armed(1, 3) }), want: { kind: "leave" }, because: "the record has moved on since" },
    { name: "that is archived is removed", evidence: { isArchived: true, armed: { schedule: armed(0, 1) } }, want: { kind: "remove" }, because: "I7" },
    { name: "that was only checked against the archive is left", evidence: { isArchived: false }, want: { kind: "leave" }, because: "it is due far ahead" },
  ];
  test.each(rows)("$name", ({ record = waiting, evidence, nowMs = 0, want, because }) => {
    expect(decideSweep({ record, revision: 1 }, evidence, view(nowMs)), because).toEqual(want);
  });
});

describe("an elapsed record", () => {
  const owed = { owedSinceMs: at(0) };
  const rows: readonly { name: string; evidence: Evidence; changes?: Partial<SweepView>; want: SweepDecision; because: string }[] = [
    { name: "without schedule and wake after a break is resumed again", evidence: seen({}), changes: owed, want: { kind: "resume" }, because: "the wake was the only memory of the owed resume" },
    { name: "without schedule and wake in normal running is left", evidence: seen({}), want: { kind: "leave" }, because: "its resume was stored" },
    { name: "that elapsed before what is owed is left", evidence: seen({}), changes: { owedSinceMs: at(60_001) }, want: { kind: "leave" }, because: "an earlier sweep saw it through" },
    { name: "with the wake that led to it is left", evidence: seen({ wake: armed(0, 1) }), changes: owed, want: { kind: "leave" }, because: "its redelivery publishes the resume" },
    { name: "with the schedule that led to it is resumed again", evidence: seen({ schedule: armed(0, 1) }), changes: owed, want: { kind: "resume" }, because: "a broker that lost its tail may pass that schedule over for ever" },
    { name: "with what is left of an older generation is resumed again", evidence: seen({ wake: armed(0, 0) }), changes: owed, want: { kind: "resume" }, because: "that wake will be ignored" },
    { name: "with a newer schedule is left", evidence: seen({ schedule: armed(1, 3) }), changes: owed, want: { kind: "leave" }, because: "it was retried since" },
    { name: "that nobody looked closer at is left", evidence: { isArchived: false }, changes: owed, want: { kind: "leave" }, because: "nothing is known" },
  ];
  test.each(rows)("$name", ({ evidence, changes, want, because }) => {
    expect(decideSweep({ record: elapsed, revision: 1 }, evidence, view(90_000, changes)), because).toEqual(want);
  });
});

describe("an elapsed record without feedback", () => {
  const fail = { feedback: { timeoutMs: ms(30_000), onTimeout: "fail" } } as const;
  const again = { feedback: { timeoutMs: ms(30_000), onTimeout: "resume_again" } } as const;
  const noted = elapsedRecord(timer, { resumedAgainAtMs: at(90_000) });
  const noted7 = { record: noted, revision: 7 };
  const rows: readonly { name: string; swept?: { record: TimerRecord; revision: number }; evidence?: Evidence; changes: Partial<SweepView>; want: SweepDecision["kind"]; because: string }[] = [
    { name: "is ended when its time is up", changes: fail, want: "fail", because: "the policy" },
    { name: "is resumed again when its time is up", changes: again, want: "resume_again", because: "the policy" },
    { name: "is left until then", changes: { feedback: { timeoutMs: ms(30_001), onTimeout: "fail" } }, want: "leave", because: "thirty seconds have passed" },
    { name: "is left as long as its wake is there", evidence: seen({ wake: armed(0, 1) }), changes: fail, want: "leave", because: "the resume may not be stored yet, so nobody can have answered" },
    { name: "is left while its schedule has come back and may fire", evidence: seen({ schedule: armed(0, 1) }), changes: { ...fail, nowMs: at(60_000) }, want: "leave", because: "the broker has not had its time" },
    { name: "is ended when its schedule has come back and never fires", evidence: seen({ schedule: armed(0, 1) }), changes: fail, want: "fail", because: "its resume was stored, or it would be owed" },
    { name: "is left while it is set aside", evidence: seen({ schedule: { ...armed(0, 1), fireAtMs: at(3_600_000) } }), changes: fail, want: "leave", because: "its resume could not be published, and a person may yet mend what is missing" },
    { name: "is judged by the sweep's beginning", changes: { ...fail, beganAtMs: at(89_999) }, want: "leave", because: "what is written names that time, and may not lie before the time is up" },
    { name: "after a break is resumed first", changes: { ...fail, owedSinceMs: at(0) }, want: "resume", because: "its resume may never have been stored" },
    { name: "that was noted by an unknown sweep is resumed", swept: noted7, changes: again, want: "resume", because: "that sweep may have died in between" },
    { name: "that was noted by a sweep which came to no end is resumed", swept: noted7, changes: { ...again, resumedAgain: { revision: 6, atMs: at(50_000) } }, want: "resume", because: "the note is younger than what was seen through" },
    { name: "that was noted by the last sweep is left", swept: noted7, changes: { ...again, resumedAgain: { revision: 6, atMs: at(90_000) } }, want: "leave", because: "it saw its own notes through" },
    { name: "that was noted before the last sweep is left", swept: noted7, changes: { ...again, resumedAgain: { revision: 7, atMs: at(95_000) } }, want: "leave", because: "that one met it and saw it through" },
    { name: "that was noted is resumed though the policy has changed", swept: noted7, changes: fail, want: "resume", because: "what is owed comes first" },
  ];
  test.each(rows)("$name", ({ swept = { record: elapsed, revision: 1 }, evidence = seen({}), changes, want, because }) => {
    const looked = view(90_000, changes);
    expect(decideSweep(swept, evidence, looked).kind, because).toBe(want);
    expect(needsOf(swept.record, swept.revision, looked).armed || want === "leave", "what is acted on was looked at").toBe(true);
  });
});

describe("a terminal record", () => {
  // It ended a minute and a second after its start.
  const rows = [
    { name: "is finished after the grace", nowMs: 66_000, want: { kind: "finish" }, because: "its writer is gone" },
    { name: "is left within the grace", nowMs: 65_999, want: { kind: "leave" }, because: "its writer is probably at it" },
  ];
  test.each(rows)("$name", ({ nowMs, want, because }) => {
    expect(decideSweep({ record: terminal, revision: 1 }, { isArchived: false }, view(nowMs)), because).toEqual(want);
  });
});

test("a timer is overdue only beyond the grace", () => {
  expect([60_000, 65_000, 65_001].map((nowMs) => isOverdue(waiting, view(nowMs)))).toEqual([false, false, true]);
});

describe("which overdue schedules are stuck", () => {
  const rows = [
    { name: "none has fired", suspects: [3, 1, 2], standing: [3, 1, 2], want: [3, 1, 2], because: "nothing fires at all" },
    { name: "all have fired", suspects: [1, 2, 3], standing: [], want: [], because: "the broker was only slow" },
    { name: "a burst is worked off in order", suspects: [1, 2, 3, 4], standing: [3, 4], want: [], because: "the rest comes next" },
    { name: "one was passed over", suspects: [1, 2, 3, 4], standing: [2, 4], want: [2], because: "the later 3 has fired" },
    { name: "there are none", suspects: [], standing: [], want: [], because: "nothing to do" },
  ];
  test.each(rows)("$name", ({ suspects, standing, want, because }) => {
    const stuck = stuckOf(suspects.map((sequence) => ({ sequence })), ({ sequence }) => standing.includes(sequence));
    expect(stuck.map(({ sequence }) => sequence), because).toEqual(want);
  });
});
