/** Which record may follow which: the rules of a timer's life, written down a second time and independently of `decide`. */
import type { FeedbackPolicy } from "../../src/timer/decide-timeout.ts";
import type { TimerRecord } from "../../src/timer/record.ts";

export type ChangeProblem = { readonly invariant: "I5" | "I7" | "I9"; readonly text: string };

/** What is wrong with `next` as the record after `before`; undefined when nothing is. */
export function changeProblem(before: TimerRecord | undefined, next: TimerRecord, policy: FeedbackPolicy): ChangeProblem | undefined {
  if (before === undefined) return isNew(next) ? undefined : { invariant: "I5", text: `was created as ${spell(next)}` };
  const way = `${spell(before)} → ${spell(next)}`;
  if (before.phase === "elapsed" && next.phase === "elapsed") return isResumedAgain(before, next, policy) ? undefined : { invariant: "I9", text: `is no second resume: ${way}` };
  if (next.fence !== before.fence + 1) return { invariant: "I5", text: `its fence did not grow by one: ${way}` };
  if (before.phase === "terminal") return { invariant: "I7", text: way };
  const changed = fixedFields.find((field) => JSON.stringify(next[field]) !== JSON.stringify(before[field]));
  if (changed !== undefined) return { invariant: "I9", text: `${changed} changed: ${way}` };
  return isAllowed(before, next, policy) ? undefined : { invariant: "I9", text: `is no transition: ${way}` };
}

const fixedFields = ["lineage", "snapshotHash", "payloadHash", "payloadBytes", "maxRetries", "retryDelayMs", "startedAtMs"] as const;

function isNew(record: TimerRecord): boolean {
  return record.phase === "waiting" && record.generation === 0 && record.fence === 1 && record.receipt === undefined;
}

function isAllowed(before: TimerRecord, next: TimerRecord, policy: FeedbackPolicy): boolean {
  switch (next.phase) {
    case "waiting":
      return before.phase === "elapsed" && next.generation === before.generation + 1 && next.generation <= next.maxRetries && takesReceipt(before, next, "retry");
    case "elapsed":
      return before.phase === "waiting" && isElapsed(before, next);
    case "terminal":
      return next.generation === before.generation && (takesReceipt(before, next) ? isEnd(before, next) : isTimedOut(before, next, policy));
  }
}

function isElapsed(before: TimerRecord, next: Extract<TimerRecord, { phase: "elapsed" }>): boolean {
  const isSame = next.generation === before.generation && next.dueAtMs === before.dueAtMs && JSON.stringify(next.receipt) === JSON.stringify(before.receipt);
  return isSame && next.armedFence === before.fence && next.elapsedAtMs >= next.dueAtMs;
}

function takesReceipt(before: TimerRecord, { receipt }: TimerRecord, verb = receipt?.verb): boolean {
  return receipt?.generation === before.generation && receipt.fence === before.fence && receipt.verb === verb;
}

/** The fence stays, and so does everything else; once, and not before the time is up. */
function isResumedAgain(before: Elapsed, next: Elapsed, { timeoutMs, onTimeout }: FeedbackPolicy): boolean {
  const { resumedAgainAtMs, ...rest } = next;
  const isFirst = before.resumedAgainAtMs === undefined && resumedAgainAtMs !== undefined && resumedAgainAtMs >= before.elapsedAtMs + timeoutMs;
  return onTimeout === "resume_again" && isFirst && JSON.stringify(rest) === JSON.stringify(before);
}

/** Nobody said anything: the receipt is that of the transition before. */
function isTimedOut(before: TimerRecord, next: Extract<TimerRecord, { phase: "terminal" }>, { timeoutMs, onTimeout }: FeedbackPolicy): boolean {
  if (onTimeout !== "fail" || before.phase !== "elapsed" || JSON.stringify(next.receipt) !== JSON.stringify(before.receipt)) return false;
  return next.outcome === "failed" && next.failure?.code === "feedback_timeout" && next.endedAtMs >= before.elapsedAtMs + timeoutMs;
}

type Elapsed = Extract<TimerRecord, { phase: "elapsed" }>;

function isEnd(before: TimerRecord, next: Extract<TimerRecord, { phase: "terminal" }>): boolean {
  switch (next.receipt?.verb) {
    case "complete":
      return before.phase === "elapsed" && next.outcome === "completed" && next.failure === undefined;
    case "fail":
      return next.outcome === "failed" && next.failure !== undefined;
    case "retry":
      return before.phase === "elapsed" && before.generation >= before.maxRetries && next.outcome === "failed" && next.failure?.code === "max_retries_exceeded";
    case undefined:
      return false;
  }
}

function spell({ phase, generation, fence }: TimerRecord): string {
  return `${phase}(${String(generation)},${String(fence)})`;
}
