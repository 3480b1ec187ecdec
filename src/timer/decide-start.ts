import { dueAtMsMax } from "../base/limits.ts";
import { later, type EpochMs } from "../base/units.ts";
import type { Decision, TimerView } from "./decision.ts";
import type { StartInput } from "./input.ts";
import type { TimerRecord, WaitingRecord } from "./record.ts";
import type { Tombstone } from "./tombstone.ts";
import { followingWrites, isAtLeast } from "./writes.ts";

/**
 * A start creates its timer once. A snapshot that is already there decides nothing by itself: it may be a start that a
 * crash cut in half, which must be finished, or a timer that has ended, whose start waited long in COMMANDS. A tombstone in
 * its place decides: that timer has ended (I7).
 */
export function decideStart(view: TimerView, start: StartInput): Decision {
  if (view.basis === "assumed") return create(start, ["snapshot"]);
  if (!isAtLeast(view.basis, "leader")) return { kind: "unsure", needs: "leader" };
  const known = view.record ?? view.archived;
  if (known !== undefined) return meetExisting(view, known, start);
  if (view.tombstone !== undefined) return meetTombstone(view.tombstone, start);
  if (view.snapshot === undefined) return create(start, ["snapshot"]);
  if (view.snapshot !== start.snapshotHash) return { kind: "reject", answer: { outcome: "rejected", code: "start_conflict" } };
  return create(start, []);
}

/** The due time of a start, on the broker's clock. */
export function dueAtMsOf(start: Pick<StartInput, "wait" | "receivedAtMs">): EpochMs {
  const dueAtMs = start.wait.kind === "due" ? start.wait.dueAtMs : later(start.receivedAtMs, start.wait.delayMs);
  return Math.min(dueAtMs, dueAtMsMax) as EpochMs;
}

function create(start: StartInput, before: readonly "snapshot"[]): Decision {
  const next: WaitingRecord = {
    phase: "waiting",
    lineage: start.lineage,
    snapshotHash: start.snapshotHash,
    payloadHash: start.payloadHash,
    payloadBytes: start.payloadBytes,
    maxRetries: start.maxRetries,
    ...(start.retryDelayMs === undefined ? {} : { retryDelayMs: start.retryDelayMs }),
    startedAtMs: start.receivedAtMs,
    dueAtMs: dueAtMsOf(start),
    generation: 0,
    fence: 1,
  };
  return { kind: "advance", next, writes: [...before, "state", ...followingWrites(next)], answer: { outcome: "accepted", record: next } };
}

function meetTombstone(tombstone: Tombstone, start: StartInput): Decision {
  if (tombstone.snapshotHash !== start.snapshotHash) {
    return { kind: "reject", answer: { outcome: "rejected", code: "start_conflict", record: tombstone } };
  }
  return { kind: "recall", tombstone, answer: { outcome: "duplicate", record: tombstone } };
}

function meetExisting(view: TimerView, known: TimerRecord, start: StartInput): Decision {
  if (known.snapshotHash !== start.snapshotHash) {
    return { kind: "reject", answer: { outcome: "rejected", code: "start_conflict", record: known } };
  }
  // Only the schedule can be missing: an elapsed record's resume belongs to its wake, which is still unacknowledged.
  const writes = view.record === undefined || known.phase === "elapsed" ? [] : followingWrites(known);
  return { kind: "complete", record: known, writes, answer: { outcome: "duplicate", record: known } };
}
