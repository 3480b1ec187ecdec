/**
 * One pass of collection: over the archive, oldest first, as far as it is old enough; and now and then over all snapshots,
 * for what nothing belongs to.
 *
 * C1 It goes in portions, one after the other, and leaves at least half of the time, and of each second, to others.
 * C2 The lease is taken when the first thing is found that has to be written: without one, a pass writes nothing (I15).
 * C3 What may be concluded from a replica is that something is there. That nothing is there is the leader's word.
 */
import { present } from "../base/assert.ts";
import { describeFailure, failureIn, type Failure } from "../base/failure.ts";
import { collectionPerSecondMax, sweepReportCountMax, workerBatchBytesMax } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import { portionsOf } from "../base/portions.ts";
import type { Sha256 } from "../base/sha256.ts";
import { since, type DurationMs, type EpochMs, type MonotonicMs } from "../base/units.ts";
import type { TimerKey } from "../timer/identity.ts";
import type { TerminalRecord } from "../timer/record.ts";
import type { CollectionAction, WorkerMetrics } from "./metrics.ts";
import type { ReadFrom, ReadOutcome, SnapshotReading, WalkedArchive, WalkedSnapshot, WorkerPorts } from "./ports.ts";
import { collectArchived, collectOrphans, finishTombstones, type Burial, type CollectActionContext, type CollectResult } from "./retention-actions.ts";
import { decideArchived, isUnknown, needOf, type Kept, type SnapshotEvidence } from "./retention-decide.ts";
import { hashOfSnapshot } from "./views.ts";

/** What a pass needs. */
export type CollectPassContext = CollectActionContext & {
  readonly ports: CollectActionContext["ports"] & Pick<WorkerPorts, "collection">;
  readonly sha256: Sha256;
  readonly log: Log;
  readonly metrics: Pick<WorkerMetrics, "collectionActed" | "collectionBehind">;
};

/** What is old enough, and who may collect it. */
export type CollectPassOptions = {
  /** A lower bound of the broker's clock: what is old enough by it is old enough. */
  readonly nowMs: EpochMs;
  readonly archiveAgeMs: DurationMs;
  readonly orphanAgeMs: DurationMs;
  readonly walksSnapshots: boolean;
  readonly signal: AbortSignal;
  /** Takes the lease, or shows that its holder lives; false when another worker has it. */
  readonly holdLease: () => Promise<boolean>;
};

/** How a pass ended. */
export type CollectPassResult =
  /** `counts` is empty when there was nothing to do. */
  | { readonly kind: "walked"; readonly counts: ReadonlyMap<CollectionAction, number> }
  | { readonly kind: "interrupted" | "held_by_another" }
  | { readonly kind: "failed"; readonly failure: Failure };

/** Collects once. Rejects only for a bug. */
export async function collectOnce(context: CollectPassContext, options: CollectPassOptions): Promise<CollectPassResult> {
  try {
    return await new CollectPass(context, options).run();
  } catch (error) {
    const failure = failureIn(error);
    if (failure === undefined) throw error;
    return { kind: "failed", failure };
  }
}

type Candidate = WalkedArchive & { readonly record: Extract<ReadOutcome<TerminalRecord>, { kind: "found" }> };

class CollectPass {
  readonly #context: CollectPassContext;
  readonly #options: CollectPassOptions;
  readonly #counts = new Map<CollectionAction, number>();
  #hasHeldLease = false;
  #oldestKeptMs = 0;
  #reportCount = 0;

  constructor(context: CollectPassContext, options: CollectPassOptions) {
    this.#context = context;
    this.#options = options;
  }

