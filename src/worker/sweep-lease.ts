/**
 * Lets one worker sweep at a time. The lease is a note in the state bucket: held while a sweep runs, free otherwise.
 *
 * It saves work; it is no lock. Everything that a sweep does is guarded by compare-and-set, so two sweeps at once are
 * harmless. That is why it needs no common clock: a holder is gone when its note has not changed for the length of the
 * lease, measured by the one who watches.
 */
import { unreachable } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { sweepLeaseMs } from "../base/limits.ts";
import type { MonotonicMs } from "../base/units.ts";
import { leaseKeys } from "../protocol/names.ts";
import type { NotesStore, ReadOutcome } from "./ports.ts";

/** What the lease is made of. `name` is its note, the sweep's unless said otherwise: collection has one of its own. */
export type LeaseOptions = { readonly notes: NotesStore; readonly clock: Clock; readonly workerId: string; readonly name?: string };

/** What came of trying to take the lease. */
export type LeaseAttempt = "taken" | "held" | "failed";

/** One worker at a time sweeps; this is how they agree. */
export class SweepLease {
  readonly #options: LeaseOptions;
  readonly #name: string;
  #writeCount = 0;
  /** The revision of our note while we hold it. */
  #heldRevision: number | undefined;
  #writtenAtMs = 0 as MonotonicMs;
  /** Somebody else's note, and since when we have seen it unchanged. */
  #watched: { readonly revision: number; readonly sinceMs: MonotonicMs } | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#name = options.name ?? leaseKeys.sweep;
  }

  /** Takes the lease if it is free, or if its holder is gone. */
  async take(): Promise<LeaseAttempt> {
    const read = await this.#options.notes.read(this.#name);
    const expected = this.#expectedOf(read);
    if (expected === undefined) return read.kind === "failed" ? "failed" : "held";
    return await this.#write("held", expected);
  }

  /** Shows that the holder lives, when it is time to. False when the lease was taken over. */
  async extend(): Promise<boolean> {
    if (this.#heldRevision === undefined) return false;
    if (this.#options.clock.monotonicMs() - this.#writtenAtMs < sweepLeaseMs / 3) return true;
    const attempt = await this.#write("held", this.#heldRevision);
    // Not knowing is no reason to stop: the next extension tells, and two sweeps at once do no harm.
    return attempt !== "held";
  }

  /** Frees the lease, best effort: a lease that stays held is taken over in time. */
  async release(): Promise<void> {
    if (this.#heldRevision === undefined) return;
    await this.#write("free", this.#heldRevision);
    this.#heldRevision = undefined;
  }

  /** The revision to replace; undefined when the lease is somebody's, or unknown. */
  #expectedOf(read: ReadOutcome<string>): number | undefined {
    switch (read.kind) {
      case "absent":
        return 0;
      case "marker":
        return read.revision;
      case "found":
        return isFree(read.value, this.#options.workerId) ? read.revision : this.#expectedOfHeld(read.revision);
      case "unreadable":
        return this.#expectedOfHeld(read.revision);
      case "failed":
        return undefined;
      default:
        return unreachable(read);
    }
  }

  #expectedOfHeld(revision: number): number | undefined {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#watched?.revision !== revision) this.#watched = { revision, sinceMs: nowMs };
    return nowMs - this.#watched.sinceMs >= sweepLeaseMs ? revision : undefined;
  }

  async #write(state: "held" | "free", expected: number): Promise<LeaseAttempt> {
    const { notes, clock, workerId } = this.#options;
    this.#writeCount += 1;
    const text = JSON.stringify({ v: 1, holder: workerId, state, writeCount: this.#writeCount });
    const outcome = await notes.write({ name: this.#name, text, expected });
    if (outcome.kind === "refused") return "failed";
    const revision = outcome.kind === "stored" ? outcome.revision : await this.#revisionOf(text);
    if (revision === undefined) return outcome.kind === "unknown" ? "failed" : "held";
    this.#heldRevision = revision;
    this.#writtenAtMs = clock.monotonicMs();
    return "taken";
  }

  /** The revision of our own write, when it is there although its reply did not come. */
  async #revisionOf(text: string): Promise<number | undefined> {
    const read = await this.#options.notes.read(this.#name);
    return read.kind === "found" && read.value === text ? read.revision : undefined;
  }
}

/** Free, or a note of this very process whose release was lost. */
function isFree(text: string, workerId: string): boolean {
  try {
    const note: unknown = JSON.parse(text);
    if (typeof note !== "object" || note === null) return false;
    const { v, state, holder } = note as { readonly v?: unknown; readonly state?: unknown; readonly holder?: unknown };
    return v === 1 && (state === "free" || holder === workerId);
  } catch {
    return false;
  }
}
