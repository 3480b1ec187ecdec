/**
 * The state record: everything the product knows of a live timer, in one value under compare-and-set.
 *
 * Creation sets generation 0 and fence 1. Every transition adds one to the fence; an accepted retry adds one to the
 * generation (I5). A wake carries the fence of the waiting record that armed it, a resume the fence of the elapsed one.
 */
import type { DurationMs, EpochMs } from "../base/units.ts";
import type { Lineage } from "./identity.ts";

/** `sha256:` and 64 lower-case hexadecimal characters. */
export type ContentHash = `sha256:${string}`;

/** What a flow's owner may say of an elapsed timer. */
export type FeedbackVerb = "retry" | "complete" | "fail";

/** The last feedback that changed the record; recognises its second copy. Wakes keep it. */
export type Receipt = {
  readonly verb: FeedbackVerb;
  /** Generation and fence which the feedback carried, not those it led to. */
  readonly generation: number;
  readonly fence: number;
  readonly hash: ContentHash;
};

/** Why a timer failed, in its owner's words or in ours. */
export type FailureCause = { readonly code: string; readonly message: string };

/** What every phase has. */
export type RecordBase = {
  readonly lineage: Lineage;
  /** Hash over the start's meaning; the name of the snapshot that this record belongs to. */
  readonly snapshotHash: ContentHash;
  /** Hash of the snapshot's body, checked before a resume carries it. */
  readonly payloadHash: ContentHash;
  /** Size of the snapshot's body, so that reads of many snapshots can be bounded in bytes beforehand. */
  readonly payloadBytes: number;
  readonly maxRetries: number;
  /** Wait of a retried generation; absent only when no retry is possible. */
  readonly retryDelayMs?: DurationMs;
  readonly startedAtMs: EpochMs;
  /** Due time of the current generation, on the broker's clock. */
  readonly dueAtMs: EpochMs;
  readonly generation: number;
  readonly fence: number;
  readonly receipt?: Receipt;
};

/** Armed: its schedule carries this generation and fence. */
export type WaitingRecord = RecordBase & { readonly phase: "waiting" };

/** Due: its resume is owed or published, and feedback is awaited. */
export type ElapsedRecord = RecordBase & {
  readonly phase: "elapsed";
  /** Fence of the waiting record whose wake led here; recognises that wake's second copy. */
  readonly armedFence: number;
  readonly elapsedAtMs: EpochMs;
  /** Present when no feedback came in time and the resume was therefore owed once more: when the sweep that saw it began. */
  readonly resumedAgainAtMs?: EpochMs;
};

/** Ended: lives in STATE only until the archive holds exactly its bytes (I6). */
export type TerminalRecord = RecordBase & {
  readonly phase: "terminal";
  readonly outcome: "completed" | "failed";
  readonly failure?: FailureCause;
  readonly endedAtMs: EpochMs;
  /** Present when the last generation had elapsed; absent when the timer was failed while waiting. */
  readonly elapsedAtMs?: EpochMs;
};

/** A timer in any phase. */
export type TimerRecord = WaitingRecord | ElapsedRecord | TerminalRecord;

/** The fields that every phase has, without those of the phase that is left and without the receipt. */
export function recordBase(known: RecordBase): Omit<RecordBase, "receipt"> {
  const { lineage, snapshotHash, payloadHash, payloadBytes, maxRetries, retryDelayMs, startedAtMs, dueAtMs, generation, fence } = known;
  return {
    lineage, snapshotHash, payloadHash, payloadBytes, maxRetries, startedAtMs, dueAtMs, generation, fence,
    ...(retryDelayMs === undefined ? {} : { retryDelayMs }),
  };
}

/** How input that names a generation and fence relates to a record. */
export type InputAge = "older" | "equal" | "newer";

/**
 * Compares (generation, fence) of an input with a point of a record's life. Both only grow (I5), so input behind in
 * either one can never become current again; anything else that is not equal lies ahead of what was read.
 */
export function inputAge(
  input: { readonly generation: number; readonly fence: number },
  at: { readonly generation: number; readonly fence: number },
): InputAge {
  if (input.generation < at.generation || input.fence < at.fence) return "older";
  if (input.generation === at.generation && input.fence === at.fence) return "equal";
  return "newer";
}
