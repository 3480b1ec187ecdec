/** A decision's writes as a job for the stages, what may come of it, and its progress on the way. */
import type { Clock } from "../base/clock.ts";
import type { Failure } from "../base/failure.ts";
import type { Sha256 } from "../base/sha256.ts";
import type { MonotonicMs } from "../base/units.ts";
import type { Write } from "../timer/decision.ts";
import type { TimerKey } from "../timer/identity.ts";
import type { TimerRecord } from "../timer/record.ts";
import type { Snapshot, WorkerPorts, WriteOutcome } from "./ports.ts";

/** Writes that one decision asks for. */
export type WriteJob = {
  readonly key: TimerKey;
  /** The record that the state write stores, or the present one when there is none. */
  readonly record: TimerRecord;
  readonly writes: readonly Write[];
  /** Revision of the stored record; absent when it is to be created. */
  readonly revision?: number;
  /** Needed by the snapshot write. */
  readonly snapshot?: Snapshot;
};

export type WriteResult =
  | { readonly kind: "done" }
  /** A compare-and-set was lost (`isLost`) or a reply did not come: read from the leader and decide anew. */
  | { readonly kind: "again"; readonly at: Write; readonly isLost?: true }
  /** Surely not written, for a reason that another round would not change now. */
  | { readonly kind: "failed"; readonly at: Write; readonly failure: Failure }
  /** What is stored contradicts itself; this timer is set aside, others go on. */
  | { readonly kind: "corrupt"; readonly at: Write; readonly problem: string };

/** What the stages need besides jobs. */
export type WriteContext = {
  readonly ports: Pick<WorkerPorts, "snapshots" | "state" | "schedules" | "resumes" | "archive">;
  readonly clock: Clock;
  readonly sha256: Sha256;
  readonly decidedAtMs: MonotonicMs;
};

/** A job on its way through the stages. */
export type Progress = { readonly job: WriteJob; revision?: number; result?: WriteResult };

/** Turns an outcome that is not success into the job's result; success leaves it open for the next stage. */
export function note(progress: Progress, at: Write, outcome: WriteOutcome): void {
  if (outcome.kind === "stored") return;
  if (outcome.kind === "refused") progress.result = { kind: "failed", at, failure: outcome.failure };
  else progress.result = outcome.kind === "unknown" ? { kind: "again", at } : { kind: "again", at, isLost: true };
}
