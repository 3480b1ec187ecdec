/**
 * Remembers the last sequence of each stream that was seen, so that a stream whose end was lost is noticed: a server that
 * comes back from a loss of power without its last writes looks healthy, and its numbers go back.
 *
 * 1. A stream is known by its life (mark and time of creation): another life is another stream.
 * 2. A rewind counts when two looks, `rewindConfirmMs` apart, agree: one may come from a leader that was deposed.
 * 3. What was seen stays until the life ends, and a later rewind takes its place: so its incident keeps its id.
 */
import { rewindConfirmMs } from "../base/limits.ts";
import type { MonotonicMs } from "../base/units.ts";
import { readStamp } from "../topology/stamp.ts";
import type { BrokerObservation, Looked, Rewind, StreamFacts, StreamRole } from "./plan/observed.ts";

type Streams = Extract<BrokerObservation, { readonly kind: "reached" }>["streams"];
type Seen = { readonly life: string; readonly lastSequence: number; readonly rewind?: Rewind; readonly doubtedAtMs?: MonotonicMs };

/** What was seen of the streams of one resource. */
export class SequenceMemory {
  readonly #seen = new Map<StreamRole, Seen>();

  /** Takes note of a look at the streams; returns those that lost their end. */
  note(streams: Streams, atMs: MonotonicMs): Readonly<Partial<Record<StreamRole, Rewind>>> {
    for (const [role, looked] of Object.entries(streams) as readonly (readonly [StreamRole, Looked<StreamFacts>])[]) {
      if (looked.kind === "found") this.#seen.set(role, next(this.#seen.get(role), looked.value, atMs));
    }
    const rewinds = [...this.#seen].flatMap(([role, { rewind }]) => (rewind === undefined ? [] : [[role, rewind] as const]));
    return Object.fromEntries(rewinds);
  }
}

function next(had: Seen | undefined, { config, createdAt, lastSequence }: StreamFacts, atMs: MonotonicMs): Seen {
  const life = `${readStamp(config)?.incarnation ?? ""} ${createdAt}`;
  if (had?.life !== life) return { life, lastSequence };
  const settled = had.rewind?.isConfirmed === true ? { rewind: had.rewind } : {};
  if (lastSequence >= had.lastSequence) return { life, lastSequence, ...settled };
  const { doubtedAtMs = atMs } = had;
  const rewind = { fromSequence: had.lastSequence, toSequence: lastSequence };
  if (atMs - doubtedAtMs >= rewindConfirmMs) return { life, lastSequence, rewind: { ...rewind, isConfirmed: true } };
  return { life, lastSequence: had.lastSequence, doubtedAtMs, rewind: { ...rewind, isConfirmed: false } };
}
