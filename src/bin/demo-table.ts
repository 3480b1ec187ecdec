// The closing table of the demo: what NATS holds, beside what must be there.

import { ackWaitMs } from "../base/limits.ts";
import { decodeRecord } from "../protocol/record-codec.ts";
import { stateRecordFilter, streamNames, subjectFilters } from "../protocol/names.ts";
import type { JetStream } from "../nats/core/jetstream.ts";
import type { TerminalRecord, TimerRecord } from "../timer/record.ts";
import { millis, type SeenResume } from "./demo-play.ts";
import { isNearCrash, type DemoTimer } from "./demo-timers.ts";

/** What was counted in the streams. */
export type NatsCounts = {
  /** Snapshots: each accepted start has one, for ever. */
  readonly started: number;
  /** Records of timers that have not been archived. */
  readonly live: number;
  /** Resumes that were ever stored, by the stream's last sequence. */
  readonly resumesStored: number;
  readonly archived: readonly TerminalRecord[];
};

export type TableRow = { readonly label: string; readonly counted: number; readonly expected: number };

export type Table = { readonly rows: readonly TableRow[]; readonly isRight: boolean; readonly lines: readonly string[] };

/** Counts in the streams themselves. Throws a Failure when the broker does not answer. */
export async function countInNats(jetStream: JetStream): Promise<NatsCounts> {
  const resumes = await jetStream.streamState(streamNames.resumes);
  if (resumes.kind === "failed") throw resumes.failure;
  const records = await recordsUnder(jetStream, streamNames.state, stateRecordFilter);
  const archived = await recordsUnder(jetStream, streamNames.terminals, subjectFilters.terminals);
  return {
    started: await countUnder(jetStream, streamNames.snapshots, subjectFilters.snapshots),
    live: records.length,
    resumesStored: resumes.value.lastSequence,
    archived: archived.filter((record) => record.phase === "terminal"),
  };
}

/** The table of a play: `seen` are the resumes as they were delivered, with the times that JetStream gave them. */
export function closingTable(plan: readonly DemoTimer[], counts: NatsCounts, seen: readonly SeenResume[]): Table {
  const delivered = new Map(seen.map((resume) => [`${resume.timer} ${String(resume.generation)} ${String(resume.fence)}`, resume]));
  const owed = counts.archived.reduce((sum, record) => sum + elapsedGenerations(record), 0);
  const endings = [...new Set(plan.map(({ ending }) => ending))];
  const rows: readonly TableRow[] = [
    { label: "started", counted: counts.started, expected: plan.length },
    { label: "resumes stored", counted: counts.resumesStored, expected: plan.reduce((sum, { resumeCount }) => sum + resumeCount, 0) },
    { label: "resumed (distinct generations)", counted: delivered.size, expected: owed },
    ...endings.map((ending) => ({
      label: `archived as ${ending}`,
      counted: counts.archived.filter((record) => endingOf(record) === ending).length,
      expected: plan.filter((timer) => timer.ending === ending).length,
    })),
    { label: "lost", counted: counts.started - counts.archived.length - counts.live + Math.max(0, owed - delivered.size), expected: 0 },
    { label: "unfinished", counted: counts.live, expected: 0 },
    { label: "early", counted: seen.filter(({ latenessMs }) => latenessMs < 0).length, expected: 0 },
    { label: "payload changed", counted: seen.filter(({ isBodyEqual }) => !isBodyEqual).length, expected: 0 },
  ];
  return { rows, isRight: rows.every(({ counted, expected }) => counted === expected), lines: tableLines(rows, [...delivered.values()]) };
}

function tableLines(rows: readonly TableRow[], delivered: readonly SeenResume[]): readonly string[] {
  const worst = (of: readonly SeenResume[]): string => (of.length === 0 ? "-" : millis(Math.max(...of.map(({ latenessMs }) => latenessMs))));
  return [
    `${"counted in NATS".padEnd(labelWidth)} ${"is".padStart(5)} ${"must be".padStart(8)}`,
    ...rows.map(({ label, counted, expected }) => `${label.padEnd(labelWidth)} ${String(counted).padStart(5)} ${String(expected).padStart(8)}  ${counted === expected ? "ok" : "WRONG"}`),
    `${"worst lateness".padEnd(labelWidth)} ${worst(delivered.filter(({ timer }) => !isNearCrash(timer)))}`,
    `${"worst lateness around the crash".padEnd(labelWidth)} ${worst(delivered.filter(({ timer }) => isNearCrash(timer)))} (wakes that a killed worker held come back after ${String(ackWaitMs / 1_000)} s)`,
  ];
}

/** Generations of an ended timer that elapsed, each of which owed one resume. */
function elapsedGenerations(record: TerminalRecord): number {
  return record.elapsedAtMs === undefined ? record.generation : record.generation + 1;
}

function endingOf({ outcome, failure }: TerminalRecord): string {
  return failure === undefined ? outcome : `${outcome}: ${failure.code}`;
}

async function recordsUnder(jetStream: JetStream, stream: string, filter: string): Promise<readonly TimerRecord[]> {
  const records: TimerRecord[] = [];
  for await (const batch of jetStream.scan({ stream, filter, batchSize: 100, signal: AbortSignal.timeout(scanTimeoutMs) })) {
    // Markers of removed records have no body, and refused commands are kept in another form.
    records.push(...batch.flatMap(({ body }) => recordIn(body)));
  }
  return records;
}

function recordIn(body: Uint8Array): readonly TimerRecord[] {
  if (body.length === 0) return [];
  const read = decodeRecord(body);
  return read.ok ? [read.record] : [];
}

async function countUnder(jetStream: JetStream, stream: string, filter: string): Promise<number> {
  let count = 0;
  for await (const batch of jetStream.scan({ stream, filter, batchSize: 100, signal: AbortSignal.timeout(scanTimeoutMs) })) count += batch.length;
  return count;
}

const scanTimeoutMs = 10_000;
const labelWidth = 40;
