/**
 * One sweep over the state: walks all records once, looks closer at those that need it, and carries on what nobody
 * else will.
 *
 * V1 It goes through the records in small portions, one after the other with a pause between them, so that live traffic
 *    keeps its share of the broker and of this process.
 * V2 The order of looks is schedule, wake, record, the last ones at the leaders. A record that changed since it was
 *    walked over is left alone.
 * V3 A walk that did not see everything gives no summary: the next sweep must not take it for a complete one.
 */
import { present } from "../base/assert.ts";
import { Failure, failureIn } from "../base/failure.ts";
import { sweepPauseMs, sweepProbeSizeMax, sweepReportCountMax, sweepRepublishCountMax, sweepStuckRecheckMs, sweepSuspectCountMax, sweepTimeoutCountMax } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import { later, type DurationMs, type EpochMs } from "../base/units.ts";
import type { FeedbackPolicy } from "../timer/decide-timeout.ts";
import type { WorkerMetrics } from "./metrics.ts";
import type { ArmedLook, ReadFrom, StreamIdentity, WalkedRecord, WorkerPorts } from "./ports.ts";
import { carryOut, republish, type ActionContext, type ActionResult, type Repair, type StuckRecord, type SweptRecord } from "./sweep-actions.ts";
import { decideSweep, needsOf, stuckOf, type SweepDecision, type SweepNeeds, type SweepView } from "./sweep-decide.ts";
import { owedSince, type SweepSummary } from "./sweep-summary.ts";
import { SweepTally } from "./sweep-tally.ts";

/** What one pass over the state needs. */
export type PassContext = ActionContext & {
  readonly ports: ActionContext["ports"] & Pick<WorkerPorts, "clock" | "walk">;
  readonly log: Log;
  readonly metrics: Pick<WorkerMetrics, "sweepActed">;
};

export type PassOptions = {
  readonly previous?: SweepSummary;
  /** SCHEDULES as it was before the walk. */
  readonly schedules: StreamIdentity;
  readonly beganAtMs: EpochMs;
  readonly intervalMs: DurationMs;
  readonly graceMs: DurationMs;
  readonly feedback: FeedbackPolicy;
  readonly signal: AbortSignal;
  /** Called between portions; false when another worker has taken over. */
  readonly keepLease: () => Promise<boolean>;
};

/** What one pass found and did. */
export type PassResult =
  | { readonly kind: "walked"; readonly summary: SweepSummary; readonly tally: SweepTally }
  | { readonly kind: "interrupted" }
  | { readonly kind: "failed"; readonly failure: Failure };

/** Sweeps once. Rejects only for a bug. */
export async function sweepOnce(context: PassContext, options: PassOptions): Promise<PassResult> {
  try {
    return await new SweepPass(context, options).run();
  } catch (error) {
    const failure = failureIn(error);
    if (failure === undefined) throw error;
    return { kind: "failed", failure };
  }
}

type Needy = SweptRecord & { readonly needs: SweepNeeds };

type Judging = { readonly view: SweepView; readonly archived: ReadonlyMap<Needy, "failed" | "found">; readonly from: ReadFrom };

class SweepPass {
  readonly #context: PassContext;
  readonly #options: PassOptions;
  readonly #tally = new SweepTally();
  readonly #owedSinceMs: EpochMs | undefined;
  /** Met on the walk and not yet looked at closer; less than a portion and what one part of the walk adds. */
  readonly #needy: Needy[] = [];
  #suspects: StuckRecord[] = [];
  #reportCount = 0;
  #timeoutCount = 0;

  constructor(context: PassContext, options: PassOptions) {
    this.#context = context;
    this.#options = options;
    this.#owedSinceMs = owedSince(options.previous, options.schedules);
  }

