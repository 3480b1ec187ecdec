import { unreachable } from "../base/assert.ts";
import { wakeEarlyMsMax } from "../base/limits.ts";
import { since, type EpochMs } from "../base/units.ts";
import type { Decision, TimerView } from "./decision.ts";
import type { WakeInput } from "./input.ts";
import { inputAge, type ElapsedRecord, type TimerRecord, type WaitingRecord } from "./record.ts";
import { followingWrites, isAtLeast } from "./writes.ts";

/** A wake turns its waiting record into an elapsed one when it is due, and repeats the resume when it comes again. */
export function decideWake(view: TimerView, wake: WakeInput, brokerNowMs: EpochMs): Decision {
  if (view.record === undefined) return whenAbsent(view);
  const { record } = view;
  if (record.phase === "terminal") return { kind: "ignore", reason: "ended" };
  switch (inputAge(wake, { generation: record.generation, fence: armedFence(record) })) {
    case "older":
      return { kind: "ignore", reason: "older" };
    case "newer":
      return isAtLeast(view.basis, "leader_again") ? { kind: "ignore", reason: "newer" } : { kind: "unsure", needs: "leader_again" };
    case "equal":
      return record.phase === "waiting" ? elapseWhenDue(view, record, brokerNowMs) : repeatResume(view, record);
    default:
      return unreachable(inputAge(wake, record) as never);
  }
}

function whenAbsent(view: TimerView): Decision {
  if (view.archived !== undefined) return { kind: "ignore", reason: "ended" };
  return isAtLeast(view.basis, "leader_again") ? { kind: "ignore", reason: "absent" } : { kind: "unsure", needs: "leader_again" };
}

function armedFence(record: WaitingRecord | ElapsedRecord): number {
  return record.phase === "waiting" ? record.fence : record.armedFence;
}

function elapseWhenDue(view: TimerView, record: WaitingRecord, brokerNowMs: EpochMs): Decision {
  if (brokerNowMs < record.dueAtMs) return isFarTooEarly(record, brokerNowMs) ? armAgain(view, record) : { kind: "hold", dueAtMs: record.dueAtMs };
  const next: ElapsedRecord = { ...record, phase: "elapsed", armedFence: record.fence, fence: record.fence + 1, elapsedAtMs: brokerNowMs };
  return { kind: "advance", next, writes: ["state", ...followingWrites(next)], answer: { outcome: "accepted", record: next } };
}

/** Fired by a clock that was ahead and was set back. An instant of 0 means that the broker's clock is not known now. */
function isFarTooEarly(record: WaitingRecord, brokerNowMs: EpochMs): boolean {
  return brokerNowMs > 0 && since(record.dueAtMs, brokerNowMs) > wakeEarlyMsMax;
}

/** Held until then, such wakes would use up what may be in hand, and no other timer would wake. */
function armAgain(view: TimerView, record: WaitingRecord): Decision {
  if (!isAtLeast(view.basis, "leader")) return { kind: "unsure", needs: "leader" };
  return { kind: "complete", record, writes: followingWrites(record), answer: { outcome: "duplicate", record } };
}

/** The resume of an elapsed record is the same bytes each time: its `elapsedAtMs` is in the record (I2). */
function repeatResume(view: TimerView, record: TimerRecord): Decision {
  if (!isAtLeast(view.basis, "leader")) return { kind: "unsure", needs: "leader" };
  return { kind: "complete", record, writes: followingWrites(record), answer: { outcome: "duplicate", record } };
}
