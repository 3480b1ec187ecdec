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
  const { ports, dedupeMs } = context;
  const all = burials.map((burial): Step => ({ key: burial.key, burial, ...(burial.at.kind === "remove" ? { revision: burial.at.tombstoneRevision } : {}) }));
  const open = (): readonly Step[] => all.filter(({ result }) => result === undefined);
  const unburied = all.filter(({ revision }) => revision === undefined);
  if (isStale(context, decidedAtMs)) return all.map(() => ({ action: "superseded" }));
  await run(unburied, (steps) => ports.snapshots.bury(steps.map(({ key, burial }) => ({ key, grave: { tombstone: tombstoneOf(burial.record) }, expected: burial.at.kind === "bury" ? burial.at.expected : 0 }))));
  await run(open(), async (steps) => {
    const outcomes = await ports.archive.remove(steps.map(({ key, burial }) => ({ key, expected: burial.archiveRevision })));
    // The tombstone's revision is what the next step replaces, and not that of the archive's marker.
    return outcomes.map((outcome, index) => (outcome.kind === "stored" ? { kind: "stored", revision: present(steps[index]?.revision, "a tombstone") } : outcome));
  });
  await run(open(), (steps) => ports.snapshots.bury(steps.map(({ key, burial, revision }) => ({ key, grave: { tombstone: tombstoneOf(burial.record), expiresInMs: dedupeMs }, expected: present(revision, "a tombstone") }))));
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
  if (isStale(context, decidedAtMs)) return orphans.map(() => ({ action: "superseded" }));
  const all = orphans.map((orphan): Step<Remains> => ({ key: orphan.key, burial: orphan }));
  const claimedAtMs = clock.monotonicMs();
  await run(all, (steps) => ports.state.remove(steps.map(({ key }) => ({ key, expected: 0 }))));
  const claimed = all.filter(({ result }) => result === undefined);
  // The claim expires: what is done under it must be done long before.
  if (isStale(context, claimedAtMs)) return all.map(({ result }) => result ?? { action: "superseded" });
  await run(claimed, (steps) => ports.snapshots.bury(steps.map(({ key, burial }) => ({ key, grave: { expiresInMs: stateMarkerTtlMs }, expected: burial.revision }))));
  return all.map(({ result }) => result ?? { action: "orphan_collected" });
}

type Step<T = Burial> = { readonly key: TimerKey; readonly burial: T; revision?: number; result?: CollectResult };

/** One stage: those that are stored go on with the revision that they were given. */
async function run<T>(steps: readonly Step<T>[], write: (steps: readonly Step<T>[]) => Promise<readonly WriteOutcome[]>): Promise<void> {
  if (steps.length === 0) return;
  const outcomes = await write(steps);
  for (const [index, step] of steps.entries()) {
    const outcome = present(outcomes[index], "one outcome per step");
    const failed = failedResult(outcome);
    if (failed !== undefined) step.result = failed;
    else if (outcome.kind === "stored") step.revision = outcome.revision;
  }
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
