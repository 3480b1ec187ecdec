/** What NATS holds of timers, read from every stream, for the account. */
import { armedIn } from "../../src/nats/armed.ts";
import { lineageOf, startInput } from "../../src/protocol/command.ts";
import { readContext, startContextSchema, type StartContext } from "../../src/protocol/context.ts";
import type { StoredMessage } from "../../src/protocol/message.ts";
import { headerNames, stateRecordFilter, streamNames, timerKeyFromSubject, type StreamRole } from "../../src/protocol/names.ts";
import { decodeRecord } from "../../src/protocol/record-codec.ts";
import { readResume } from "../../src/protocol/resume.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { payloadHash } from "../../src/timer/hashes.ts";
import { timerKey } from "../../src/timer/identity.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import { readAll } from "../stream-reader.ts";
import { resumeCopy, type ResumeCopy } from "./ledger.ts";

/** A record with the bytes in which it lies. */
export type HeldRecord = { readonly ref: string; readonly record: TimerRecord; readonly bytes: Uint8Array };

/** A snapshot by its two hashes, computed from what lies there. */
export type HeldSnapshot = { readonly ref: string; readonly snapshotHash: string; readonly payloadHash: string };

/** Everything at one moment, or nearly: streams are read one after the other. */
export type Holdings = {
  /** Refs of starts in COMMANDS. */
  readonly pendingStarts: ReadonlySet<string>;
  readonly pendingFeedbackCount: number;
  readonly records: readonly HeldRecord[];
  readonly archived: readonly HeldRecord[];
  readonly snapshots: readonly HeldSnapshot[];
  readonly resumes: readonly ResumeCopy[];
  /** Of schedules and wakes: `<ref> <generation>:<fence>`. */
  readonly armed: ReadonlySet<string>;
  /** Messages that are not what their stream holds. */
  readonly unreadable: readonly string[];
};

/** Reads all streams. Rejects when the broker does not answer. */
export async function readHoldings(urls: readonly string[]): Promise<Holdings> {
  const unreadable: string[] = [];
  const read = async <T>(role: StreamRole, form: (message: StoredMessage) => T | string | undefined, filter = ">"): Promise<T[]> => {
    const forms = (await readAll(urls, { stream: streamNames[role], filter })).map((message) => ({ message, value: form(message) }));
    unreadable.push(...forms.flatMap(({ message, value }) => (typeof value === "string" ? [`${message.subject}: ${value}`] : [])));
    return forms.map(({ value }) => value).filter((value): value is Awaited<T> & object => typeof value === "object");
  };
  // Starts before records before archive: what moves on meanwhile is seen twice rather than not at all.
  const armed = await read("schedules", heldArmed);
  const starts = await read("commands", heldStart);
  const feedback = await read("feedback", (message) => ({ subject: message.subject }));
  const records = await read("state", (message) => (message.body.length === 0 ? undefined : heldRecord(message)), stateRecordFilter);
  const snapshots = await read("snapshots", heldSnapshot);
  const archived = await read("terminals", (message) => (message.subject.includes("~rejected") ? undefined : heldRecord(message)));
  const resumes = await read("resumes", heldResume);
  return {
    pendingStarts: new Set(starts.map(({ ref }) => ref)), pendingFeedbackCount: feedback.length,
    records, archived, snapshots, resumes, armed: new Set(armed.map(({ ref, fence }) => `${ref} ${fence}`)), unreadable,
  };
}

function heldArmed(message: StoredMessage): { readonly ref: string; readonly fence: string } | string {
  const ref = timerKeyFromSubject(message.subject)?.ref;
  const { generation, fence } = armedIn(message);
  return ref === undefined ? "names no timer" : { ref, fence: `${String(generation)}:${String(fence)}` };
}

function startContext(message: StoredMessage): StartContext | undefined {
  const read = readContext(message.headers.get(headerNames.context) ?? "", startContextSchema);
  return read.ok ? read.context : undefined;
}

/** A command that is no start is the workers' to refuse. */
function heldStart(message: StoredMessage): { readonly ref: string } | undefined {
  const context = startContext(message);
  return context === undefined ? undefined : { ref: timerKey(lineageOf(context), systemSha256).ref };
}

function heldRecord(message: StoredMessage): HeldRecord | string {
  const decoded = decodeRecord(message.body);
  if (!decoded.ok) return decoded.problem;
  const { ref } = timerKey(decoded.record.lineage, systemSha256);
  if (timerKeyFromSubject(message.subject)?.ref !== ref) return "holds another timer's record";
  return { ref, record: decoded.record, bytes: message.body };
}

function heldSnapshot(message: StoredMessage): HeldSnapshot | string {
  const context = startContext(message);
  if (context === undefined) return "has no context of a start";
  const { ref } = timerKey(lineageOf(context), systemSha256);
  if (timerKeyFromSubject(message.subject)?.ref !== ref) return "holds another timer's snapshot";
  const input = startInput(context, { receivedAtNs: 0n, payloadBytes: message.body.length }, systemSha256);
  return { ref, snapshotHash: input.snapshotHash, payloadHash: payloadHash(message.body, systemSha256) };
}

function heldResume(message: StoredMessage): ResumeCopy | string {
  const read = readResume(message, systemSha256);
  return read.ok ? resumeCopy(read.resume, Number(message.timestampNs / 1_000n) / 1_000) : read.problem;
}
