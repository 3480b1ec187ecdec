/**
 * Reads what a decision needs to know: one record per timer, and for timers without one, the archive and the snapshot.
 * Absence is concluded from the leader only; a replica's absence comes back as an empty view of basis `replica`.
 */
import { present, unreachable } from "../base/assert.ts";
import type { Failure } from "../base/failure.ts";
import type { Sha256 } from "../base/sha256.ts";
import { startInput } from "../protocol/command.ts";
import { readContext, startContextSchema } from "../protocol/context.ts";
import type { Basis, TimerView } from "../timer/decision.ts";
import type { TimerKey } from "../timer/identity.ts";
import type { ContentHash, TerminalRecord, TimerRecord } from "../timer/record.ts";
import type { ReadOutcome, Snapshot, WorkerPorts } from "./ports.ts";

export type ViewOutcome =
  | { readonly kind: "view"; readonly view: TimerView; readonly revision?: number }
  | { readonly kind: "failed"; readonly failure: Failure }
  /** A removed record's marker stands where a new one would go: wait for it to expire. */
  | { readonly kind: "marker" }
  | { readonly kind: "corrupt"; readonly problem: string };

type ReadPorts = Pick<WorkerPorts, "state" | "archive" | "snapshots">;

/** Views of timers, read as `basis` says; one outcome per key, in order. */
export async function readViews(ports: ReadPorts, keys: readonly TimerKey[], options: { readonly basis: Basis; readonly sha256: Sha256 }): Promise<readonly ViewOutcome[]> {
  const { basis } = options;
  if (basis === "assumed") return keys.map(() => ({ kind: "view", view: { basis } }));
  const reads = await ports.state.read(keys, basis === "replica" ? "replica" : "leader");
  if (basis === "replica") return reads.map((read) => fromRecord(read, basis));
  const missing = reads.flatMap((read, index) => (read.kind === "absent" || read.kind === "marker" ? [index] : []));
  const behind = await readBehind(ports, missing.map((index) => present(keys[index], "a key per read")));
  const behindOf = new Map(missing.map((index, at) => [index, present(behind[at], "one reading per missing record")]));
  return reads.map((read, index) => {
    const found = behindOf.get(index);
    return found === undefined ? fromRecord(read, basis) : fromBehind(read, found, options);
  });
}

function fromRecord(read: ReadOutcome<TimerRecord>, basis: Basis): ViewOutcome {
  switch (read.kind) {
    case "found":
      return { kind: "view", view: { basis, record: read.value }, revision: read.revision };
    case "unreadable":
      return { kind: "corrupt", problem: `state record: ${read.problem}` };
    case "failed":
      return { kind: "failed", failure: read.failure };
    case "absent":
    case "marker":
      return { kind: "view", view: { basis } };
    default:
      return unreachable(read);
  }
}

type Behind = { readonly archived: ReadOutcome<TerminalRecord>; readonly snapshot: ReadOutcome<Snapshot> };

async function readBehind(ports: ReadPorts, keys: readonly TimerKey[]): Promise<readonly Behind[]> {
  if (keys.length === 0) return [];
  const archived = await ports.archive.read(keys);
  const snapshots = await ports.snapshots.read(keys, "leader");
  return keys.map((_, index) => ({
    archived: present(archived[index], "one archive reading per key"),
    snapshot: present(snapshots[index], "one snapshot reading per key"),
  }));
}

function fromBehind(state: ReadOutcome<TimerRecord>, { archived, snapshot }: Behind, { basis, sha256 }: { readonly basis: Basis; readonly sha256: Sha256 }): ViewOutcome {
  if (archived.kind === "failed") return { kind: "failed", failure: archived.failure };
  if (archived.kind === "found") return { kind: "view", view: { basis, archived: archived.value } };
  if (archived.kind === "unreadable") return { kind: "corrupt", problem: `archive: ${archived.problem}` };
  if (state.kind === "marker") return { kind: "marker" };
  switch (snapshot.kind) {
    case "failed":
      return { kind: "failed", failure: snapshot.failure };
    case "found": {
      const hash = hashOfSnapshot(snapshot.value, sha256);
      return hash === undefined ? { kind: "corrupt", problem: "the snapshot's context cannot be read" } : { kind: "view", view: { basis, snapshot: hash } };
    }
    case "unreadable":
      return { kind: "corrupt", problem: `snapshot: ${snapshot.problem}` };
    case "absent":
    case "marker":
      return { kind: "view", view: { basis } };
    default:
      return unreachable(snapshot);
  }
}

/** A snapshot keeps its start's context; its hash is computed from that, never stored beside it. */
function hashOfSnapshot(snapshot: Snapshot, sha256: Sha256): ContentHash | undefined {
  const read = readContext(snapshot.contextHeader, startContextSchema);
  if (!read.ok) return undefined;
  return startInput(read.context, { receivedAtNs: 0n, payloadBytes: snapshot.body.length }, sha256).snapshotHash;
}