  async run(): Promise<PassResult> {
    const { signal, beganAtMs, schedules } = this.#options;
    const startedAtMs = this.#context.clock.monotonicMs();
    for await (const batch of this.#context.ports.walk.walk(signal)) {
      if (!await this.#meet(batch, startedAtMs) || !await this.#sweepNeedy(sweepProbeSizeMax, startedAtMs)) return { kind: "interrupted" };
      await this.#context.clock.sleep(sweepPauseMs, signal);
    }
    if (!await this.#sweepNeedy(1, startedAtMs)) return { kind: "interrupted" };
    const durationMs = Math.round(this.#context.clock.monotonicMs() - startedAtMs) as DurationMs;
    await this.#lookAgain();
    if (signal.aborted) return { kind: "interrupted" };
    const owed = this.#owedSinceMs !== undefined && this.#tally.hasOwedFailure() ? { owedSinceMs: this.#owedSinceMs } : {};
    const summary = { ...this.#tally.counts(), beganAtMs, durationMs, checkedRevision: this.#checkedRevision(), schedules, ...owed, ...this.#resumedAgain() };
    return { kind: "walked", summary, tally: this.#tally };
  }

  /** Counts a part of the walk, and keeps what has to be looked at closer. False when the sweep has to end here. */
  async #meet(batch: readonly WalkedRecord[], startedAtMs: number): Promise<boolean> {
    if (this.#options.signal.aborted || !await this.#options.keepLease()) return false;
    const view = await this.#view(startedAtMs);
    for (const walked of batch) {
      this.#tally.meet(walked, view);
      if (walked.record.kind !== "found") continue;
      const { key, revision, record: { value: record } } = walked;
      const needs = needsOf(record, revision, view);
      if (needs.armed || needs.archive || record.phase === "terminal") this.#needy.push({ key, revision, record, needs });
    }
    return true;
  }

  /** Looks closer, in whole portions, until fewer than `leftCountMax` are left: most parts of a walk hold a few such records only. */
  async #sweepNeedy(leftCountMax: number, startedAtMs: number): Promise<boolean> {
    while (this.#needy.length >= leftCountMax) {
      if (this.#options.signal.aborted || !await this.#options.keepLease()) return false;
      await this.#sweepPortion(this.#needy.splice(0, sweepProbeSizeMax), await this.#view(startedAtMs));
    }
    return true;
  }

  async #sweepPortion(portion: readonly Needy[], view: SweepView): Promise<void> {
    const archived = await this.#readArchive(portion);
    // Replicas answer for many at once, and what they show is enough to leave a record alone; nothing else is.
    const atFirst = await this.#judge(portion, { view, archived, from: "replica" });
    const doubtful = portion.filter((_, index) => atFirst[index] === "failed" || atFirst[index]?.kind !== "leave");
    const decisions = await this.#judge(doubtful, { view, archived, from: "leader" });
    const repairs: Repair[] = [];
    for (const [index, { key, revision, record }] of doubtful.entries()) {
      const decision = present(decisions[index], "a decision for every record");
      if (decision === "failed") this.#done({ key, revision, record }, { action: "failed" });
      else if (decision.kind === "suspect" && record.phase === "waiting") this.#suspect({ key, revision, record, sequence: decision.sequence });
      else if (decision.kind !== "leave" && decision.kind !== "suspect" && this.#hasRoomFor(decision)) repairs.push({ key, revision, record, decision });
    }
    const results = await carryOut(this.#context, repairs);
    for (const [index, repair] of repairs.entries()) this.#done(repair, present(results[index], "one result per repair"));
  }

  /**
   * The records whose archive could not be asked, and those that are archived. That none is there may be believed of any
   * replica: a record revives an ended timer only when the marker of its first one has expired, so that the archive is
   * older than that, and no replica which answers lags so far behind. What one shows is asked of the leader.
   */
  async #readArchive(portion: readonly Needy[]): Promise<ReadonlyMap<Needy, "failed" | "found">> {
    const known = new Map<Needy, "failed" | "found">();
    let toCheck = portion.filter(({ needs }) => needs.archive);
    for (const from of ["replica", "leader"] as const) {
      if (toCheck.length === 0) break;
      const checks = await this.#context.ports.archive.read(toCheck.map(({ key }) => key), from);
      known.clear();
      for (const [index, one] of toCheck.entries()) {
        const { kind } = present(checks[index], "one read per key");
        if (kind === "failed" || kind === "found") known.set(one, kind);
      }
      toCheck = toCheck.filter((one) => known.has(one));
    }
    return known;
  }

  async #judge(portion: readonly Needy[], { view, archived, from }: Judging): Promise<readonly (SweepDecision | "failed")[]> {
    const toLook = portion.filter(({ needs }) => needs.armed);
    const looks = toLook.length === 0 ? [] : await this.#context.ports.schedules.look(toLook.map(({ key }) => key), from);
    const lookOf = new Map(toLook.map((one, index) => [one, present(looks[index], "one look per key")]));
    return portion.map((one) => {
      const look = lookOf.get(one);
      if (look?.kind === "failed" || archived.get(one) === "failed") return "failed";
      return decideSweep(one, { isArchived: archived.get(one) === "found", ...(look === undefined ? {} : { armed: look }) }, view);
    });
  }

  /** Looks at the overdue schedules for the second time, and publishes again those that the broker has forgotten. */
  async #lookAgain(): Promise<void> {
    if (this.#suspects.length === 0) return;
    await this.#context.clock.sleep(sweepStuckRecheckMs, this.#options.signal);
    const looks = new Map<StuckRecord, ArmedLook>();
    await this.#inPortions(this.#suspects, async (portion) => {
      const seen = await this.#context.ports.schedules.look(portion.map(({ key }) => key));
      portion.forEach((suspect, index) => { looks.set(suspect, present(seen[index], "one look per suspect")); });
    });
    const known = this.#suspects.filter((suspect) => looks.get(suspect)?.kind === "seen");
    const scheduleOf = (suspect: StuckRecord) => { const look = looks.get(suspect); return look?.kind === "seen" ? look : undefined; };
    const stuck = stuckOf(known, (suspect) => scheduleOf(suspect)?.schedule?.sequence === suspect.sequence)
      .filter((suspect) => scheduleOf(suspect)?.wake === undefined)
      .toSorted((a, b) => a.sequence - b.sequence)
      .slice(0, sweepRepublishCountMax);
    await this.#inPortions(stuck, async (portion) => {
      const results = await republish(this.#context, portion);
      for (const [index, one] of portion.entries()) this.#done(one, present(results[index], "one result per record"));
    });
  }

  async #inPortions<T>(all: readonly T[], act: (portion: readonly T[]) => Promise<void>): Promise<void> {
    for (let from = 0; from < all.length; from += sweepProbeSizeMax) {
      if (this.#options.signal.aborted || !await this.#options.keepLease()) return;
      await act(all.slice(from, from + sweepProbeSizeMax));
    }
  }

  #suspect(suspect: StuckRecord): void {
    if (this.#suspects.length < sweepSuspectCountMax) this.#suspects.push(suspect);
  }

  /** False for unanswered timers beyond those that one sweep takes on; the next one goes on with the others. */
  #hasRoomFor({ kind }: SweepDecision): boolean {
    if (kind !== "fail" && kind !== "resume_again") return true;
    this.#timeoutCount += 1;
    return this.#timeoutCount <= sweepTimeoutCountMax;
  }

