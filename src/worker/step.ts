/**
 * One step for all inputs: look, decide, write, for many timers at once. A timer whose compare-and-set was lost, or
 * whose reply did not come, is looked at again from the leader and decided anew, a bounded number of times.
 *
 * The step holds no state and settles no message: its caller acknowledges after it, by the result.
 */
import { present, unreachable } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { settleRoundsMax } from "../base/limits.ts";
import type { Sha256 } from "../base/sha256.ts";
import type { EpochMs } from "../base/units.ts";
import { decide } from "../timer/decide.ts";
import type { Answer, Basis, Decision } from "../timer/decision.ts";
import type { TimerKey } from "../timer/identity.ts";
import type { TimerInput } from "../timer/input.ts";
import type { TimerRecord } from "../timer/record.ts";
import type { Tombstone } from "../timer/tombstone.ts";
import { isAtLeast } from "../timer/writes.ts";
import type { Snapshot, WorkerPorts } from "./ports.ts";
import { setAside, type AsideWake } from "./set-aside.ts";
import { executeWrites } from "./stages.ts";
import type { WriteJob, WriteResult } from "./write-job.ts";
import { readViews, type ViewOutcome } from "./views.ts";

/** One input for one timer. */
export type Work = {
  readonly key: TimerKey;
  readonly input: TimerInput;
  /** How to look first: a start assumes absence, a second look after the recheck interval asks the leader again. */
  readonly basis: Basis;
  /** A start's own; needed to write its snapshot. */
  readonly snapshot?: Snapshot;
  /** A wake's own; needed to set it aside. */
  readonly dueAtMs?: EpochMs;
};

export type StepResult =
  /** Everything that the decision asked for is durable. */
  | { readonly kind: "done"; readonly answer: Answer; readonly record: TimerRecord | Tombstone; readonly changed: boolean }
  | { readonly kind: "ignored"; readonly reason: string }
  | { readonly kind: "rejected"; readonly answer: Extract<Answer, { outcome: "rejected" }> }
  | { readonly kind: "hold"; readonly dueAtMs: EpochMs }
  /** Come back after the recheck interval with basis `leader_again`. */
  | { readonly kind: "recheck" }
  /** Not now: hand the message back. Nothing of it is lost, whatever was already written. */
  | { readonly kind: "hand_back"; readonly why: string; readonly failure?: unknown }
  /** What is stored for this timer contradicts itself; it is reported. `isAside` says that its wake waits elsewhere now. */
  | { readonly kind: "corrupt"; readonly problem: string; readonly isAside: boolean };

/** What a step needs besides its works. */
export type StepContext = {
  readonly ports: Pick<WorkerPorts, "state" | "snapshots" | "schedules" | "resumes" | "archive" | "clock">;
  readonly clock: Clock;
  readonly sha256: Sha256;
};

type Item = { readonly work: Work; basis: Basis; result?: StepResult; accepted?: { readonly answer: Answer; readonly fence: number } };

type Decided = { readonly item: Item; readonly decision: Extract<Decision, { kind: "advance" | "complete" }>; readonly revision?: number };

/** Settles each work; one result per work, in order. Works must be of different timers. */
export async function step(context: StepContext, works: readonly Work[]): Promise<readonly StepResult[]> {
  const items = works.map((work): Item => ({ work, basis: work.basis }));
  for (let round = 0; round < settleRoundsMax; round += 1) {
    const open = items.filter((item) => item.result === undefined);
    if (open.length === 0) break;
    const decidedAtMs = context.clock.monotonicMs();
    const decided = await look(context, open);
    await write(context, decided, decidedAtMs);
  }
  await setAsideCorrupt(context, items);
  return items.map((item) => item.result ?? { kind: "hand_back", why: "rounds_exhausted" });
}

/** A command of a corrupt timer is handed back: its place is its stream. */
async function setAsideCorrupt({ ports }: StepContext, items: readonly Item[]): Promise<void> {
  const nowMs = ports.clock.lowerBoundMs();
  const corrupt: { readonly item: Item; readonly wake: AsideWake; readonly problem: string }[] = [];
  for (const item of items) {
    const { key, input, dueAtMs } = item.work;
    if (item.result?.kind !== "corrupt" || input.kind !== "wake" || dueAtMs === undefined) continue;
    corrupt.push({ item, wake: { key, generation: input.generation, fence: input.fence, dueAtMs }, problem: item.result.problem });
  }
  // Without the broker's time nobody knows what later is.
  if (corrupt.length === 0 || nowMs === undefined) return;
  const stored = await setAside(ports.schedules, corrupt.map(({ wake }) => wake), nowMs);
  corrupt.forEach(({ item, problem }, index) => { item.result = { kind: "corrupt", problem, isAside: present(stored[index], "one answer per wake") }; });
}

