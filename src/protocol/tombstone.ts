/**
 * The stored form of a tombstone: one header beside an empty body, on the snapshot's subject.
 *
 * A worker of a release that knows no tombstones finds no context in it, and sets that one start aside until it expires:
 * late, and never wrong.
 */
import { z } from "zod";
import type { DurationMs } from "../base/units.ts";
import type { Tombstone } from "../timer/tombstone.ts";

/** Where a snapshot was. */
export type Grave = {
  /** Absent in the place of an orphan: of a start whose command is gone, and of which there never was a timer. */
  readonly tombstone?: Tombstone;
  /** How long it stays from when it was written. Absent while the archive may still be there. */
  readonly expiresInMs?: DurationMs;
};

const counter = z.int().min(0);
const graveSchema = z.object({
  v: z.literal(1),
  ended: z.object({
    snapshotHash: z.templateLiteral(["sha256:", z.string()]),
    outcome: z.enum(["completed", "failed"]),
    generation: counter,
    fence: counter,
    dueAtMs: counter,
    endedAtMs: counter,
  }).exactOptional(),
  expiresInMs: counter.exactOptional(),
});

/** The text of the header. */
export function encodeGrave({ tombstone, expiresInMs }: Grave): string {
  return JSON.stringify({ v: 1, ...(tombstone === undefined ? {} : { ended: endOf(tombstone) }), ...(expiresInMs === undefined ? {} : { expiresInMs }) });
}

/** Reads the header; undefined when it is none that this version understands. Never throws. */
export function decodeGrave(text: string): Grave | undefined {
  const parsed = graveSchema.safeParse(parseJson(text));
  if (!parsed.success) return undefined;
  const { ended, expiresInMs } = parsed.data;
  return {
    // The schema yields the domain's type but for brands on numbers, which have no run-time form.
    ...(ended === undefined ? {} : { tombstone: { phase: "collected", ...ended } as unknown as Tombstone }),
    ...(expiresInMs === undefined ? {} : { expiresInMs: expiresInMs as DurationMs }),
  };
}

/** In one order, so that equal ones have equal bytes. */
function endOf({ snapshotHash, outcome, generation, fence, dueAtMs, endedAtMs }: Tombstone): Omit<Tombstone, "phase"> {
  return { snapshotHash, outcome, generation, fence, dueAtMs, endedAtMs };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
