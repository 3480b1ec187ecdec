import { describe } from "vitest";
import { advance, complete, leader, leaderAgain, replica, run, unsure } from "./decision-rows.ts";
import { wakeEarlyMsMax } from "../../src/base/limits.ts";
import { at, elapsed, receipt, terminal, waiting, wake } from "./records.ts";

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
      name: "that is held for as long as wakes are fired early is held", view: leader({ record: waiting({ dueAtMs: at(wakeEarlyMsMax) }) }), input: wake(), nowMs: 0,
      want: { kind: "hold", dueAtMs: at(wakeEarlyMsMax) }, because: "its schedule is aimed early, so that it can be resumed to the millisecond",
    },
    {
      name: "that is far too early asks the leader", view: replica(waiting({ dueAtMs: at(wakeEarlyMsMax + 1) })), input: wake(), nowMs: 0, want: unsure("leader"),
      because: "a replica that lags may not know of a retry",
    },
    {
      name: "that is far too early is armed again", view: leader({ record: waiting({ dueAtMs: at(wakeEarlyMsMax + 1) }) }), input: wake(), nowMs: 0,
      want: complete(waiting({ dueAtMs: at(wakeEarlyMsMax + 1) }), ["schedule"]),
      because: "a clock that was ahead fires everything at once, and held wakes would keep all others from being delivered",
    },
    {
      name: "is held while the broker's clock is not known", view: leader({ record: waiting({ dueAtMs: at(3_600_000) }) }), input: wake(), nowMs: -1_800_000_000_000,
      want: { kind: "hold", dueAtMs: at(3_600_000) }, because: "it may be due for all that is known",
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
