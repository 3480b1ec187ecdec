/**
 * Which data streams have lost what they held, from one look at them and what this process has seen before.
 *
 * Streams made anew, emptied or put back look healthy to whoever sees them for the first time. Taking starts into them
 * would bury the loss, and deciding from a STATE that was emptied would refuse feedback of timers that a backup still
 * has. SCHEDULES is not among them: it is derived from STATE, and the sweep restores it.
 *
 * D1 A loss is told at the second look in a row that finds it: a leader that was just deposed may answer from the past.
 *    Until then nothing is taken either.
 * D2 What was known of a lost stream stays known, so that the loss lasts until the stream is what it was, or further.
 * D3 A stream of the same mark with another time of creation was restored from a backup: no loss, whatever its sequence.
 */
import { streamNames } from "../protocol/names.ts";
import type { DataLook, DataStream, StreamLife } from "./ports.ts";

/** What happened to a stream. */
export type DataLossKind = "missing" | "replaced" | "emptied" | "rewound";

/** A stream that does not hold what it held. */
export type DataLoss = { readonly stream: DataStream; readonly kind: DataLossKind };

export type DataState = {
  /** The last look found nothing wrong. False before the first one. */
  readonly isWhole: boolean;
  /** What the last look found. */
  readonly found: readonly DataLoss[];
  /** What the last two looks found (D1). */
  readonly losses: readonly DataLoss[];
  /** Streams that the last look found restored from a backup. */
  readonly restored: readonly DataStream[];
  readonly known: Readonly<Partial<Record<DataStream, StreamLife>>>;
};

/** Before the first look. */
export const initialData: DataState = { isWhole: false, found: [], losses: [], restored: [], known: {} };

/** The next state; a broker that did not answer changes nothing, for its silence closes admission by itself. */
export function decideData(previous: DataState, look: DataLook | undefined): DataState {
  if (look === undefined) return previous.restored.length === 0 ? previous : { ...previous, restored: [] };
  const known: Partial<Record<DataStream, StreamLife>> = { ...previous.known };
  const found: DataLoss[] = [];
  const restored: DataStream[] = [];
  for (const stream of dataStreams) {
    const before = previous.known[stream];
    const now = look.streams[stream];
    const kind = now === undefined ? "missing" : (changeOf(before, now) ?? emptiness(stream, look));
    if (kind !== undefined) found.push({ stream, kind });
    else if (now !== undefined) {
      if (before !== undefined && before.createdAt !== now.createdAt) restored.push(stream);
      known[stream] = now;
    }
  }
  const losses = found.filter((loss) => previous.found.some((earlier) => earlier.stream === loss.stream && earlier.kind === loss.kind));
  return { isWhole: found.length === 0, found, losses, restored, known };
}

/**
 * True when nothing may be decided at all: absence in STATE, or in SNAPSHOTS, would be taken for a fact. A SNAPSHOTS that
 * lost its tail is not: a timer whose snapshot went with it is recognised and set aside, and all others go on.
 */
export function isUndecidable({ isWhole, found }: DataState): boolean {
  if (isWhole) return false;
  return found.length === 0 || found.some(({ stream, kind }) => stream === "state" || (stream === "snapshots" && kind !== "rewound"));
}

/**
 * True when a stream was made anew by its owner. The operator does that only after a person has acknowledged the loss, so
 * that a new process may begin with it; this one knows too much of the stream before.
 */
export function isMadeAnew({ losses, known }: DataState, look: DataLook | undefined): boolean {
  return losses.some(({ stream, kind }) => {
    const ownerId = look?.streams[stream]?.ownerId;
    return kind === "replaced" && ownerId !== undefined && ownerId !== "" && ownerId === known[stream]?.ownerId;
  });
}

/** A loss as a sentence for a person. */
export function describeLoss({ stream, kind }: DataLoss): string {
  return `stream ${streamNames[stream]} ${descriptions[kind]}; no start is taken`;
}

function changeOf(before: StreamLife | undefined, now: StreamLife): DataLossKind | undefined {
  if (before === undefined) return undefined;
  if (before.incarnation !== now.incarnation) return "replaced";
  return before.createdAt === now.createdAt && now.lastSequence < before.lastSequence ? "rewound" : undefined;
}

function emptiness(stream: DataStream, { hasOwnerKey, lacksSnapshots }: DataLook): DataLossKind | undefined {
  const isEmptied = (stream === "state" && !hasOwnerKey) || (stream === "snapshots" && lacksSnapshots);
  return isEmptied ? "emptied" : undefined;
}

const descriptions: Readonly<Record<DataLossKind, string>> = {
  missing: "does not exist",
  replaced: "was replaced by another one of its name",
  emptied: "was emptied",
  rewound: "has lost its last messages",
};

/** In the order in which they are created. */
export const dataStreams: readonly DataStream[] = ["state", "snapshots", "terminals", "resumes", "feedback", "commands"];
