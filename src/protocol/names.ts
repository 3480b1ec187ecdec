/**
 * Every name of the contract: streams, bucket, consumers, subjects, keys and headers. No other file spells one.
 *
 * All names are fixed: one DurableTimer owns one NATS account, so nothing needs a prefix of its own, and clients in any
 * language can write them down.
 */
import type { TimerKey } from "../timer/identity.ts";
import type { FeedbackVerb } from "../timer/record.ts";

/** The bucket of live state. */
export const bucketName = "DURABLE_TIMER_STATE";

/** Stream names by their role. */
export const streamNames = {
  state: `KV_${bucketName}`,
  commands: "DURABLE_TIMER_COMMANDS",
  feedback: "DURABLE_TIMER_FEEDBACK",
  snapshots: "DURABLE_TIMER_SNAPSHOTS",
  terminals: "DURABLE_TIMER_TERMINALS",
  schedules: "DURABLE_TIMER_SCHEDULES",
  resumes: "DURABLE_TIMER_RESUMES",
} as const;

/** What a stream is for. */
export type StreamRole = keyof typeof streamNames;

/** Durable consumers by what they deliver. */
export const consumerNames = {
  start: "DURABLE_TIMER_COMMAND_SERVICE",
  feedback: "DURABLE_TIMER_FEEDBACK_SERVICE",
  wake: "DURABLE_TIMER_WAKE_SERVICE",
  resume: "NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME",
} as const;

/** What a consumer delivers. */
export type ConsumerRole = keyof typeof consumerNames;

/** Subjects that senders publish to. */
export const commandSubjects = {
  start: "durable_timer.commands.start.v1",
  retry: "durable_timer.commands.retry.v1",
  complete: "durable_timer.commands.complete.v1",
  fail: "durable_timer.commands.fail.v1",
} as const;

/** What a command asks for. */
export type CommandVerb = keyof typeof commandSubjects;

/** Verbs whose commands lie in FEEDBACK. */
export const feedbackVerbs: readonly FeedbackVerb[] = ["retry", "complete", "fail"];

/** The subject of every resume. */
export const resumeSubject = "triggers.v2.durable_timer.resume.v1";

/** Subject filters of the streams whose subjects name a timer. */
export const subjectFilters = {
  state: `$KV.${bucketName}.>`,
  snapshots: "durable_timer.snapshot.v1.>",
  terminals: "durable_timer.terminal.v1.>",
  schedules: "durable_timer.schedule.v1.>",
  wakes: "durable_timer.wake.v1.>",
} as const;

/** The archive without the contexts of rejected commands, whose subjects are one token longer. */
export const terminalRecordFilter = "durable_timer.terminal.v1.*.*";

/** State keys of timers, as a subject filter. */
export const stateRecordFilter = `$KV.${bucketName}.t.>`;

/** Headers of our own. */
export const headerNames = {
  context: "Durable-Timer-Context",
  replyTo: "Durable-Timer-Reply-To",
  /** On schedules and wakes: `<generation>:<fence>`. */
  fence: "Durable-Timer-Fence",
  /** On schedules and wakes: the due time, as epoch milliseconds. */
  dueAt: "Durable-Timer-Due-At",
  /** On what takes a collected timer's snapshot's place. */
  tombstone: "Durable-Timer-Tombstone",
} as const;

/** Reply subjects lie below this prefix unless the resource says otherwise. */
export const replyPrefixDefault = "_INBOX.durable_timer";

/** Keys beside the timers' own in the state bucket. */
export const leaseKeys = { owner: "l.owner", sweep: "l.sweep", sweepSummary: "l.sweep-summary", collection: "l.collection", collectionSummary: "l.collection-summary" } as const;

/** Where a snapshot lies. */
export const snapshotSubject = (key: TimerKey): string => `durable_timer.snapshot.v1.${key.flow}.${key.ref}`;
/** Where the archive record lies. */
export const terminalSubject = (key: TimerKey): string => `durable_timer.terminal.v1.${key.flow}.${key.ref}`;
/** Where the schedule lies until it fires. */
export const scheduleSubject = (key: TimerKey): string => `durable_timer.schedule.v1.${key.flow}.${key.ref}`;
/** Where a fired schedule puts its wake. */
export const wakeSubject = (key: TimerKey): string => `durable_timer.wake.v1.${key.flow}.${key.ref}`;

/** Where the context of a rejected command is kept; each slot keeps its last one. */
export const rejectedSubject = (code: string, slot: number): string => `durable_timer.terminal.v1.~rejected.${code}.${String(slot)}`;

/** The subject of a key in the state bucket. */
export const stateSubject = (key: string): string => `$KV.${bucketName}.${key}`;

/** Bucket keys may not contain `~`, which marks a hashed flow in subjects: there it is `=`. */
export const stateKey = (key: TimerKey): string => `t.${key.flow.replace(/^~/, "=")}.${key.ref}`;

/** The timer named by a subject that ends in `<flow>.<ref>`, or by a state key. */
export function timerKeyFromSubject(subject: string): TimerKey | undefined {
  const tokens = subject.split(".");
  const ref = tokens.at(-1);
  const flow = tokens.at(-2);
  if (ref === undefined || flow === undefined || !refPattern.test(ref) || !flowTokenPattern.test(flow)) return undefined;
  return { flow: flow.replace(/^=/, "~"), ref };
}

const refPattern = /^[a-z2-7]{32}$/;
const flowTokenPattern = /^(?:[A-Za-z0-9_-]{1,64}|[~=]h[a-z2-7]{32})$/;
