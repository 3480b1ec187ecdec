import { describe, expect, test } from "vitest";
import { decide } from "../../src/timer/decide.ts";
import type { Answer, Decision, TimerView, Write } from "../../src/timer/decision.ts";
import type { TimerInput } from "../../src/timer/input.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import { at, elapsed, fail, feedback, hash, lineage, receipt, start, terminal, waiting, wake } from "./records.ts";

type Row = { readonly name: string; readonly view: TimerView; readonly input: TimerInput; readonly nowMs?: number; readonly want: Decision; readonly because: string };

const run = (rows: readonly Row[]): void => {
  test.each(rows)("$name", ({ view, input, nowMs, want, because }) => {
    expect(decide(view, input, at(nowMs ?? 1_000)), because).toEqual(want);
  });
};

const replica = (record?: TimerRecord): TimerView => ({ basis: "replica", ...(record === undefined ? {} : { record }) });
const leader = (over: Omit<TimerView, "basis"> = {}): TimerView => ({ basis: "leader", ...over });
const leaderAgain = (over: Omit<TimerView, "basis"> = {}): TimerView => ({ basis: "leader_again", ...over });

const advance = (next: TimerRecord, writes: readonly Write[]): Decision => ({ kind: "advance", next, writes, answer: { outcome: "accepted", record: next } });
const complete = (record: TimerRecord, writes: readonly Write[]): Decision => ({ kind: "complete", record, writes, answer: { outcome: "duplicate", record } });
const reject = (code: Extract<Answer, { outcome: "rejected" }>["code"], record?: TimerRecord): Decision => ({
  kind: "reject", answer: { outcome: "rejected", code, ...(record === undefined ? {} : { record }) },
});
const unsure = (needs: "leader" | "leader_again"): Decision => ({ kind: "unsure", needs });

describe("a start", () => {
  run([
    {
      name: "creates snapshot, record and schedule of a timer that nobody has seen", view: { basis: "assumed" }, input: start(),
      want: advance(waiting(), ["snapshot", "state", "schedule"]),
      because: "the compare-and-set on each of the three finds out whether the assumption was wrong",
    },
    {
      name: "with a due date is due then, whenever it arrived", view: { basis: "assumed" },
      input: start({ wait: { kind: "due", dueAtMs: at(77_000) }, receivedAtMs: at(5) }),
      want: advance(waiting({ dueAtMs: at(77_000), startedAtMs: at(5) }), ["snapshot", "state", "schedule"]),
      because: "an instant is not relative to the command",
    },
    {
      name: "whose snapshot met another waits for the leader's word", view: replica(), input: start(), want: unsure("leader"),
      because: "a replica may not have seen the record or the archive yet",
    },
    {
      name: "that a crash cut off after its snapshot is finished", view: leader({ snapshot: hash("a") }), input: start(),
      want: advance(waiting(), ["state", "schedule"]),
      because: "acknowledging it as a duplicate would lose an accepted start (I8)",
    },
    {
      name: "over an orphaned snapshot of another start is refused", view: leader({ snapshot: hash("f") }), input: start(),
      want: reject("start_conflict"), because: "that start's own command is still pending and owns the timer",
    },
    {
      name: "whose snapshot expired meanwhile writes it again", view: leader(), input: start(),
      want: advance(waiting(), ["snapshot", "state", "schedule"]), because: "nothing of the timer exists any more",
    },
    {
      name: "again, while waiting, makes sure of the schedule only", view: leader({ record: waiting() }), input: start(),
      want: complete(waiting(), ["schedule"]), because: "the first copy may have stopped before it armed",
    },
    {
      name: "again, after the wake, changes nothing", view: leader({ record: elapsed() }), input: start(),
      want: complete(elapsed(), []), because: "the owed resume belongs to the wake, which is still unacknowledged",
    },
    {
      name: "again, while a terminal record waits for its archive, finishes that", view: leader({ record: terminal() }), input: start(),
      want: complete(terminal(), ["archive", "remove"]), because: "whoever sees a half-done end completes it",
    },
    {
      name: "of an archived timer is a duplicate and revives nothing", view: leader({ archived: terminal() }), input: start(),
      want: complete(terminal(), []), because: "a start can lie in COMMANDS for days while its twin lives and ends (I7)",
    },
    {
      name: "with another meaning is refused while the timer lives", view: leader({ record: waiting() }), input: start({ snapshotHash: hash("f") }),
      want: reject("start_conflict", waiting()), because: "one ref has one snapshot (I4)",
    },
    {
      name: "with another meaning is refused after the timer ended", view: leader({ archived: terminal() }), input: start({ snapshotHash: hash("f") }),
      want: reject("start_conflict", terminal()), because: "the ref is spent",
    },
  ]);
});

