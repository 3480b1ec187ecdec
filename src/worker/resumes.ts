/**
 * The resume stage: reads the snapshots that are owed, checks every body against its record's hash, and publishes.
 *
 * Bodies are read in portions bounded in bytes (I13). A body from a replica that does not match is read once more from
 * the leader; if that one does not match either, the timer is set aside: never resumed with wrong bytes (I2).
 */
import { present, unreachable } from "../base/assert.ts";
import { workerBatchBytesMax } from "../base/limits.ts";
import { portionsOf } from "../base/portions.ts";
import { payloadHash } from "../timer/hashes.ts";
import type { ElapsedRecord } from "../timer/record.ts";
import type { ReadFrom, SnapshotReading } from "./ports.ts";
import { note, type Progress, type WriteContext } from "./write-job.ts";

/** Publishes the resume of each job's elapsed record. */
export async function publishResumes(context: WriteContext, due: readonly Progress[]): Promise<void> {
  const limits = { countMax: Infinity, bytesMax: workerBatchBytesMax, bytesOf: ({ job }: Progress) => job.record.payloadBytes };
  for (const portion of portionsOf(due, limits)) await publishPortion(context, portion);
}

async function publishPortion(context: WriteContext, portion: readonly Progress[]): Promise<void> {
  const bodies = new Map<Progress, Uint8Array>();
  await readBodies(context, { portion, from: "replica", bodies });
  const missing = portion.filter((progress) => !bodies.has(progress));
  if (missing.length > 0) await readBodies(context, { portion: missing, from: "leader", bodies });
  const ready = portion.filter((progress) => bodies.has(progress));
  if (ready.length === 0) return;
  const outcomes = await context.ports.resumes.publish(ready.map((progress) => ({
    key: progress.job.key, record: progress.job.record as ElapsedRecord, body: present(bodies.get(progress), "a checked body"),
  })));
  ready.forEach((progress, index) => { note(progress, "resume", present(outcomes[index], "one outcome per resume")); });
}

type BodyReads = { readonly portion: readonly Progress[]; readonly from: ReadFrom; readonly bodies: Map<Progress, Uint8Array> };

async function readBodies(context: WriteContext, { portion, from, bodies }: BodyReads): Promise<void> {
  const reads = await context.ports.snapshots.read(portion.map(({ job }) => job.key), from);
  portion.forEach((progress, index) => {
    const read = present(reads[index], "one read per snapshot");
    const isRight = read.kind === "found" && payloadHash(read.value.body, context.sha256) === progress.job.record.payloadHash;
    if (isRight) bodies.set(progress, read.value.body);
    else if (from === "leader") progress.result = lost(read);
  });
}

function lost(read: SnapshotReading): NonNullable<Progress["result"]> {
  switch (read.kind) {
    case "failed":
      return { kind: "again", at: "resume" };
    case "found":
      return { kind: "corrupt", at: "resume", problem: "the snapshot's body does not match its hash" };
    case "unreadable":
      return { kind: "corrupt", at: "resume", problem: read.problem };
    case "collected":
      return { kind: "corrupt", at: "resume", problem: "the snapshot was collected, which only happens to timers that have ended" };
    case "absent":
    case "marker":
      return { kind: "corrupt", at: "resume", problem: "the snapshot is missing" };
    default:
      return unreachable(read);
  }
}
