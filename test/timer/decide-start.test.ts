import { describe } from "vitest";
import { advance, complete, leader, recall, reject, replica, run, unsure } from "./decision-rows.ts";
import { at, elapsed, hash, start, terminal, tombstone, waiting } from "./records.ts";

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
    {
      name: "of a collected timer is a duplicate and revives nothing", view: leader({ tombstone: tombstone() }), input: start(),
      want: recall(tombstone()), because: "its tombstone answers in the place of its archive (I7)",
    },
    {
      name: "with another meaning is refused after the timer was collected", view: leader({ tombstone: tombstone() }), input: start({ snapshotHash: hash("f") }),
      want: reject("start_conflict", tombstone()), because: "the ref is spent until the tombstone has expired",
    },
    {
      name: "of an archived timer whose tombstone stands already is answered from the archive", view: leader({ archived: terminal(), tombstone: tombstone() }), input: start(),
      want: complete(terminal(), []), because: "a collection that is under way changes no answer",
    },
  ]);
});