  #done(swept: SweptRecord, { action, problem, isLoose }: ActionResult): void {
    this.#tally.act(action, swept.record);
    // A resume of which nobody knows whether it was stored must not count as seen through.
    if (swept.record.phase === "elapsed" && (action === "failed" || isLoose === true)) this.#tally.leaveLoose();
    this.#context.metrics.sweepActed(action, 1);
    if (action !== "set_aside" || this.#reportCount >= sweepReportCountMax) return;
    this.#reportCount += 1;
    this.#context.log.error({ flow: swept.key.flow, ref: swept.key.ref, phase: swept.record.phase, problem }, "Set a timer aside that cannot be carried on");
  }

  async #view(startedAtMs: number): Promise<SweepView> {
    const { previous, beganAtMs, intervalMs, graceMs, feedback } = this.#options;
    const nowMs = await brokerNowMs(this.#context.ports.clock);
    const walkMs = Math.max(previous?.durationMs ?? 0, this.#context.clock.monotonicMs() - startedAtMs);
    return {
      beganAtMs, nowMs, graceMs, feedback,
      horizonMs: later(nowMs, (2 * intervalMs + Math.ceil(walkMs)) as DurationMs),
      ...(this.#owedSinceMs === undefined ? {} : { owedSinceMs: this.#owedSinceMs }),
      checkedRevision: previous?.checkedRevision ?? 0,
      ...(previous?.resumedAgain === undefined ? {} : { resumedAgain: previous.resumedAgain }),
    };
  }

  /** After a loose end the next sweep looks at everything again that this one noted. */
  #resumedAgain(): Pick<SweepSummary, "resumedAgain"> {
    const { previous, beganAtMs } = this.#options;
    if (!this.#tally.hasLooseEnd()) return { resumedAgain: { revision: this.#tally.revisionMax(), atMs: beganAtMs } };
    return previous?.resumedAgain === undefined ? {} : { resumedAgain: previous.resumedAgain };
  }

  /** Records whose look failed have to be looked at again. */
  #checkedRevision(): number {
    const before = this.#options.previous?.checkedRevision ?? 0;
    return this.#tally.failedCount() === 0 ? Math.max(before, this.#tally.revisionMax()) : before;
  }
}

/** A lower bound of the broker's clock; throws a Failure when the broker does not tell. */
export async function brokerNowMs(clock: WorkerPorts["clock"]): Promise<EpochMs> {
  const known = clock.lowerBoundMs();
  if (known !== undefined) return known;
  await clock.refresh();
  const refreshed = clock.lowerBoundMs();
  if (refreshed === undefined) throw new Failure("transient", "BROKER_TIMEOUT", "ask the broker for its time");
  return refreshed;
}