/** Looks at each item's timer and decides; returns those that have something to write. */
async function look(context: StepContext, open: readonly Item[]): Promise<readonly Decided[]> {
  const decided: Decided[] = [];
  for (const basis of ["assumed", "replica", "leader", "leader_again"] as const) {
    const group = open.filter((item) => item.basis === basis && item.result === undefined);
    if (group.length === 0) continue;
    const views = await readViews(context.ports, group.map(({ work }) => ({ key: work.key, isStart: work.input.kind === "start" })), { basis, sha256: context.sha256 });
    const brokerNowMs = context.ports.clock.lowerBoundMs() ?? (0 as EpochMs);
    group.forEach((item, index) => {
      const outcome = decideItem(item, present(views[index], "one view per timer"), brokerNowMs);
      if (outcome !== undefined) decided.push(outcome);
    });
  }
  return decided;
}

function decideItem(item: Item, outcome: ViewOutcome, brokerNowMs: EpochMs): Decided | undefined {
  switch (outcome.kind) {
    case "failed":
      item.result = { kind: "hand_back", why: "read", failure: outcome.failure };
      return undefined;
    case "corrupt":
      item.result = { kind: "corrupt", problem: outcome.problem, isAside: false };
      return undefined;
    case "marker":
      item.result = { kind: "hand_back", why: "marker" };
      return undefined;
    case "view":
      return take(item, outcome, decide(outcome.view, item.work.input, brokerNowMs));
    default:
      return unreachable(outcome);
  }
}

function take(item: Item, outcome: Extract<ViewOutcome, { kind: "view" }>, decision: Decision): Decided | undefined {
  switch (decision.kind) {
    case "advance":
    case "complete":
      return { item, decision, ...(outcome.revision === undefined ? {} : { revision: outcome.revision }) };
    case "recall":
      item.result = { kind: "done", answer: decision.answer, record: decision.tombstone, changed: false };
      return undefined;
    case "ignore":
      item.result = { kind: "ignored", reason: decision.reason };
      return undefined;
    case "reject":
      item.result = { kind: "rejected", answer: decision.answer };
      return undefined;
    case "hold":
      item.result = { kind: "hold", dueAtMs: decision.dueAtMs };
      return undefined;
    case "unsure":
      // The second look comes after an interval, and the rest of the batch does not wait for it.
      if (isAtLeast(item.basis, "leader")) item.result = { kind: "recheck" };
      else item.basis = "leader";
      return undefined;
    default:
      return unreachable(decision);
  }
}

async function write(context: StepContext, decided: readonly Decided[], decidedAtMs: ReturnType<Clock["monotonicMs"]>): Promise<void> {
  if (decided.length === 0) return;
  const results = await executeWrites({ ...context, decidedAtMs }, decided.map(jobOf));
  decided.forEach((one, index) => { conclude(one, present(results[index], "one result per job")); });
}

function jobOf({ item, decision, revision }: Decided): WriteJob {
  const { key, snapshot } = item.work;
  return {
    key,
    record: decision.kind === "advance" ? decision.next : decision.record,
    writes: decision.writes,
    ...(revision === undefined ? {} : { revision }),
    ...(snapshot === undefined ? {} : { snapshot }),
  };
}

function conclude({ item, decision }: Decided, result: WriteResult): void {
  const record = decision.kind === "advance" ? decision.next : decision.record;
  const wroteState = decision.kind === "advance" && (result.kind === "done" || afterState.has(result.at));
  if (wroteState) item.accepted = { answer: decision.answer, fence: record.fence };
  switch (result.kind) {
    case "done": {
      // A transition of this very step that a later round only completed is still an acceptance, not a duplicate.
      const own = item.accepted?.fence === record.fence ? item.accepted.answer : undefined;
      item.result = { kind: "done", answer: own ?? decision.answer, record, changed: own !== undefined };
      return;
    }
    case "again":
      item.basis = isAtLeast(item.basis, "leader") ? item.basis : "leader";
      return;
    case "failed":
      item.result = { kind: "hand_back", why: result.at, failure: result.failure };
      return;
    case "corrupt":
      item.result = { kind: "corrupt", problem: result.problem, isAside: false };
      return;
    default:
      return unreachable(result);
  }
}

/** A job that stopped at one of these has its state write behind it. */
const afterState: ReadonlySet<string> = new Set(["schedule", "resume", "archive", "unschedule", "remove"]);
