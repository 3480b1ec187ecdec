/**
 * The account that every fault ends with: what senders know, held against what NATS holds. It trusts no worker: due times are
 * computed again from the sender's own requests, and "when" is the JetStream timestamp of the stored resume.
 *
 * A1 Every acknowledged start is in exactly one place: pending, waiting, elapsed, ending, archived, or refused (I8, I7).
 * A2 Each resume was stored at or after its due time (I1).
 * A3 One generation has one fence, and all its copies say the same, with the bytes of the start (I2).
 * A4 Each generation that passed was resumed, and none that did not.
 * A5 A timer is archived once, in the bytes of its last state, with numbers that add up (I5, I6).
 * A6 Every timer has its snapshot, which is the start as it was sent (I3, I4).
 * A7 Feedback that was answered as accepted took effect (I9).
 * A8 A waiting timer has its schedule or its wake (I11).
 */
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import { readHoldings, type HeldRecord, type Holdings } from "./holdings.ts";
import type { Ledger, LedgerTimer, ResumeCopy } from "./ledger.ts";

/** Where the acknowledged starts are; `acknowledged` is the sum of the six places when nothing is lost. */
export type AccountCounts = {
  readonly acknowledged: number;
  readonly pending: number;
  readonly waiting: number;
  readonly elapsed: number;
  readonly ending: number;
  readonly archived: number;
  readonly refused: number;
  /** Sent but not acknowledged to their sender, and in NATS all the same. */
  readonly unacknowledgedHeld: number;
  readonly generationsResumed: number;
  /** Stored copies of resumes beyond the first of each generation. */
  readonly resumesRepeated: number;
  readonly feedbackPending: number;
};

/** A rule that does not hold for a timer. */
export type AccountProblem = { readonly rule: "A1" | "A2" | "A3" | "A4" | "A5" | "A6" | "A7" | "A8" | "unreadable"; readonly timer: string; readonly problem: string };

/** The counts and whatever is wrong. */
export type Account = { readonly counts: AccountCounts; readonly problems: readonly AccountProblem[] };

/**
 * Reads and accounts until nothing is wrong, nothing is pending and nothing half ended; timers may wait and be open. What
 * stays wrong is thrown, with the counts. Never-events stay wrong, so that waiting cannot hide them.
 */
export async function accounted(urls: readonly string[], ledger: Ledger, options: { readonly timeoutMs?: number } = {}): Promise<AccountCounts> {
  const endAtMs = Date.now() + (options.timeoutMs ?? 60_000);
  for (;;) {
    const look = await accountNow(urls, ledger);
    if (look.kind === "read" && look.account.problems.length === 0 && isSettled(look.account.counts)) return look.account.counts;
    if (Date.now() > endAtMs || (look.kind === "read" && isFinal(look.account))) throw unsettled(look);
    await new Promise((resolve) => { setTimeout(resolve, 250); });
  }
}

type Look = { readonly kind: "read"; readonly account: Account } | { readonly kind: "failed"; readonly error: unknown };

async function accountNow(urls: readonly string[], ledger: Ledger): Promise<Look> {
  try {
    return { kind: "read", account: accountOf(ledger, await readHoldings(urls)) };
  } catch (error) {
    return { kind: "failed", error };
  }
}

/** What was stored too early, or under another fence, stays so: there is nothing to wait for. */
function isFinal({ problems }: Account): boolean {
  return problems.some(({ rule }) => rule === "A2" || rule === "A3");
}

function unsettled(look: Look): Error {
  return look.kind === "read" ? new Error(accountText(look.account)) : new Error("the account could not be read", { cause: look.error });
}

/** The account at one moment. */
export function accountOf(ledger: Ledger, holdings: Holdings): Account {
  const timers = timersOf(ledger, holdings);
  const problems: AccountProblem[] = holdings.unreadable.map((problem) => ({ rule: "unreadable", timer: "", problem }));
  for (const timer of timers.values()) {
    for (const [rule, check] of rules) problems.push(...check(timer).map((problem) => ({ rule, timer: timer.sent?.execution ?? timer.ref, problem })));
  }
  return { counts: countsOf([...timers.values()], holdings), problems };
}

/** What is wrong and the counts, for people; at most twenty problems. */
export function accountText({ counts, problems }: Account): string {
  const lines = problems.slice(0, 20).map(({ rule, timer, problem }) => `${rule} ${timer}: ${problem}`);
  return [`${String(problems.length)} problems`, ...lines, JSON.stringify(counts)].join("\n");
}

/** All that is known of one timer, from both sides. */
type Timer = {
  readonly ref: string;
  sent?: LedgerTimer;
  isPending: boolean;
  readonly live: HeldRecord[];
  readonly archived: HeldRecord[];
  readonly snapshots: Holdings["snapshots"][number][];
  readonly resumes: ResumeCopy[];
  isArmed: boolean;
};

type Rule = (timer: Timer) => readonly string[];

