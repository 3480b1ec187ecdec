import { describe } from "vitest";
import { advance, complete, leader, leaderAgain, reject, replica, run, unsure } from "./decision-rows.ts";
import { at, elapsed, fail, feedback, hash, lineage, receipt, terminal, waiting } from "./records.ts";

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