  async run(): Promise<CollectPassResult> {
    const went = await this.#overArchive() && (!this.#options.walksSnapshots || await this.#overSnapshots());
    if (!went || this.#options.signal.aborted) return { kind: this.#hasHeldLease || this.#options.signal.aborted ? "interrupted" : "held_by_another" };
    this.#context.metrics.collectionBehind(this.#oldestKeptMs as DurationMs);
    return { kind: "walked", counts: this.#counts };
  }

  /** False when it has to end here, because of the lease. */
  async #overArchive(): Promise<boolean> {
    const { nowMs, archiveAgeMs, signal } = this.#options;
    for await (const portion of this.#context.ports.collection.archive(signal)) {
      const beganAtMs = this.#context.clock.monotonicMs();
      const young = portion.findIndex(({ archivedAtMs }) => archivedAtMs + archiveAgeMs > nowMs);
      const old = young === -1 ? portion : portion.slice(0, young);
      const [oldest] = old;
      if (oldest !== undefined) {
        if (!await this.#mayGoOn()) return false;
        this.#context.metrics.collectionBehind(this.#overdueMs(oldest));
        await this.#collectPortion(old);
      }
      // What lies behind it was archived later.
      if (young !== -1) return true;
      await this.#pause(portion.length, beganAtMs);
    }
    return true;
  }

  async #collectPortion(old: readonly WalkedArchive[]): Promise<void> {
    const { ports, clock } = this.#context;
    const decidedAtMs = clock.monotonicMs();
    const readable = old.filter((walked): walked is Candidate => walked.record.kind === "found");
    const states = await ports.state.read(old.map(({ key }) => key), "leader");
    const snapshots = await this.#readSnapshots(readable);
    const burials: Burial[] = [];
    for (const [index, walked] of old.entries()) {
      const { key, revision: archiveRevision, record } = walked;
      const decision = decideArchived(record, present(states[index], "one read per key"), snapshots.get(key) ?? { kind: "absent" });
      if (decision.kind === "bury" || decision.kind === "remove") burials.push({ key, archiveRevision, record: decision.archived, at: decision });
      else this.#keep(walked, { action: decision.kind, ...problemOf(decision) });
    }
    const results = burials.length === 0 ? [] : await collectArchived(this.#context, burials, decidedAtMs);
    const walkedOf = new Map(old.map((walked) => [walked.key, walked]));
    for (const [index, { key }] of burials.entries()) {
      const result = present(results[index], "one result per burial");
      if (result.action === "failed") this.#keep(present(walkedOf.get(key), "a walked record"), result);
      else this.#done(key, result);
    }
  }

  /** What lies in the snapshots' places, read in parts bounded in bytes; anything unexpected is asked of the leader. */
  async #readSnapshots(candidates: readonly Candidate[]): Promise<ReadonlyMap<TimerKey, SnapshotEvidence>> {
    const evidence = new Map<TimerKey, SnapshotEvidence>();
    for (const part of portionsOf(candidates, partLimits)) {
      const atFirst = await this.#readPart(part, "replica");
      const doubtful = part.filter(({ record }, index) => { const read = atFirst[index]; return read?.kind !== "snapshot" || read.hash !== record.value.snapshotHash; });
      const atLast = doubtful.length === 0 ? [] : await this.#readPart(doubtful, "leader");
      part.forEach(({ key }, index) => { evidence.set(key, present(atFirst[index], "one reading per key")); });
      doubtful.forEach(({ key }, index) => { evidence.set(key, present(atLast[index], "one reading per key")); });
    }
    return evidence;
  }

  async #readPart(part: readonly Candidate[], from: ReadFrom): Promise<readonly SnapshotEvidence[]> {
    const reads = await this.#context.ports.snapshots.read(part.map(({ key }) => key), from);
    return reads.map((read) => this.#evidenceOf(read));
  }

  #evidenceOf(read: SnapshotReading): SnapshotEvidence {
    if (read.kind === "found") return { kind: "snapshot", hash: hashOfSnapshot(read.value, this.#context.sha256), revision: read.revision };
    return read.kind === "unreadable" || read.kind === "marker" ? { kind: read.kind } : read;
  }

  async #overSnapshots(): Promise<boolean> {
    if (!await this.#mayGoOn()) return false;
    for await (const portion of this.#context.ports.collection.snapshots(this.#options.signal)) {
      const beganAtMs = this.#context.clock.monotonicMs();
      if (!await this.#mayGoOn()) return false;
      await this.#judgeSnapshots(portion);
      await this.#pause(portion.length, beganAtMs);
    }
    return true;
  }

  async #judgeSnapshots(portion: readonly WalkedSnapshot[]): Promise<void> {
    const orphansBeforeMs = this.#options.nowMs - this.#options.orphanAgeMs;
    const needy = portion.flatMap((walked) => {
      const need = needOf(walked, { orphansBeforeMs });
      return need === undefined ? [] : [{ key: walked.key, revision: walked.revision, need }];
    });
    const seemOrphaned = await this.#unknownAmong(needy.flatMap((one) => (one.need.kind === "look" ? [one] : [])), "replica");
    const decidedAtMs = this.#context.clock.monotonicMs();
    const orphans = await this.#unknownAmong(seemOrphaned, "leader");
    const unfinished = needy.flatMap(({ key, revision, need }) => (need.kind === "finish" ? [{ key, revision, grave: need.grave }] : []));
    const archived = await this.#context.ports.archive.read(unfinished.map(({ key }) => key));
    // While the archive is there, whoever walks over it carries its collection on.
    const finishable = unfinished.filter((_, index) => ["absent", "marker"].includes(present(archived[index], "one read per key").kind));
    const finished = await finishTombstones(this.#context, finishable);
    // What the last looks found absent may have been lost meanwhile, with all that STATE held.
    const mayBury = orphans.length > 0 && await this.#mayGoOn();
    const buried = mayBury ? await collectOrphans(this.#context, orphans, decidedAtMs) : [];
    finishable.forEach(({ key }, index) => { this.#done(key, present(finished[index], "one result per tombstone")); });
    if (mayBury) orphans.forEach(({ key }, index) => { this.#done(key, present(buried[index], "one result per orphan")); });
  }

  /** Those of which neither a record nor an archive is known. */
  async #unknownAmong<T extends { readonly key: TimerKey }>(all: readonly T[], from: ReadFrom): Promise<readonly T[]> {
    if (all.length === 0) return [];
    const { state, archive } = this.#context.ports;
    const states = await state.read(all.map(({ key }) => key), from);
    const without = all.filter((_, index) => present(states[index], "one read per key").kind === "absent");
    const archives = without.length === 0 ? [] : await archive.read(without.map(({ key }) => key), from);
    return without.filter((_, index) => isUnknown({ kind: "absent" }, present(archives[index], "one read per key")));
  }

  async #mayGoOn(): Promise<boolean> {
    if (this.#options.signal.aborted) return false;
    const has = await this.#options.holdLease();
    this.#hasHeldLease ||= has;
    return has;
  }

  /** C1 */
  async #pause(count: number, beganAtMs: MonotonicMs): Promise<void> {
    const { clock } = this.#context;
    const spentMs = clock.monotonicMs() - beganAtMs;
    const shareMs = (count * 1_000) / collectionPerSecondMax;
    await clock.sleep(Math.max(spentMs, shareMs - spentMs) as DurationMs, this.#options.signal);
  }

  #keep(walked: WalkedArchive, result: CollectResult): void {
    this.#oldestKeptMs = Math.max(this.#oldestKeptMs, this.#overdueMs(walked));
    this.#done(walked.key, result);
  }

  #done(key: TimerKey, { action, problem }: CollectResult): void {
    this.#counts.set(action, (this.#counts.get(action) ?? 0) + 1);
    this.#context.metrics.collectionActed(action, 1);
    if (problem === undefined || this.#reportCount >= sweepReportCountMax) return;
    this.#reportCount += 1;
    const fields = { flow: key.flow, ref: key.ref, problem: typeof problem === "string" ? problem : describeFailure(problem) };
    if (action === "kept_unreadable") this.#context.log.error(fields, "Kept an ended timer that contradicts itself");
    else this.#context.log.debug(fields, "Postponed the collection of an ended timer");
  }

  #overdueMs({ archivedAtMs }: WalkedArchive): DurationMs {
    return (since(this.#options.nowMs, archivedAtMs) - this.#options.archiveAgeMs) as DurationMs;
  }
}

function problemOf(kept: Kept): Pick<CollectResult, "problem"> {
  if (kept.kind === "kept_unreadable") return { problem: kept.problem };
  return kept.kind === "failed" ? { problem: kept.failure } : {};
}

/** Bodies that are read together (I13). */
const partLimits = { countMax: Infinity, bytesMax: workerBatchBytesMax, bytesOf: ({ record }: Candidate) => record.value.payloadBytes };