function timersOf(ledger: Ledger, holdings: Holdings): ReadonlyMap<string, Timer> {
  const timers = new Map<string, Timer>();
  const at = (ref: string): Timer => {
    const timer = timers.get(ref) ?? { ref, isPending: false, live: [], archived: [], snapshots: [], resumes: [], isArmed: false };
    timers.set(ref, timer);
    return timer;
  };
  for (const sent of ledger.timers.values()) at(sent.ref).sent = sent;
  for (const ref of holdings.pendingStarts) at(ref).isPending = true;
  for (const held of holdings.records) at(held.ref).live.push(held);
  for (const held of holdings.archived) at(held.ref).archived.push(held);
  for (const held of holdings.snapshots) at(held.ref).snapshots.push(held);
  for (const copy of [...ledger.resumes, ...holdings.resumes]) at(copy.ref).resumes.push(copy);
  for (const { ref, record } of holdings.records) at(ref).isArmed = holdings.armed.has(`${ref} ${String(record.generation)}:${String(record.fence)}`);
  return timers;
}

type Place = "pending" | "waiting" | "elapsed" | "ending" | "archived" | "refused" | "nowhere";

/** A start may lie in COMMANDS once more after it has taken effect: then it is where its record is. */
function placeOf(timer: Timer): Place {
  const phase = timer.live[0]?.record.phase;
  if (phase !== undefined) return phase === "terminal" ? "ending" : phase;
  if (timer.archived.length > 0) return "archived";
  if (timer.sent?.refusedCode !== undefined) return "refused";
  return timer.isPending ? "pending" : "nowhere";
}

function isHeld({ live, archived }: Timer): boolean {
  return live.length > 0 || archived.length > 0;
}

const inOnePlace: Rule = (timer) => {
  const { sent, live, archived } = timer;
  if (sent === undefined) return ["nobody sent it"];
  const problems: string[] = [];
  if (sent.acknowledged && placeOf(timer) === "nowhere") problems.push("was acknowledged and is nowhere");
  if (sent.refusedCode !== undefined && isHeld(timer)) problems.push(`was refused as ${sent.refusedCode} and lives`);
  if (archived.length > 0 && live.some(({ record }) => record.phase !== "terminal")) problems.push("is archived and lives");
  return problems;
};

const notEarly: Rule = ({ sent, resumes }) => resumes.flatMap((copy) => {
  const problems: string[] = [];
  const stored = `generation ${String(copy.generation)} was stored at ${String(copy.storedAtMs)}`;
  if (copy.storedAtMs < copy.dueAtMs) problems.push(`${stored}, before it was due at ${String(copy.dueAtMs)}`);
  const floorMs = sent === undefined ? 0 : earliestMs(sent, { generation: copy.generation, resumes });
  if (copy.storedAtMs < floorMs) problems.push(`${stored}, but its sender's request allows no time before ${String(floorMs)}`);
  return problems;
});

/** From the sender's side alone: it cannot be due before the wait has passed since the request, or since the resume before. */
function earliestMs(sent: LedgerTimer, { generation, resumes }: { readonly generation: number; readonly resumes: readonly ResumeCopy[] }): number {
  if (generation === 0) return "delayMs" in sent.wait ? sent.firstSentAtMs + sent.wait.delayMs : sent.wait.dueAt.getTime();
  const before = resumes.filter((copy) => copy.generation === generation - 1).map(({ storedAtMs }) => storedAtMs);
  return before.length === 0 ? 0 : Math.min(...before) + sent.retryDelayMs;
}

const oneFence: Rule = ({ sent, resumes }) => [...generationsOf(resumes)].flatMap(([generation, copies]) => {
  const problems: string[] = [];
  const name = `generation ${String(generation)}`;
  const fences = new Set(copies.map(({ fence }) => fence));
  if (fences.size > 1) problems.push(`${name} was resumed under fences ${[...fences].join(" and ")}`);
  if (new Set(copies.map(({ text }) => text)).size > 1) problems.push(`copies of ${name} differ: ${[...new Set(copies.map(({ text }) => text))].join(" | ")}`);
  if (copies.some((copy) => copy.fence !== 2 * generation + 2)) problems.push(`${name} was resumed under fence ${[...fences].join()}, not ${String(2 * generation + 2)}`);
  if (sent !== undefined && copies.some((copy) => copy.payloadHash !== sent.payloadHash)) problems.push(`${name} has other bytes than the start`);
  return problems;
});

function generationsOf(resumes: readonly ResumeCopy[]): ReadonlyMap<number, readonly ResumeCopy[]> {
  return Map.groupBy(resumes, ({ generation }) => generation);
}

const eachResumed: Rule = ({ live, archived, resumes }) => {
  const last = (live[0] ?? archived[0])?.record;
  const passedCount = last === undefined ? 0 : resumedGenerationCount(last);
  const seen = generationsOf(resumes);
  const missing = Array.from({ length: passedCount }, (_, generation) => generation).filter((generation) => !seen.has(generation));
  const ahead = [...seen.keys()].filter((generation) => generation >= passedCount);
  return [...missing.map((generation) => `generation ${String(generation)} was never resumed`), ...ahead.map((generation) => `generation ${String(generation)} was resumed, and the record knows nothing of it`)];
};

