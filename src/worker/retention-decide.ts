/**
 * What collection does about one ended timer, or about one snapshot, from everything that is stored of it.
 *
 * D1 Only what certainly belongs to a timer that has ended is collected: a record of any kind beside it is the sweep's.
 * D2 An orphan is a snapshot of which neither a record nor an archive is known, for far longer than any start is in hand.
 * D3 What an interrupted collection left is told by what lies in the snapshot's place, and carried on from there.
 */
import { unreachable } from "../base/assert.ts";
import type { Failure } from "../base/failure.ts";
import type { Grave } from "../protocol/tombstone.ts";
import type { ContentHash, TerminalRecord } from "../timer/record.ts";
import type { ReadOutcome, WalkedSnapshot } from "./ports.ts";

/** What lies in the snapshot's place of an ended timer. */
export type SnapshotEvidence =
  | { readonly kind: "snapshot"; readonly hash: ContentHash | undefined; readonly revision: number }
  | { readonly kind: "collected"; readonly grave: Grave; readonly revision: number }
  | { readonly kind: "absent" }
  | { readonly kind: "marker" | "unreadable" }
  | { readonly kind: "failed"; readonly failure: Failure };

/** Why something is kept for now. */
export type Kept =
  | { readonly kind: "kept_live" }
  | { readonly kind: "kept_unreadable"; readonly problem: string }
  | { readonly kind: "failed"; readonly failure: Failure };

/** What is done about an archived timer. */
export type ArchivedDecision =
  /** Put the tombstone over this revision, then remove the archive, then let the tombstone expire. */
  | { readonly kind: "bury"; readonly archived: TerminalRecord; readonly expected: number }
  /** The tombstone stands already, at this revision. */
  | { readonly kind: "remove"; readonly archived: TerminalRecord; readonly tombstoneRevision: number }
  | Kept;

/** The decision about an archived timer that is old enough; `state` is the leader's word. */
export function decideArchived(archived: ReadOutcome<TerminalRecord>, state: ReadOutcome<unknown>, snapshot: SnapshotEvidence): ArchivedDecision {
  if (archived.kind !== "found") return { kind: "kept_unreadable", problem: archived.kind === "unreadable" ? archived.problem : "is no terminal record" };
  if (state.kind === "failed") return { kind: "failed", failure: state.failure };
  if (state.kind === "found" || state.kind === "unreadable") return { kind: "kept_live" };
  const { snapshotHash } = archived.value;
  switch (snapshot.kind) {
    case "snapshot":
      return snapshot.hash === snapshotHash ? { kind: "bury", archived: archived.value, expected: snapshot.revision } : otherSnapshot;
    case "collected":
      return snapshot.grave.tombstone?.snapshotHash === snapshotHash ? whenBuried(archived.value, snapshot) : otherSnapshot;
    case "absent":
      return { kind: "bury", archived: archived.value, expected: 0 };
    case "marker":
      return { kind: "kept_live" };
    case "unreadable":
      return { kind: "kept_unreadable", problem: "the snapshot cannot be read" };
    case "failed":
      return snapshot;
    default:
      return unreachable(snapshot);
  }
}

/** A tombstone that will expire must not do so before the archive has gone: it is put there anew, without an end. */
function whenBuried(archived: TerminalRecord, { grave, revision }: { readonly grave: Grave; readonly revision: number }): ArchivedDecision {
  return grave.expiresInMs === undefined ? { kind: "remove", archived, tombstoneRevision: revision } : { kind: "bury", archived, expected: revision };
}

/** What a walked snapshot may need; nothing for most. */
export type SnapshotNeed =
  /** A tombstone without an end. */
  | { readonly kind: "finish"; readonly grave: Grave }
  /** Old enough to be an orphan. */
  | { readonly kind: "look" };

/** Whether anything has to be read about what a walk met in a snapshot's place. */
export function needOf({ found, storedAtMs }: WalkedSnapshot, at: { readonly orphansBeforeMs: number }): SnapshotNeed | undefined {
  switch (found.kind) {
    case "collected":
      return found.grave.expiresInMs === undefined ? { kind: "finish", grave: found.grave } : undefined;
    case "snapshot":
      return storedAtMs <= at.orphansBeforeMs ? { kind: "look" } : undefined;
    case "unreadable":
      return undefined;
    default:
      return unreachable(found);
  }
}

/** True when nothing is known of the timer, as far as this reading goes; a marker shows that something just was. */
export function isUnknown(state: ReadOutcome<unknown>, archived: ReadOutcome<unknown>): boolean {
  return state.kind === "absent" && archived.kind === "absent";
}

const otherSnapshot: Kept = { kind: "kept_unreadable", problem: "the snapshot is not that of the archived timer" };
