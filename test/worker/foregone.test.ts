import { describe, expect, test } from "vitest";
import { foregone, knownFrom, type Known } from "../../src/worker/foregone.ts";
import { tombstoneOf } from "../../src/timer/tombstone.ts";
import { elapsed, fail, feedback, hash, receipt, start, terminal, waiting } from "../timer/records.ts";

const complete = (record: Known["record"]): Known => ({ record, isComplete: true, isFromLeader: true });
const seen = (record: Known["record"], isFromLeader = false): Known => ({ record, isComplete: false, isFromLeader });
const retried = waiting({ generation: 1, fence: 3, receipt: receipt() });

describe("an input that waits behind a settled one", () => {
  test.each([
    { name: "the same start again", known: complete(waiting()), input: start(), want: "duplicate", because: "its timer is as it asks" },
    { name: "another start of the timer", known: complete(waiting()), input: start({ snapshotHash: hash("f") }), want: "start_conflict", because: "the leader's record says so" },
    { name: "another start behind a refused one", known: seen(waiting(), true), input: start({ snapshotHash: hash("f") }), want: "start_conflict", because: "starts are refused by the leader's word" },
    { name: "a good start behind a refused one", known: seen(waiting(), true), input: start(), want: undefined, because: "nobody has made sure of its schedule" },
    { name: "the same retry again", known: complete(retried), input: feedback({ verb: "retry" }), want: "duplicate", because: "it is the receipt" },
    { name: "older feedback", known: seen(retried), input: feedback({ receiptHash: hash("d") }), want: "stale", because: "fences only grow, whoever was read" },
    { name: "feedback of another lineage, seen by a replica", known: seen(retried), input: feedback({ snapshotHash: hash("f") }), want: undefined, because: "a replica does not suffice for it" },
    { name: "feedback of another lineage", known: complete(retried), input: feedback({ snapshotHash: hash("f") }), want: "lineage_mismatch", because: "the leader's record says so" },
    { name: "feedback that would be accepted", known: complete(retried), input: fail({ generation: 1, fence: 3 }), want: undefined, because: "it writes" },
    { name: "feedback from the future", known: complete(elapsed()), input: feedback({ fence: 9 }), want: undefined, because: "the leader has to say it twice" },
    { name: "a complete behind another", known: complete(terminal()), input: feedback(), want: "duplicate", because: "it is the receipt of the end" },
    { name: "a fail behind a complete", known: complete(terminal()), input: fail({ receiptHash: hash("e") }), want: "stale", because: "the timer has ended" },
    { name: "the start of a timer that was collected", known: complete(tombstoneOf(terminal())), input: start(), want: "duplicate", because: "its tombstone recognises it" },
    { name: "feedback for a timer that was collected", known: complete(tombstoneOf(terminal())), input: feedback(), want: undefined, because: "its tombstone knows no lineage" },
  ])("$name: $because", ({ known, input, want, because }) => {
    const result = foregone(known, input);
    expect(result?.kind === "rejected" ? result.answer.code : result?.answer.outcome, because).toBe(want);
  });
});

test("nothing is known from a message that was handed back, or refused without a record", () => {
  expect([knownFrom({ kind: "hand_back", why: "read" }, true), knownFrom({ kind: "rejected", answer: { outcome: "rejected", code: "unknown_timer" } }, false)]).toEqual([undefined, undefined]);
  expect(knownFrom({ kind: "rejected", answer: { outcome: "rejected", code: "stale", record: retried } }, false)).toEqual(seen(retried));
});