function resumedGenerationCount(record: TimerRecord): number {
  const hasElapsed = record.phase === "elapsed" || (record.phase === "terminal" && record.elapsedAtMs !== undefined);
  return record.generation + (hasElapsed ? 1 : 0);
}

const exactRecords: Rule = ({ sent, live, archived }) => {
  const problems: string[] = [];
  if (live.length > 1) problems.push("has several records");
  if (archived.length > 1) problems.push(`is archived ${String(archived.length)} times`);
  for (const held of [...live, ...archived]) problems.push(...recordProblems(held, sent));
  const [state] = live;
  const [ended] = archived;
  if (ended !== undefined && ended.record.phase !== "terminal") problems.push("has an archive record that is not terminal");
  if (state !== undefined && ended !== undefined && !sameBytes(state.bytes, ended.bytes)) problems.push("has an archive record that differs from its state");
  return problems;
};

function recordProblems({ record, bytes }: Timer["live"][number], sent: Timer["sent"]): readonly string[] {
  const problems: string[] = [];
  if (!sameBytes(bytes, encodeRecord(record))) problems.push("has a record in other bytes than those of its content");
  if (record.fence !== fenceOf(record)) problems.push(`is ${record.phase} at generation ${String(record.generation)} under fence ${String(record.fence)}, not ${String(fenceOf(record))}`);
  if (record.generation > record.maxRetries) problems.push("was retried more often than allowed");
  if (sent !== undefined && record.generation === 0 && "delayMs" in sent.wait && record.dueAtMs !== record.startedAtMs + sent.wait.delayMs) problems.push("is due at another time than start and delay give");
  return problems;
}

/** Creation is fence 1, and every transition adds one: a generation takes two, and its end one more. */
function fenceOf(record: TimerRecord): number {
  if (record.phase === "waiting") return 2 * record.generation + 1;
  return 2 * record.generation + 2 + (record.phase === "terminal" && record.elapsedAtMs !== undefined ? 1 : 0);
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

const wholeSnapshot: Rule = (timer) => {
  const { sent, snapshots, live, archived } = timer;
  const problems: string[] = [];
  if (isHeld(timer) && snapshots.length === 0) problems.push("has no snapshot");
  if (snapshots.length > 1) problems.push("has several snapshots");
  for (const snapshot of snapshots) {
    if (sent !== undefined && (snapshot.snapshotHash !== sent.snapshotHash || snapshot.payloadHash !== sent.payloadHash)) problems.push("has a snapshot that is not its start");
    if ([...live, ...archived].some(({ record }) => record.snapshotHash !== snapshot.snapshotHash || record.payloadHash !== snapshot.payloadHash)) problems.push("has a record of another snapshot");
  }
  return problems;
};

const feedbackTook: Rule = ({ sent, live, archived }) => {
  const last = (archived[0] ?? live[0])?.record;
  return (sent?.feedback ?? []).flatMap(({ verb, generation, code }) => {
    const name = `${verb} of generation ${String(generation)} was accepted`;
    if (verb === "retry" && code === undefined) return last !== undefined && last.generation > generation ? [] : [`${name}, and no next generation came of it`];
    if (last?.phase !== "terminal" || last.generation !== generation) return [`${name}, and the timer did not end there`];
    const wanted = verb === "complete" ? "completed" : "failed";
    return last.outcome === wanted ? [] : [`${name}, and the timer ended as ${last.outcome}`];
  });
};

const waitingIsArmed: Rule = ({ live, isArmed }) => (live[0]?.record.phase === "waiting" && !isArmed ? ["waits without schedule and wake"] : []);

const rules: readonly (readonly [Exclude<AccountProblem["rule"], "unreadable">, Rule])[] = [
  ["A1", inOnePlace], ["A2", notEarly], ["A3", oneFence], ["A4", eachResumed], ["A5", exactRecords], ["A6", wholeSnapshot], ["A7", feedbackTook], ["A8", waitingIsArmed],
];

function countsOf(timers: readonly Timer[], { pendingFeedbackCount }: Holdings): AccountCounts {
  const acknowledged = timers.filter(({ sent }) => sent?.acknowledged === true);
  const count = (place: Place) => acknowledged.filter((timer) => placeOf(timer) === place).length;
  const generationsResumed = timers.reduce((sum, { resumes }) => sum + generationsOf(resumes).size, 0);
  // A copy that was taken and delivered again is the same stored message: its time of storage tells.
  const stored = timers.reduce((sum, { resumes }) => sum + new Set(resumes.map(({ generation, storedAtMs }) => `${String(generation)} ${String(Math.floor(storedAtMs))}`)).size, 0);
  return {
    acknowledged: acknowledged.length, pending: count("pending"), waiting: count("waiting"), elapsed: count("elapsed"), ending: count("ending"), archived: count("archived"), refused: count("refused"),
    unacknowledgedHeld: timers.filter((timer) => timer.sent?.acknowledged === false && (isHeld(timer) || timer.isPending)).length,
    generationsResumed, resumesRepeated: stored - generationsResumed, feedbackPending: pendingFeedbackCount,
  };
}

function isSettled({ pending, ending, feedbackPending }: AccountCounts): boolean {
  return pending === 0 && ending === 0 && feedbackPending === 0;
}