describe("a wake", () => {
  const due = elapsed({ elapsedAtMs: at(1_000) });
  run([
    {
      name: "at its due time elapses the timer and owes a resume", view: replica(waiting()), input: wake(), nowMs: 1_000,
      want: advance(due, ["state", "resume"]), because: "the bound of the broker's clock has reached the due time",
    },
    {
      name: "one millisecond early is held", view: replica(waiting()), input: wake(), nowMs: 999, want: { kind: "hold", dueAtMs: at(1_000) },
      because: "no resume before its due time (I1)",
    },
    {
      name: "keeps the receipt of the retry before it", view: replica(waiting({ generation: 1, fence: 3, receipt: receipt() })), input: wake({ generation: 1, fence: 3 }),
      nowMs: 1_500, want: advance(elapsed({ generation: 1, fence: 4, armedFence: 3, elapsedAtMs: at(1_500), receipt: receipt() }), ["state", "resume"]),
      because: "the retry's second copy may still come after this wake",
    },
    {
      name: "of an older generation is ignored, whatever replica said so", view: replica(waiting({ generation: 1, fence: 3 })), input: wake(),
      want: { kind: "ignore", reason: "older" }, because: "fences only grow, so a stale reading proves it too (I5)",
    },
    {
      name: "that comes again after it was acted on asks the leader", view: replica(elapsed()), input: wake(), want: unsure("leader"),
      because: "a replica that lags would repeat a resume of a timer that has moved on",
    },
    {
      name: "that comes again repeats the same resume", view: leader({ record: elapsed() }), input: wake(), want: complete(elapsed(), ["resume"]),
      because: "its first copy may have stopped between record and resume (I2)",
    },
    {
      name: "newer than the record needs two looks at the leader", view: leader({ record: waiting() }), input: wake({ generation: 1, fence: 3 }),
      want: unsure("leader_again"), because: "even a deposed leader answers from the past",
    },
    {
      name: "newer than the record at the second look is ignored", view: leaderAgain({ record: waiting() }), input: wake({ generation: 1, fence: 3 }),
      want: { kind: "ignore", reason: "newer" }, because: "it was armed by a write that did not survive",
    },
    {
      name: "without a record needs two looks", view: replica(), input: wake(), want: unsure("leader_again"), because: "absence is the strongest claim of all",
    },
    {
      name: "without a record at the second look is ignored", view: leaderAgain(), input: wake(), want: { kind: "ignore", reason: "absent" },
      because: "there is nothing that it could wake",
    },
    {
      name: "of an archived timer is ignored", view: leader({ archived: terminal() }), input: wake(), want: { kind: "ignore", reason: "ended" },
      because: "an archived timer is never revived (I7)",
    },
    {
      name: "of a terminal record is ignored", view: replica(terminal()), input: wake(), want: { kind: "ignore", reason: "ended" },
      because: "terminal is never left again, so a stale reading proves it",
    },
  ]);
});

