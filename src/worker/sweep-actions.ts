/**
 * Carries out what the sweep has decided. Before anything is written the records are read once more from the leader,
 * and whatever has changed since it was walked over is left to its writer. The writes are those of the loops, with
 * their order and their conditions.
 */
import { present, unreachable } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import type { Sha256 } from "../base/sha256.ts";
import type { Write } from "../timer/decision.ts";
import type { TimerKey } from "../timer/identity.ts";
import type { TimerRecord, WaitingRecord } from "../timer/record.ts";
import { followingWrites } from "../timer/writes.ts";
import type { SweepAction } from "./metrics.ts";
import type { WorkerPorts, WriteOutcome } from "./ports.ts";
import { armItem, executeWrites } from "./stages.ts";
import type { WriteResult } from "./write-job.ts";
import type { SweepDecision } from "./sweep-decide.ts";

/** One record as it was walked over. */
export type SweptRecord = { readonly key: TimerKey; readonly revision: number; readonly record: TimerRecord };

/** A record that needs something done. */
export type Repair = SweptRecord & { readonly decision: Exclude<SweepDecision, { kind: "leave" | "suspect" }> };

/** A waiting record whose schedule does not fire. */
export type StuckRecord = SweptRecord & { readonly record: WaitingRecord; readonly sequence: number };

/** What carrying out repairs needs. */
export type ActionContext = {
  readonly ports: Pick<WorkerPorts, "state" | "snapshots" | "schedules" | "resumes" | "archive">;
  readonly clock: Clock;
  readonly sha256: Sha256;
};

/** What came of a repair; `isLoose` when it stopped after its first write began and before its last one was stored. */
export type ActionResult = { readonly action: SweepAction; readonly problem?: string; readonly isLoose?: true };

/** Repairs records of different timers; one result per repair, in order. */
export async function carryOut(context: ActionContext, repairs: readonly Repair[]): Promise<readonly ActionResult[]> {
  return await onlyUnchanged(context, repairs, async (unchanged) => {
    const decidedAtMs = context.clock.monotonicMs();
    const removals = unchanged.filter(({ decision }) => decision.kind === "remove");
    const others = unchanged.filter(({ decision }) => decision.kind !== "remove");
    const jobs = others.map(({ key, record, revision, decision }) => ({ key, revision, ...workOf(decision, record) }));
    const written = jobs.length === 0 ? [] : await executeWrites({ ...context, decidedAtMs }, jobs);
    const removed = removals.length === 0 ? [] : await context.ports.state.remove(removals.map(({ key, revision }) => ({ key, expected: revision })));
    return new Map<Repair, ActionResult>([
      ...others.map((repair, index) => {
        const result = present(written[index], "one result per job");
        return [repair, { ...resultOf(result, repair), ...(result.kind === "done" ? {} : { isLoose: true }) }] as const;
      }),
      ...removals.map((repair, index) => [repair, { action: actionOf(present(removed[index], "one outcome per removal"), "removed") }] as const),
    ]);
  });
}

/** Publishes stuck schedules again, each over its sequence; one result per record, in order. */
export async function republish(context: ActionContext, stuck: readonly StuckRecord[]): Promise<readonly ActionResult[]> {
  return await onlyUnchanged(context, stuck, async (unchanged) => {
    const outcomes = await context.ports.schedules.arm(unchanged.map(({ key, record, sequence }) => ({ ...armItem(key, record), expected: sequence })));
    return new Map(unchanged.map((one, index) => [one, { action: actionOf(present(outcomes[index], "one outcome per schedule"), "republished") }]));
  });
}

/** Runs `act` on those whose record is still of the revision that was walked over. */
async function onlyUnchanged<T extends SweptRecord>(
  context: ActionContext,
  all: readonly T[],
  act: (unchanged: readonly T[]) => Promise<ReadonlyMap<T, ActionResult>>,
): Promise<readonly ActionResult[]> {
  if (all.length === 0) return [];
  const reads = await context.ports.state.read(all.map(({ key }) => key), "leader");
  const isUnchanged = (one: T, index: number): boolean => {
    const read = present(reads[index], "one read per record");
    return read.kind === "found" && read.revision === one.revision;
  };
  const unchanged = all.filter(isUnchanged);
  const results = unchanged.length === 0 ? new Map<T, ActionResult>() : await act(unchanged);
  return all.map((one, index) => results.get(one) ?? { action: present(reads[index], "one read per record").kind === "failed" ? "failed" : "superseded" });
}

function workOf(decision: Repair["decision"], record: TimerRecord): { readonly record: TimerRecord; readonly writes: readonly Write[] } {
  switch (decision.kind) {
    case "arm":
    case "rearm":
      return { record, writes: ["schedule"] };
    case "resume":
      return { record, writes: ["resume"] };
    case "fail":
    case "resume_again":
      return { record: decision.next, writes: decision.writes };
    case "finish":
      return { record, writes: followingWrites(record) };
    case "remove":
      return { record, writes: [] };
    default:
      return unreachable(decision);
  }
}

function resultOf(result: WriteResult, { decision }: Repair): ActionResult {
  switch (result.kind) {
    case "done":
      return { action: doneAs[decision.kind] };
    case "again":
      // Feedback came first; or nobody knows, and the next sweep finds out.
      return { action: result.at === "state" && result.isLost === true ? "superseded" : "failed" };
    case "failed":
      return { action: "failed" };
    case "corrupt":
      return { action: "set_aside", problem: result.problem };
    default:
      return unreachable(result);
  }
}

function actionOf(outcome: WriteOutcome, done: SweepAction): SweepAction {
  switch (outcome.kind) {
    case "stored":
      return done;
    case "exists":
    case "conflict":
      return "superseded";
    case "refused":
    case "unknown":
      return "failed";
    default:
      return unreachable(outcome);
  }
}

const doneAs: Readonly<Record<Repair["decision"]["kind"], SweepAction>> = {
  arm: "armed", rearm: "rearmed", resume: "resumed", fail: "timed_out", resume_again: "resumed_again", finish: "finished", remove: "removed",
};
