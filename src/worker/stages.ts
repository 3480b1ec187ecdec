/**
 * Carries out the writes of many decisions together, stage by stage: all snapshots, then all records, then all
 * schedules, and so on. The order within one timer is what makes a crash anywhere safe; across timers there is none.
 *
 * S1 A timer enters a stage only when all its earlier writes are stored.
 * S2 Every write is conditional or idempotent, so running a job again after any crash gives the same end.
 * S3 Nothing is written on a decision older than `decisionAgeMsMax`: what it was based on may have expired since.
 */
import { present } from "../base/assert.ts";
import { decisionAgeMsMax, wakeLeadMs } from "../base/limits.ts";
import type { EpochMs } from "../base/units.ts";
import { encodeRecord } from "../protocol/record-codec.ts";
import type { Write } from "../timer/decision.ts";
import type { TimerKey } from "../timer/identity.ts";
import { inputAge, type TerminalRecord, type WaitingRecord } from "../timer/record.ts";
import type { ArmItem } from "./ports.ts";
import { publishResumes } from "./resumes.ts";
import { note, type Progress, type WriteContext, type WriteJob, type WriteResult } from "./write-job.ts";

type Stage = (context: WriteContext, due: readonly Progress[]) => Promise<void>;

/** Carries out the writes of all jobs; one result per job, in order. Jobs must be of different timers. */
export async function executeWrites(context: WriteContext, jobs: readonly WriteJob[]): Promise<readonly WriteResult[]> {
  const all = jobs.map((job): Progress => ({ job, ...(job.revision === undefined ? {} : { revision: job.revision }) }));
  for (const [write, stage] of stages) {
    const due = all.filter(({ job, result }) => result === undefined && job.writes.includes(write));
    if (due.length === 0) continue;
    if (context.clock.monotonicMs() - context.decidedAtMs > decisionAgeMsMax) {
      for (const progress of due) progress.result = { kind: "again", at: write };
      continue;
    }
    await stage(context, due);
  }
  return all.map(({ result }) => result ?? { kind: "done" });
}

const writeSnapshots: Stage = async (context, due) => {
  const items = due.map(({ job }) => ({ key: job.key, snapshot: present(job.snapshot, "a snapshot to write") }));
  const outcomes = await context.ports.snapshots.create(items);
  due.forEach((progress, index) => { note(progress, "snapshot", present(outcomes[index], "one outcome per snapshot")); });
};

const writeState: Stage = async (context, due) => {
  const items = due.map(({ job, revision }) => ({ key: job.key, record: job.record, ...(revision === undefined ? {} : { expected: revision }) }));
  const outcomes = await context.ports.state.write(items);
  due.forEach((progress, index) => {
    const outcome = present(outcomes[index], "one outcome per record");
    if (outcome.kind === "stored") progress.revision = outcome.revision;
    note(progress, "state", outcome);
  });
};

const writeSchedules: Stage = async (context, due) => {
  const outcomes = await context.ports.schedules.arm(due.map(({ job }) => armItem(job.key, job.record as WaitingRecord)));
  const taken: Progress[] = [];
  due.forEach((progress, index) => {
    const outcome = present(outcomes[index], "one outcome per schedule");
    if (outcome.kind === "exists" || outcome.kind === "conflict") taken.push(progress);
    else note(progress, "schedule", outcome);
  });
  if (taken.length > 0) await replaceOlderSchedules(context, taken);
};

/** A schedule left by a slow writer of an older generation would keep this one from ever firing. */
async function replaceOlderSchedules(context: WriteContext, taken: readonly Progress[]): Promise<void> {
  const looks = await context.ports.schedules.look(taken.map(({ job }) => job.key));
  const stale: { readonly progress: Progress; readonly item: ArmItem }[] = [];
  taken.forEach((progress, index) => {
    const look = present(looks[index], "one look per timer");
    if (look.kind === "failed") { progress.result = { kind: "again", at: "schedule" }; return; }
    const { key, record } = progress.job;
    if (look.schedule === undefined) {
      // Gone since: it fired. Unless its wake is this record's own, which carries on, it was an older one's, or the wake
      // has been worked off already: the record tells.
      if (look.wake === undefined || inputAge(look.wake, record) === "older") progress.result = { kind: "again", at: "schedule" };
      return;
    }
    if (inputAge(look.schedule, record) !== "older") return;
    stale.push({ progress, item: { ...armItem(key, record as WaitingRecord), expected: look.schedule.sequence } });
  });
  if (stale.length === 0) return;
  const outcomes = await context.ports.schedules.arm(stale.map(({ item }) => item));
  stale.forEach(({ progress }, index) => { note(progress, "schedule", present(outcomes[index], "one outcome per schedule")); });
}

/** The schedule of a waiting record, aimed early by the lead so that the wake can be held until it is due. */
export function armItem(key: TimerKey, record: WaitingRecord): ArmItem {
  const { generation, fence, dueAtMs } = record;
  return { key, generation, fence, dueAtMs, fireAtMs: Math.max(0, dueAtMs - wakeLeadMs) as EpochMs };
}

const archive: Stage = async (context, due) => {
  const outcomes = await context.ports.archive.create(due.map(({ job }) => ({ key: job.key, record: job.record as TerminalRecord })));
  const taken: Progress[] = [];
  due.forEach((progress, index) => {
    const outcome = present(outcomes[index], "one outcome per terminal record");
    if (outcome.kind === "exists" || outcome.kind === "conflict") taken.push(progress);
    else note(progress, "archive", outcome);
  });
  if (taken.length > 0) await compareArchived(context, taken);
};

/** An archive that is already there must hold exactly this record (I6). */
async function compareArchived(context: WriteContext, taken: readonly Progress[]): Promise<void> {
  const reads = await context.ports.archive.read(taken.map(({ job }) => job.key));
  taken.forEach((progress, index) => {
    const read = present(reads[index], "one read per terminal record");
    if (read.kind === "found" && sameBytes(encodeRecord(read.value), encodeRecord(progress.job.record))) return;
    progress.result = read.kind === "found" || read.kind === "unreadable"
      ? { kind: "corrupt", at: "archive", problem: "the archive holds another terminal record of this timer" }
      : { kind: "again", at: "archive" };
  });
}

const disarm: Stage = async (context, due) => {
  const outcomes = await context.ports.schedules.disarm(due.map(({ job }) => job.key));
  due.forEach((progress, index) => { note(progress, "unschedule", present(outcomes[index], "one outcome per schedule")); });
};

const removeState: Stage = async (context, due) => {
  const items = due.map(({ job, revision }) => ({ key: job.key, expected: present(revision, "the revision to remove") }));
  const outcomes = await context.ports.state.remove(items);
  due.forEach((progress, index) => { note(progress, "remove", present(outcomes[index], "one outcome per removal")); });
};

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

/** In the order in which writes become durable. */
const stages: readonly (readonly [Write, Stage])[] = [
  ["snapshot", writeSnapshots],
  ["state", writeState],
  ["schedule", writeSchedules],
  ["resume", publishResumes],
  ["archive", archive],
  ["unschedule", disarm],
  ["remove", removeState],
];
