/**
 * Carries out what collection has decided, in the order that makes a crash anywhere safe.
 *
 * An ended timer: tombstone without an end → archive removed → tombstone with an end. A start that comes at any moment
 * meets the archive or the tombstone, and never nothing (I7). An orphan: state key claimed → grave that expires. A start
 * that comes meanwhile cannot create its record beside a snapshot that goes (I3), and is taken afterwards (I8).
 *
 * Every step states what it expects to find, so that running it again, or twice at once, gives the same end.
 */
import { present, unreachable } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { decisionAgeMsMax, stateMarkerTtlMs } from "../base/limits.ts";
import type { DurationMs, MonotonicMs } from "../base/units.ts";
import type { Grave } from "../protocol/tombstone.ts";
import type { TimerKey } from "../timer/identity.ts";
import type { TerminalRecord } from "../timer/record.ts";
import { tombstoneOf } from "../timer/tombstone.ts";
import type { CollectionAction } from "./metrics.ts";
import type { WorkerPorts, WriteOutcome } from "./ports.ts";

/** What carrying out needs. */
export type CollectActionContext = {
  readonly ports: Pick<WorkerPorts, "state" | "snapshots" | "archive">;
  readonly clock: Clock;
  readonly dedupeMs: DurationMs;
};

/** An archived timer to collect: `expected` is what lies in its snapshot's place, unless its tombstone is there already. */
export type Burial = {
  readonly key: TimerKey;
  readonly archiveRevision: number;
  readonly record: TerminalRecord;
  readonly at: { readonly kind: "bury"; readonly expected: number } | { readonly kind: "remove"; readonly tombstoneRevision: number };
};

/** A tombstone to give an end to, or an orphan, at the revision at which it was met. */
export type Remains = { readonly key: TimerKey; readonly revision: number };

/** What came of one item, with the failure when it has one. */
export type CollectResult = { readonly action: CollectionAction; readonly problem?: unknown };

/** Collects archived timers; one result per burial, in order. */
export async function collectArchived(context: CollectActionContext, burials: readonly Burial[], decidedAtMs: MonotonicMs): Promise<readonly CollectResult[]> {
  if (isStale(context, decidedAtMs)) return burials.map(() => ({ action: "superseded" }));
  const all = burials.map((burial): Step => ({ key: burial.key, burial, ...(burial.at.kind === "remove" ? { tombstoneRevision: burial.at.tombstoneRevision } : {}) }));
  for (const stage of burialStages) await stage(context, all.filter(({ result }) => result === undefined));
  return all.map(({ result }) => result ?? { action: "collected" });
}

/** Lets tombstones expire whose archive has gone; one result per item, in order. */
export async function finishTombstones(context: CollectActionContext, all: readonly (Remains & { readonly grave: Grave })[]): Promise<readonly CollectResult[]> {
  if (all.length === 0) return [];
  const outcomes = await context.ports.snapshots.bury(all.map(({ key, revision, grave }) => ({ key, grave: { ...grave, expiresInMs: context.dedupeMs }, expected: revision })));
  return outcomes.map((outcome) => failedResult(outcome) ?? { action: "tombstone_finished" });
}

/** Claims the state keys of orphans and buries them; one result per orphan, in order. */
export async function collectOrphans(context: CollectActionContext, orphans: readonly Remains[], decidedAtMs: MonotonicMs): Promise<readonly CollectResult[]> {
  const { ports, clock } = context;
  if (orphans.length === 0) return [];
  if (isStale(context, decidedAtMs)) return orphans.map(() => ({ action: "superseded" }));
  const all = orphans.map((orphan): Step<Remains> => ({ key: orphan.key, burial: orphan }));
  const claimedAtMs = clock.monotonicMs();
  const claims = await ports.state.remove(orphans.map(({ key }) => ({ key, expected: 0 })));
  all.forEach((step, index) => { note(step, present(claims[index], "one outcome per claim")); });
  // The claim expires: what is done under it must be done long before.
  if (isStale(context, claimedAtMs)) return all.map(({ result }) => result ?? { action: "superseded" });
  const claimed = all.filter(({ result }) => result === undefined);
  await noteAll(claimed, claimed.map(({ key, burial }) => ({ key, grave: { expiresInMs: stateMarkerTtlMs }, expected: burial.revision })), (items) => ports.snapshots.bury(items));
  return all.map(({ result }) => result ?? { action: "orphan_collected" });
}

type Step<T = Burial> = { readonly key: TimerKey; readonly burial: T; tombstoneRevision?: number; result?: CollectResult };

type BurialStage = (context: CollectActionContext, steps: readonly Step[]) => Promise<void>;

const putTombstones: BurialStage = async ({ ports }, steps) => {
  const unburied = steps.filter(({ tombstoneRevision }) => tombstoneRevision === undefined);
  const items = unburied.map(({ key, burial }) => ({ key, grave: { tombstone: tombstoneOf(burial.record) }, expected: burial.at.kind === "bury" ? burial.at.expected : 0 }));
  await noteAll(unburied, items, (all) => ports.snapshots.bury(all));
};

const removeArchives: BurialStage = async ({ ports }, steps) => {
  const items = steps.map(({ key, burial }) => ({ key, expected: burial.archiveRevision }));
  if (items.length === 0) return;
  const outcomes = await ports.archive.remove(items);
  steps.forEach((step, index) => { note(step, present(outcomes[index], "one outcome per archive record")); });
};

const letTombstonesExpire: BurialStage = async ({ ports, dedupeMs }, steps) => {
  const items = steps.map(({ key, burial, tombstoneRevision }) => ({ key, grave: { tombstone: tombstoneOf(burial.record), expiresInMs: dedupeMs }, expected: present(tombstoneRevision, "a tombstone") }));
  await noteAll(steps, items, (all) => ports.snapshots.bury(all));
};

type GraveItem = Parameters<WorkerPorts["snapshots"]["bury"]>[0][number];

/** Each step goes on with the revision of its tombstone. */
async function noteAll<T>(steps: readonly Step<T>[], items: readonly GraveItem[], bury: (items: readonly GraveItem[]) => Promise<readonly WriteOutcome[]>): Promise<void> {
  if (items.length === 0) return;
  const outcomes = await bury(items);
  for (const [index, step] of steps.entries()) {
    const outcome = present(outcomes[index], "one outcome per grave");
    note(step, outcome);
    if (outcome.kind === "stored") step.tombstoneRevision = outcome.revision;
  }
}

function note<T>(step: Step<T>, outcome: WriteOutcome): void {
  const failed = failedResult(outcome);
  if (failed !== undefined) step.result = failed;
}

function failedResult(outcome: WriteOutcome): CollectResult | undefined {
  switch (outcome.kind) {
    case "stored":
      return undefined;
    case "exists":
    case "conflict":
      return { action: "superseded" };
    case "refused":
    case "unknown":
      return { action: "failed", problem: outcome.failure };
    default:
      return unreachable(outcome);
  }
}

function isStale({ clock }: CollectActionContext, sinceMs: MonotonicMs): boolean {
  return clock.monotonicMs() - sinceMs > decisionAgeMsMax;
}

/** In the order in which they have to become durable. */
const burialStages: readonly BurialStage[] = [
  putTombstones,
  removeArchives,
  letTombstonesExpire,
];
