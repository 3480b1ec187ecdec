/**
 * Reads what a decision needs to know: one record per timer, for timers without one the archive, and for starts of timers
 * that are in neither the snapshot.
 * Absence is concluded from the leader only; a replica's absence comes back as an empty view of basis `replica`.
 */
import { present, unreachable } from "../base/assert.ts";
import type { Failure } from "../base/failure.ts";
import { leaderReadsInFlightMax } from "../base/limits.ts";
import type { Sha256 } from "../base/sha256.ts";
import { startInput } from "../protocol/command.ts";
import { readContext, startContextSchema } from "../protocol/context.ts";
import type { Basis, TimerView } from "../timer/decision.ts";
import type { TimerKey } from "../timer/identity.ts";
import type { ContentHash, TerminalRecord, TimerRecord } from "../timer/record.ts";
import type { ReadOutcome, Snapshot, SnapshotReading, WorkerPorts } from "./ports.ts";

export type ViewOutcome =
  | { readonly kind: "view"; readonly view: TimerView; readonly revision?: number }
  | { readonly kind: "failed"; readonly failure: Failure }
  /** Something that expires stands where a new record or snapshot would go: wait for that. */
  | { readonly kind: "marker" }
  | { readonly kind: "corrupt"; readonly problem: string };

type ReadPorts = Pick<WorkerPorts, "state" | "archive" | "snapshots">;

/** Whose view is wanted, and whether a start asks: nothing else is decided by a snapshot. */
export type ViewRequest = { readonly key: TimerKey; readonly isStart: boolean };

type ViewOptions = { readonly basis: Basis; readonly sha256: Sha256 };

/** Views of timers, read as `basis` says; one outcome per request, in order. */
export async function readViews(ports: ReadPorts, requests: readonly ViewRequest[], options: ViewOptions): Promise<readonly ViewOutcome[]> {
  const { basis } = options;
  if (basis === "assumed") return requests.map(() => ({ kind: "view", view: { basis } }));
  const reads = await ports.state.read(requests.map(({ key }) => key), basis === "replica" ? "replica" : "leader");
  if (basis === "replica") return reads.map((read) => fromRecord(read, basis));
  const missing = reads.flatMap((state, index) => (state.kind === "absent" || state.kind === "marker" ? [{ index, state, request: present(requests[index], "a request per read") }] : []));
  const behind = await readBehind(ports, missing, options);
  const behindOf = new Map(missing.map(({ index }, at) => [index, present(behind[at], "one view per missing record")]));
  return reads.map((read, index) => behindOf.get(index) ?? fromRecord(read, basis));
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

type Missing = { readonly state: ReadOutcome<TimerRecord>; readonly request: ViewRequest };

/** Views of timers without a record: from the archive, and for starts of timers that are not there either, from the snapshot. */
async function readBehind(ports: ReadPorts, missing: readonly Missing[], options: ViewOptions): Promise<readonly ViewOutcome[]> {
  if (missing.length === 0) return [];
  const archived = await ports.archive.read(missing.map(({ request }) => request.key));
  const views = missing.map((one, index) => withoutSnapshot(one, present(archived[index], "one archive reading per key"), options));
  const toLook = views.flatMap((view, index) => (view === "look" ? [index] : []));
  const keys = toLook.map((index) => present(missing[index], "a missing record").request.key);
  const seen = await readSnapshots(ports, keys, options);
  const seenOf = new Map(toLook.map((index, at) => [index, present(seen[at], "one view per snapshot")]));
  return views.map((view, index) => (view === "look" ? present(seenOf.get(index), "a view from the snapshot") : view));
}

function withoutSnapshot({ state, request }: Missing, archived: ReadOutcome<TerminalRecord>, { basis }: ViewOptions): ViewOutcome | "look" {
  switch (archived.kind) {
    case "failed":
      return { kind: "failed", failure: archived.failure };
    case "found":
      return { kind: "view", view: { basis, archived: archived.value } };
    case "unreadable":
      return { kind: "corrupt", problem: `archive: ${archived.problem}` };
    case "absent":
    case "marker":
      if (state.kind === "marker") return { kind: "marker" };
      return request.isStart ? "look" : { kind: "view", view: { basis } };
    default:
      return unreachable(archived);
  }
}

/** A few at a time, of which only the hashes are kept: a batch of the largest snapshots would not fit in the process. */
async function readSnapshots(ports: ReadPorts, keys: readonly TimerKey[], options: ViewOptions): Promise<readonly ViewOutcome[]> {
  const views: ViewOutcome[] = [];
  for (let from = 0; from < keys.length; from += leaderReadsInFlightMax) {
    const reads = await ports.snapshots.read(keys.slice(from, from + leaderReadsInFlightMax), "leader");
    views.push(...reads.map((read) => fromSnapshot(read, options)));
  }
  return views;
}

function fromSnapshot(snapshot: SnapshotReading, { basis, sha256 }: ViewOptions): ViewOutcome {
  switch (snapshot.kind) {
    case "failed":
      return { kind: "failed", failure: snapshot.failure };
    case "found": {
      const hash = hashOfSnapshot(snapshot.value, sha256);
      return hash === undefined ? { kind: "corrupt", problem: "the snapshot's context cannot be read" } : { kind: "view", view: { basis, snapshot: hash } };
    }
    case "unreadable":
      return { kind: "corrupt", problem: `snapshot: ${snapshot.problem}` };
    case "collected": {
      const { tombstone } = snapshot.grave;
      // There never was a timer of it: its start is taken once the grave has gone.
      return tombstone === undefined ? { kind: "marker" } : { kind: "view", view: { basis, tombstone } };
    }
    case "absent":
      return { kind: "view", view: { basis } };
    case "marker":
      return { kind: "marker" };
    default:
      return unreachable(snapshot);
  }
}

/** A snapshot keeps its start's context; its hash is computed from that, never stored beside it. Undefined when it cannot be read. */
export function hashOfSnapshot(snapshot: Snapshot, sha256: Sha256): ContentHash | undefined {
  const read = readContext(snapshot.contextHeader, startContextSchema);
  if (!read.ok) return undefined;
  return startInput(read.context, { receivedAtNs: 0n, payloadBytes: snapshot.body.length }, sha256).snapshotHash;
}
