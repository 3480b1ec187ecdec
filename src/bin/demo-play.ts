// Plays the demo's timers through the client: starts them, answers their resumes, lets a worker be killed in the middle, and prints
// what happens as it happens.

import type { ResumeDelivery, StartReceipt, TimerClient } from "../client/index.ts";
import { cancellation, isNearCrash, type DemoTimer, type Reaction } from "./demo-timers.ts";

/** One resume as the flow's owner got it. */
export type SeenResume = {
  readonly timer: string;
  readonly generation: number;
  readonly fence: number;
  readonly latenessMs: number;
  readonly isBodyEqual: boolean;
};

/** What became of a worker in the middle of the play. */
export type EndedWorker = { readonly how: string; readonly which: string };

export type PlayOptions = {
  readonly timers: TimerClient;
  readonly plan: readonly DemoTimer[];
  /** Ends one worker, and says how and which. */
  readonly killWorker: () => Promise<EndedWorker>;
  readonly say: (line: string) => void;
  /** Ends the play, finished or not. */
  readonly deadline: AbortSignal;
};

/** Plays until every expected resume was answered, or the deadline. Returns every resume that came, repeated ones too. */
export async function play(options: PlayOptions): Promise<readonly SeenResume[]> {
  const { plan, say } = options;
  const seen: SeenResume[] = [];
  const done = new AbortController();
  const consuming = consume(options, seen, done);
  say(timelineHead);
  const receipts = await Promise.all(plan.map((timer) => start(options, timer)));
  const crashDueAtMs = firstDueAtMs(receipts.filter((_, index) => isNearCrash(plan[index]?.name ?? "")));
  await failWhileWaiting(options, receipts);
  await until(crashDueAtMs - killBeforeDueMs, options.deadline);
  if (!options.deadline.aborted) {
    const { how, which } = await options.killWorker();
    say(`${clock()}  ${how.padEnd(nameWidth)} ${which}, while it holds wakes that are due in ${millis(crashDueAtMs - Date.now())}`);
  }
  await consuming;
  return seen;
}

/** A worker takes a wake a quarter to half a second before it is due and holds it until then. */
const killBeforeDueMs = 250;

function firstDueAtMs(receipts: readonly StartReceipt[]): number {
  const due = receipts.flatMap(({ outcome }) => (outcome?.kind === "accepted" && outcome.dueAt !== undefined ? [outcome.dueAt.getTime()] : []));
  return Math.min(...due);
}

async function start({ timers, say }: PlayOptions, timer: DemoTimer): Promise<StartReceipt> {
  const receipt = await timers.start(timer.request, { awaitOutcome: true });
  const { outcome } = receipt;
  const due = outcome?.kind === "accepted" && outcome.dueAt !== undefined ? `due ${clock(outcome.dueAt)}` : "";
  say(`${clock()}  ${timer.name.padEnd(nameWidth)} started: ${outcome?.kind ?? "not awaited"} ${due}`);
  return receipt;
}

async function failWhileWaiting({ timers, plan, say }: PlayOptions, receipts: readonly StartReceipt[]): Promise<void> {
  const index = plan.findIndex(({ resumeCount }) => resumeCount === 0);
  const receipt = receipts[index];
  if (receipt === undefined) return;
  const { outcome } = await timers.fail(receipt.waiting, cancellation);
  say(`${clock()}  ${(plan[index]?.name ?? "").padEnd(nameWidth)} failed while waiting: ${outcome?.kind ?? ""}, ${cancellation.code}`);
}

async function consume(options: PlayOptions, seen: SeenResume[], done: AbortController): Promise<void> {
  const { timers, plan, deadline, say } = options;
  const expectedCount = plan.reduce((sum, { resumeCount }) => sum + resumeCount, 0);
  const answered = new Set<string>();
  const onInvalid = ({ problem }: { readonly problem: string }): void => { say(`${clock()}  an invalid resume: ${problem}`); };
  for await (const delivery of timers.resumes({ signal: AbortSignal.any([deadline, done.signal]), onInvalid })) {
    const { node } = delivery.resume.lineage;
    const timer = plan.find(({ name }) => name === node);
    if (timer === undefined) continue;
    seen.push(seenResume(timer, delivery));
    if (await answer(options, timer, delivery)) answered.add(`${node} ${String(delivery.resume.generation)}`);
    if (answered.size >= expectedCount) done.abort();
  }
}

/** Gives feedback, then acknowledges: a process that died in between would get the resume again. */
async function answer({ timers, say }: PlayOptions, timer: DemoTimer, delivery: ResumeDelivery): Promise<boolean> {
  const { resume } = delivery;
  const reaction = timer.reactTo(resume.generation);
  const { outcome } = await give(timers, reaction, delivery);
  const isSettled = outcome?.kind === "accepted" || outcome?.kind === "duplicate";
  if (isSettled) delivery.ack();
  else delivery.nak(500);
  const times = `due ${clock(new Date(resume.dueAtMs))}  woken ${clock(new Date(resume.elapsedAtMs))}  resumed ${clock(new Date(delivery.publishedAtMs))}`;
  const late = `late by ${millis(delivery.publishedAtMs - resume.dueAtMs)}`;
  const code = outcome !== undefined && "code" in outcome ? ` (${String(outcome.code)})` : "";
  say(`${clock()}  ${timer.name.padEnd(nameWidth)} ${String(resume.generation)}    ${times}  ${late.padEnd(lateWidth)} ${reaction}: ${outcome?.kind ?? ""}${code}`);
  return isSettled;
}

function give(timers: TimerClient, reaction: Reaction, { resume }: ResumeDelivery) {
  return reaction === "retry" ? timers.retry(resume) : timers.complete(resume);
}

function seenResume(timer: DemoTimer, { resume, publishedAtMs }: ResumeDelivery): SeenResume {
  return {
    timer: timer.name,
    generation: resume.generation,
    fence: resume.fence,
    latenessMs: publishedAtMs - resume.dueAtMs,
    isBodyEqual: Buffer.compare(resume.body, timer.request.body) === 0,
  };
}

/** Milliseconds as people read them. */
export function millis(durationMs: number): string {
  return Math.abs(durationMs) < 1_000 ? `${String(durationMs)} ms` : `${(durationMs / 1_000).toFixed(1)} s`;
}

function clock(at = new Date()): string {
  return at.toISOString().slice(11, 23);
}

function until(atMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, Math.max(0, atMs - Date.now()));
    if (signal.aborted) finish();
    else signal.addEventListener("abort", finish, { once: true });
  });
}

const nameWidth = 20;
const lateWidth = 15;
const timelineHead = `${"time (UTC)".padEnd(14)}${"timer".padEnd(nameWidth)} generation, what happened`;
