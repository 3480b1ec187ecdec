/**
 * What is left of a timer that was collected: enough to recognise its start, and to answer it as the archive would have.
 * It takes the snapshot's place, because a snapshot that is already there is what tells a late start that it is late.
 */
import type { EpochMs } from "../base/units.ts";
import type { ContentHash, TerminalRecord } from "./record.ts";

/** An ended timer of which neither record nor snapshot is kept any more. */
export type Tombstone = {
  readonly phase: "collected";
  readonly snapshotHash: ContentHash;
  readonly outcome: TerminalRecord["outcome"];
  readonly generation: number;
  readonly fence: number;
  readonly dueAtMs: EpochMs;
  readonly endedAtMs: EpochMs;
};

/** The tombstone of an archived timer. */
export function tombstoneOf(archived: TerminalRecord): Tombstone {
  const { snapshotHash, outcome, generation, fence, dueAtMs, endedAtMs } = archived;
  return { phase: "collected", snapshotHash, outcome, generation, fence, dueAtMs, endedAtMs };
}
