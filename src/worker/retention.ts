/**
 * Collects ended timers when the resource asks for it: decides when, and sees that one worker does it.
 *
 * Each pass looks at the archive; once a day one of them looks at the snapshots too, and notes in STATE when. Without
 * anything to collect nothing is written but that note and, with it, the lease (I15). Without `retention` there is no collector.
 * Nothing is collected while a data stream is not what it was: no pass begins, and one under way ends.
 */
import type { Clock } from "../base/clock.ts";
import { failureIn } from "../base/failure.ts";
import { collectionIntervalMs, orphanAgeMs, snapshotWalkIntervalMs } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Sha256 } from "../base/sha256.ts";
import type { DurationMs, EpochMs } from "../base/units.ts";
import { leaseKeys } from "../protocol/names.ts";
import type { CollectionResult, WorkerMetrics } from "./metrics.ts";
import type { WorkerPorts } from "./ports.ts";
import { collectOnce, type CollectPassResult } from "./retention-pass.ts";
import type { RetentionSettings } from "./settings.ts";
import { SweepLease } from "./sweep-lease.ts";
import { brokerNowMs } from "./sweep-pass.ts";

/** What a collector is made of. */
export type CollectorOptions = {
  readonly ports: Pick<WorkerPorts, "state" | "snapshots" | "archive" | "clock" | "collection" | "notes">;
  readonly clock: Clock;
  readonly random: Random;
  readonly sha256: Sha256;
  readonly log: Log;
  readonly metrics: WorkerMetrics;
  /** Unique per process. */
  readonly workerId: string;
  /** What is absent is a fact only while this holds: a STATE that was emptied would make orphans of all snapshots (I3). */
  readonly isDataWhole: () => boolean;
  readonly settings: RetentionSettings;
};

/** When the snapshots were last walked over, and the revision of the note that says so. */
type WalkNote = { readonly revision: number; readonly walkedAtMs?: EpochMs };

/** Collects at its interval, from soon after the start on. */
export class Collector {
  readonly #options: CollectorOptions;
  readonly #lease: SweepLease;

  constructor(options: CollectorOptions) {
    this.#options = options;
    const { ports: { notes }, clock, workerId } = options;
    this.#lease = new SweepLease({ notes, clock, workerId, name: leaseKeys.collection });
  }

  /** Runs until `signal` aborts. Rejects only for a bug. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, settings } = this.#options;
    // Workers that start together find out one after the other that one of them collects.
    await clock.sleep(this.#jitterMs(), signal);
    while (!signal.aborted) {
      try {
        await this.#turn(signal);
      } catch (error) {
        if (failureIn(error) === undefined) throw error;
        this.#options.log.debug({ err: error }, "Postponed a collection");
      }
      await clock.sleep(((settings.intervalMs ?? collectionIntervalMs) + this.#jitterMs()) as DurationMs, signal);
    }
  }

  async #turn(signal: AbortSignal): Promise<void> {
    if (!this.#options.isDataWhole()) return;
    const { ports, clock, settings, metrics } = this.#options;
    const nowMs = await brokerNowMs(ports.clock);
    const note = await this.#readNote();
    const walkEveryMs = settings.snapshotWalkIntervalMs ?? snapshotWalkIntervalMs;
    const walksSnapshots = note !== undefined && (note.walkedAtMs === undefined || note.walkedAtMs + walkEveryMs <= nowMs);
    const startedAtMs = clock.monotonicMs();
    const lease = this.#holding();
    try {
      const result = await collectOnce({ ...this.#options, dedupeMs: settings.dedupeMs }, {
        nowMs, archiveAgeMs: settings.archiveAgeMs, orphanAgeMs: settings.orphanAgeMs ?? orphanAgeMs, walksSnapshots, signal, holdLease: lease.hold,
      });
      if (result.kind === "walked" && walksSnapshots) await this.#writeNote(nowMs, note.revision);
      const durationMs = (clock.monotonicMs() - startedAtMs) as DurationMs;
      const ended = endOf(result);
      metrics.collectionEnded(ended, durationMs);
      this.#report(result, { ended, durationMs });
    } finally {
      await this.#lease.release();
    }
  }

  /** C2: the lease is taken when it is first asked for, and extended from then on. */
  #holding(): { readonly hold: () => Promise<boolean> } {
    let isHeld = false;
    return {
      hold: async () => {
        if (!this.#options.isDataWhole()) return false;
        if (isHeld) return await this.#lease.extend();
        isHeld = await this.#lease.take() === "taken";
        return isHeld;
      },
    };
  }

  /** Undefined when it cannot be read now: the snapshots are then left for another pass. */
  async #readNote(): Promise<WalkNote | undefined> {
    const read = await this.#options.ports.notes.read(leaseKeys.collectionSummary);
    switch (read.kind) {
      case "found": {
        const walkedAtMs = walkedAtOf(read.value);
        return { revision: read.revision, ...(walkedAtMs === undefined ? {} : { walkedAtMs }) };
      }
      case "absent":
        return { revision: 0 };
      case "marker":
      case "unreadable":
        return { revision: read.revision };
      case "failed":
      default:
        return undefined;
    }
  }

  /** Best effort: without it the snapshots are only walked over once more. */
  async #writeNote(walkedAtMs: EpochMs, expected: number): Promise<void> {
    await this.#options.ports.notes.write({ name: leaseKeys.collectionSummary, text: JSON.stringify({ v: 1, walkedAtMs }), expected });
  }

  #report(result: CollectPassResult, { ended, durationMs }: { readonly ended: CollectionResult; readonly durationMs: DurationMs }): void {
    const { log } = this.#options;
    const fields = { result: ended, durationMs: Math.round(durationMs) };
    if (result.kind === "failed") return log.warn({ ...fields, err: result.failure }, "Gave up a collection");
    if (result.kind !== "walked") return log.debug(fields, "Ended a collection early");
    const all = { ...fields, actions: Object.fromEntries(result.counts) };
    if (ended === "incomplete") log.warn(all, "Could not collect everything that has ended");
    else if (result.counts.size > 0) log.info(all, "Collected ended timers");
  }

  #jitterMs(): DurationMs {
    return (this.#options.random.fraction() * jitterMsMax) as DurationMs;
  }
}

function endOf(result: CollectPassResult): CollectionResult {
  if (result.kind !== "walked") return result.kind;
  return (result.counts.get("failed") ?? 0) === 0 ? "completed" : "incomplete";
}

function walkedAtOf(text: string): EpochMs | undefined {
  try {
    const { v, walkedAtMs } = JSON.parse(text) as { readonly v?: unknown; readonly walkedAtMs?: unknown };
    return v === 1 && Number.isSafeInteger(walkedAtMs) ? (walkedAtMs as EpochMs) : undefined;
  } catch {
    return undefined;
  }
}

const jitterMsMax = 1_000;
