/**
 * What a settled input tells about others of its timer that wait behind it. Taken one by one, each with its own look at
 * the broker, a flood for one timer (a sender that repeats itself without a message id is enough) would fill the
 * look-ahead and hold up everybody.
 *
 * N1 Only outcomes that write nothing are foregone: refusals, and duplicates of what has just been completed.
 * N2 Nothing is concluded from a record that a lagging replica may have shown, but what a replica suffices for.
 */
import { unreachable } from "../base/assert.ts";
import type { EpochMs } from "../base/units.ts";
import { decide } from "../timer/decide.ts";
import type { Basis, TimerView } from "../timer/decision.ts";
import type { TimerInput } from "../timer/input.ts";
import type { TimerRecord } from "../timer/record.ts";
import type { Tombstone } from "../timer/tombstone.ts";
import type { StepResult } from "./step.ts";

/** A record as an input of its timer left it: everything it asks for durable, or only seen by whoever refused. */
export type Known = { readonly record: TimerRecord | Tombstone; readonly isComplete: boolean; readonly isFromLeader: boolean };

/** What the result of a step makes known; undefined when it is nothing. Starts are refused by the leader's word alone. */
export function knownFrom(result: StepResult, isStart: boolean): Known | undefined {
  if (result.kind === "done") return { record: result.record, isComplete: true, isFromLeader: true };
  if (result.kind !== "rejected" || result.answer.record === undefined) return undefined;
  return { record: result.answer.record, isComplete: false, isFromLeader: isStart };
}

/** The result of a command that came before `known` was true; undefined when it takes a step of its own. */
export function foregone({ record, isComplete, isFromLeader }: Known, input: TimerInput): Extract<StepResult, { kind: "done" | "rejected" }> | undefined {
  const decision = decide(viewOf(record, isFromLeader ? "leader" : "replica"), input, unknownTime);
  if (decision.kind === "reject") return { kind: "rejected", answer: decision.answer };
  const isDuplicate = isComplete && (decision.kind === "complete" || decision.kind === "recall");
  return isDuplicate ? { kind: "done", answer: decision.answer, record, changed: false } : undefined;
}

function viewOf(record: TimerRecord | Tombstone, basis: Basis): TimerView {
  switch (record.phase) {
    case "waiting":
    case "elapsed":
      return { basis, record };
    case "terminal":
      return { basis, archived: record };
    case "collected":
      return { basis, tombstone: record };
    default:
      return unreachable(record);
  }
}

/** Commands are not judged by the time. */
const unknownTime = 0 as EpochMs;