describe("feedback", () => {
  const { phase: _phase, armedFence: _armed, elapsedAtMs: _at, ...base } = elapsed();
  const completed = terminal({ receipt: receipt({ verb: "complete" }), endedAtMs: at(2_000) });
  run([
    {
      name: "complete ends an elapsed timer", view: replica(elapsed()), input: feedback(), want: advance(completed, ["state", "archive", "remove"]),
      because: "the archive comes before the removal, and the schedule fired long ago",
    },
    {
      name: "fail ends an elapsed timer with its cause", view: replica(elapsed()), input: fail(),
      want: advance(terminal({ outcome: "failed", failure: { code: "gone", message: "no longer needed" }, receipt: receipt({ verb: "fail" }) }), ["state", "archive", "remove"]),
      because: "fail is allowed in both live phases",
    },
    {
      name: "fail ends a waiting timer and takes its schedule along", view: replica(waiting()), input: fail({ fence: 1 }),
      want: advance({
        ...base, phase: "terminal", outcome: "failed", failure: { code: "gone", message: "no longer needed" }, fence: 2, endedAtMs: at(2_000),
        receipt: receipt({ verb: "fail", fence: 1 }),
      }, ["state", "archive", "unschedule", "remove"]),
      because: "its schedule has not fired",
    },
    {
      name: "retry starts the next generation, due by its own timestamp", view: replica(elapsed()), input: feedback({ verb: "retry" }),
      want: advance(waiting({ generation: 1, fence: 3, dueAtMs: at(62_000), receipt: receipt() }), ["state", "schedule"]),
      because: "a redelivered retry must give the same due time",
    },
    {
      name: "retry at the limit ends the timer as failed", view: replica(elapsed({ generation: 2, fence: 6, armedFence: 5 })),
      input: feedback({ verb: "retry", generation: 2, fence: 6 }),
      want: advance(terminal({
        generation: 2, fence: 7, outcome: "failed", receipt: receipt({ generation: 2, fence: 6 }),
        failure: { code: "max_retries_exceeded", message: "the timer was retried 2 times, which is its limit" },
      }), ["state", "archive", "remove"]),
      because: "maxRetries counts accepted retries",
    },
    {
      name: "of another lineage is refused once the leader confirms the record", view: leader({ record: elapsed() }),
      input: feedback({ lineage: { ...lineage, edges: { start: "e1", elapsed: "other", retry: "e3" } } }), want: reject("lineage_mismatch", elapsed()),
      because: "edges belong to the lineage though not to the identity",
    },
    {
      name: "of another snapshot asks the leader first", view: replica(elapsed()), input: feedback({ snapshotHash: hash("f") }), want: unsure("leader"),
      because: "a refusal on a stale reading cannot be taken back",
    },
    {
      name: "complete on a waiting timer needs two looks", view: leader({ record: waiting({ generation: 1, fence: 3 }) }), input: feedback({ generation: 1, fence: 3 }),
      want: unsure("leader_again"), because: "the leader may not have applied the wake yet",
    },
    {
      name: "complete on a timer that still waits is refused", view: leaderAgain({ record: waiting({ generation: 1, fence: 3 }) }), input: feedback({ generation: 1, fence: 3 }),
      want: reject("not_elapsed", waiting({ generation: 1, fence: 3 })), because: "no resume carried this fence",
    },
    {
      name: "older than the record is stale, whatever replica said so", view: replica(elapsed({ generation: 1, fence: 4, armedFence: 3 })),
      input: feedback({ receiptHash: hash("9") }), want: reject("stale", elapsed({ generation: 1, fence: 4, armedFence: 3 })),
      because: "generations only grow (I5)",
    },
    {
      name: "retry that comes again after its wake is the receipt", view: leader({ record: elapsed({ generation: 1, fence: 4, armedFence: 3, receipt: receipt() }) }),
      input: feedback({ verb: "retry" }), want: complete(elapsed({ generation: 1, fence: 4, armedFence: 3, receipt: receipt() }), []),
      because: "wakes keep the receipt, so the second copy is known although the record moved on",
    },
    {
      name: "retry that comes again while waiting makes sure of the schedule", view: leader({ record: waiting({ generation: 1, fence: 3, receipt: receipt() }) }),
      input: feedback({ verb: "retry" }), want: complete(waiting({ generation: 1, fence: 3, receipt: receipt() }), ["schedule"]),
      because: "the first copy may have stopped before it armed",
    },
    {
      name: "known by its receipt is confirmed by the leader before anything is repaired", view: replica(waiting({ generation: 1, fence: 3, receipt: receipt() })),
      input: feedback({ verb: "retry" }), want: unsure("leader"), because: "arming on a stale reading would arm a generation that is over",
    },
    {
      name: "complete with another body than the first is stale", view: replica(terminal()), input: feedback({ receiptHash: hash("9") }),
      want: reject("stale", terminal()), because: "the receipt's hash covers the payload hash",
    },
    {
      name: "of the terminal transition finishes the end", view: leader({ record: terminal() }), input: feedback(), want: complete(terminal(), ["archive", "remove"]),
      because: "a crash may have come between record and archive",
    },
    {
      name: "of an archived timer is a duplicate", view: leader({ archived: terminal() }), input: feedback(), want: complete(terminal(), []),
      because: "everything it asked for is done",
    },
    {
      name: "newer than the record needs two looks", view: leader({ record: elapsed() }), input: feedback({ generation: 1, fence: 4 }), want: unsure("leader_again"),
      because: "a paused leader may lag behind the resume that carried it",
    },
    {
      name: "newer than the record at the second look is refused", view: leaderAgain({ record: elapsed() }), input: feedback({ generation: 1, fence: 4 }),
      want: reject("unknown_fence", elapsed()), because: "nobody was ever sent this fence",
    },
    {
      name: "for a timer that a replica has not seen is not refused yet", view: replica(), input: feedback(), want: unsure("leader_again"),
      because: "its start may be a moment old",
    },
    {
      name: "for a timer that does not exist is refused at the second look", view: leaderAgain(), input: feedback(), want: reject("unknown_timer"),
      because: "neither state nor archive knows it",
    },
    {
      name: "with a terminal record's own fence is refused", view: leaderAgain({ record: terminal() }), input: feedback({ fence: 3 }), want: reject("unknown_fence", terminal()),
      because: "no resume carries the fence of an end",
    },
  ]);
});
