// Senders and flows of a chaos run: the outside, through the SDK alone.
//
// A sender repeats its start until the broker has it. A flow takes resumes, answers each as its timer's plan says, until a worker has
// told what became of that, and acknowledges the resume last; now and then it forgets one, hands one back, says a thing twice, or
// says something wrong. What it is told enters the ledger; what it may not be told is a surprise, which is a violation.

import type { TimerClient } from "../../src/client/client.ts";
import type { FeedbackTarget } from "../../src/client/feedback.ts";
import type { CommandOutcome } from "../../src/client/outcome.ts";
import type { ResumeDelivery } from "../../src/client/resumes.ts";
import { failureIn } from "../../src/base/failure.ts";
import { outcomeTimeoutMs } from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { systemClock } from "../../src/system/clock.ts";
import type { FailureCause, FeedbackVerb } from "../../src/timer/record.ts";
import { Ledger } from "../../test/faults/ledger.ts";
import { indexOfExecution, isRefused, startRequest, type TimerPlan, type Variant } from "./plan.ts";

/** What the outside knows and saw of one run; shared by all of its parties. */
export type Outside = {
  readonly plans: readonly TimerPlan[];
  readonly ledger: Ledger;
  /** Second starts of a timer that mean something else, by what became of them; each was acknowledged. */
  readonly rivals: { refusedCount: number };
  /** Answers by what was asked and told. */
  readonly answers: Map<string, number>;
  readonly surprises: Surprise[];
  /** Broken off by the end of the run. */
  readonly signal: AbortSignal;
};

/** Something that nobody may be told. */
export type Surprise = { readonly timer: string; readonly problem: string };

type Asked = { readonly verb: FeedbackVerb; readonly target: FeedbackTarget; readonly failure?: FailureCause };
type Definite = Exclude<CommandOutcome, { kind: "unknown" }>;

/** Sends all starts of one flow, spread evenly over `paceMs`. Resolves when each was sent for good. */
export async function sendStarts(outside: Outside, client: TimerClient, options: { readonly flow: string; readonly paceMs: number }): Promise<void> {
  const startedAtMs = Date.now();
  const plans = outside.plans.filter(({ flow }) => flow === options.flow);
  const dueMs = (plan: TimerPlan) => (plan.index / outside.plans.length) * options.paceMs;
  const queue = plans.values();
  const lane = async () => {
    for (const plan of queue) {
      await systemClock.sleep((startedAtMs + dueMs(plan) - Date.now()) as DurationMs, outside.signal);
      if (outside.signal.aborted) return;
      await sendStart(outside, client, plan);
    }
  };
  await Promise.all(Array.from({ length: startsInFlightMax }, lane));
}

const startsInFlightMax = 96;

async function sendStart(outside: Outside, client: TimerClient, plan: TimerPlan): Promise<void> {
  switch (plan.sending) {
    case "once":
      return void (await startPlainly(outside, client, plan));
    case "twice":
      await startPlainly(outside, client, plan);
      return expectStart(outside, plan, await startUntilAnswered(outside, client, { plan, variant: "own" }));
    case "hasty":
      return startHastily(outside, client, plan);
    case "rival":
      return startRivals(outside, client, plan);
    default:
      throw new Error(`sending of ${plan.execution}`);
  }
}

async function startPlainly(outside: Outside, client: TimerClient, plan: TimerPlan): Promise<void> {
  const needsAnswer = isRefused(plan.ending) || plan.ending === "withdraw" || plan.slip === "early";
  if (!needsAnswer) {
    await outside.ledger.start(client, startRequest(plan, "own"), { signal: outside.signal });
    return;
  }
  expectStart(outside, plan, await startUntilAnswered(outside, client, { plan, variant: "own" }));
  await followStart(outside, client, plan);
}

/** What is said of a timer that has just begun to wait. */
async function followStart(outside: Outside, client: TimerClient, plan: TimerPlan): Promise<void> {
  const target = waitingTarget(plan);
  if (plan.slip === "early" && !isRefused(plan.ending)) await slip(outside, client, { verb: "retry", target, allowed: ["not_elapsed", "stale"] });
  if (plan.ending === "withdraw") await ask(outside, client, { verb: "fail", target, failure: withdrawn, allowed: ["stale"] });
}

const withdrawn: FailureCause = { code: "withdrawn", message: "is not needed any more" };

/** Generation 0 under fence 1, as every sender can know it beforehand. */
function waitingTarget(plan: TimerPlan): FeedbackTarget {
  const { flow, execution, node, edges } = startRequest(plan, "own");
  const { snapshotHash } = new Ledger().sent(startRequest(plan, "own"));
  return { lineage: { flow, execution, node, edges }, generation: 0, fence: 1, snapshotHash };
}

async function startHastily(outside: Outside, client: TimerClient, plan: TimerPlan): Promise<void> {
  const request = startRequest(plan, "own");
  const entry = outside.ledger.sent(request);
  await client.start(request).then(() => { entry.acknowledged = true; }, () => { count(outside, "start: given up"); });
}

/** Two starts of one timer at once: exactly one is refused, and the ledger keeps the other. */
async function startRivals(outside: Outside, client: TimerClient, plan: TimerPlan): Promise<void> {
  if (isRefused(plan.ending)) return startPlainly(outside, client, plan);
  const entry = outside.ledger.sent(startRequest(plan, "own"));
  const [own, rival] = await Promise.all((["own", "rival"] as const).map((variant) => startUntilAnswered(outside, client, { plan, variant })));
  if (own === undefined || rival === undefined) return;
  const refused = [own, rival].filter(({ kind }) => kind === "rejected");
  if (refused.length !== 1 || refused[0]?.code !== "start_conflict") surprise(outside, plan.execution, `two starts were answered ${describe(own)} and ${describe(rival)}`);
  outside.rivals.refusedCount += refused.length;
  const winner = own.kind === "rejected" ? "rival" : "own";
  const { refusedCode: _, ...kept } = { ...new Ledger().sent(startRequest(plan, winner)), firstSentAtMs: entry.firstSentAtMs, acknowledged: true };
  outside.ledger.timers.set(entry.ref, kept);
}

function expectStart(outside: Outside, plan: TimerPlan, answer: Definite | undefined): void {
  if (answer === undefined) return;
  const wanted = refusalCodes[plan.ending];
  const isRight = wanted === undefined ? answer.kind !== "rejected" : answer.kind === "rejected" && answer.code === wanted;
  if (!isRight) surprise(outside, plan.execution, `its start was answered ${describe(answer)}`);
}

const refusalCodes: Partial<Record<TimerPlan["ending"], string>> = { refuse_delay: "delay_too_long", refuse_retries: "retries_too_many" };

/** Undefined when the run ended first. */
async function startUntilAnswered(outside: Outside, client: TimerClient, { plan, variant }: { readonly plan: TimerPlan; readonly variant: Variant }): Promise<Definite | undefined> {
  const request = startRequest(plan, variant);
  const entry = outside.ledger.sent(request);
  const answer = await untilDefinite(outside, async (outcomeTimeoutMs) => {
    const { outcome } = await client.start(request, { awaitOutcome: true, outcomeTimeoutMs });
    entry.acknowledged = true;
    return outcome;
  });
  if (answer === undefined) return undefined;
  count(outside, `start: ${described(answer)}`);
  if (answer.kind === "rejected" && plan.sending !== "rival") entry.refusedCode = answer.code;
  return answer;
}

/** Takes resumes and answers them until the run ends. */
export async function playFlow(outside: Outside, client: TimerClient): Promise<void> {
  const answering = new Set<Promise<void>>();
  const onInvalid = ({ problem }: { readonly problem: string }) => { surprise(outside, "a resume", problem); };
  for await (const delivery of client.resumes({ signal: outside.signal, lookahead: resumesAheadMax, onInvalid })) {
    const answer: Promise<void> = takeResume(outside, client, delivery)
      .catch((error: unknown) => { surprise(outside, delivery.resume.lineage.execution, `answering its resume: ${String(error)}`); })
      .finally(() => answering.delete(answer));
    answering.add(answer);
    if (answering.size >= answersInFlightMax) await Promise.race(answering);
  }
  await Promise.all(answering);
}

const resumesAheadMax = 64;
const answersInFlightMax = 192;

async function takeResume(outside: Outside, client: TimerClient, delivery: ResumeDelivery): Promise<void> {
  const { resume, deliveryCount, publishedAtMs } = delivery;
  outside.ledger.resumed(resume, publishedAtMs);
  const index = indexOfExecution(resume.lineage.execution);
  const plan = index === undefined ? undefined : outside.plans[index];
  if (plan === undefined) return surprise(outside, resume.lineage.execution, "was resumed, and nobody started it");
  if (deliveryCount === 1 && plan.reception === "forgetful") return;
  if (deliveryCount === 1 && plan.reception === "hesitant") return void delivery.nak(handBackMs);
  const asked = answerTo(plan, resume);
  const extending = setInterval(() => { delivery.extend(); }, extendMs);
  try {
    if (asked !== undefined) await answer(outside, client, { plan, asked });
  } finally {
    clearInterval(extending);
  }
  delivery.ack();
}

const handBackMs = 300;
/** Without it, a slow answer has the resume delivered to another process, which gives the same feedback once more. */
const extendMs = 2_000;

/** What the plan says to this resume; nothing for timers that are left open. */
function answerTo(plan: TimerPlan, target: FeedbackTarget): Asked | undefined {
  if (target.generation < plan.retryCount) return { verb: "retry", target };
  switch (plan.ending) {
    case "complete":
      return { verb: "complete", target };
    case "fail":
      return { verb: "fail", target, failure: gaveUp };
    case "exhaust":
      return { verb: "retry", target };
    // A withdrawal that came too late: the flow goes on.
    case "withdraw":
      return { verb: "complete", target };
    case "stay_open":
      return undefined;
    case "stay_waiting":
    case "refuse_delay":
    case "refuse_retries":
    default:
      throw new Error(`a resume of a timer that is planned as ${plan.ending}`);
  }
}

const gaveUp: FailureCause = { code: "gave_up", message: "the action failed" };

async function answer(outside: Outside, client: TimerClient, { plan, asked }: { readonly plan: TimerPlan; readonly asked: Asked }): Promise<void> {
  const { target } = asked;
  const { lineage } = target;
  if (plan.slip === "ahead") await slip(outside, client, { ...asked, target: { ...target, fence: target.fence + 50 }, allowed: ["unknown_fence", "stale"] });
  if (plan.slip === "lineage") await slip(outside, client, { ...asked, target: { ...target, lineage: { ...lineage, edges: { ...lineage.edges, start: "another" } } }, allowed: ["lineage_mismatch"] });
  if (plan.slip === "stranger") await slip(outside, client, { ...asked, target: { ...target, lineage: { ...lineage, execution: `${lineage.execution}-never-started` } }, allowed: ["unknown_timer"] });
  // `stale` for a second copy of the resume, whose timer has moved on since the first was answered.
  const copies = plan.slip === "double" ? 2 : 1;
  const answers = await Promise.all(Array.from({ length: copies }, () => ask(outside, client, { ...asked, allowed: ["stale"] })));
  if (answers.filter((one) => one?.kind === "accepted").length > 1) surprise(outside, lineage.execution, `${asked.verb} of generation ${String(target.generation)} was accepted twice`);
  if (plan.slip === "stale" && answers[0] !== undefined) await slip(outside, client, { verb: "fail", target, failure: { code: "afterthought", message: "" }, allowed: ["stale"] });
}

type Question = Asked & { /** Codes with which it may be rejected. */ readonly allowed: readonly string[] };

/** Feedback in earnest: taken, or rejected for one of the reasons that the caller knows. */
async function ask(outside: Outside, client: TimerClient, question: Question): Promise<Definite | undefined> {
  const told = await untilAnswered(outside, client, question);
  if (told === undefined) return undefined;
  outside.ledger.answered(question.verb, question.target, told);
  if (told.kind === "rejected" && !question.allowed.includes(told.code)) surprise(outside, question.target.lineage.execution, `${named(question)} was answered ${describe(told)}`);
  return told;
}

/** Feedback by mistake: rejected, for one of these reasons. */
async function slip(outside: Outside, client: TimerClient, question: Question): Promise<void> {
  const told = await untilAnswered(outside, client, question);
  if (told === undefined) return;
  if (told.kind !== "rejected" || !question.allowed.includes(told.code)) surprise(outside, question.target.lineage.execution, `${named(question)}, by mistake, was answered ${describe(told)}`);
}

async function untilAnswered(outside: Outside, client: TimerClient, { verb, target, failure }: Question): Promise<Definite | undefined> {
  const told = await untilDefinite(outside, async (outcomeTimeoutMs) => {
    const { outcome } = verb === "fail" ? await client.fail(target, failure ?? gaveUp, { outcomeTimeoutMs }) : await client[verb](target, { outcomeTimeoutMs });
    return outcome;
  });
  if (told !== undefined) count(outside, `${verb}: ${described(told)}`);
  return told;
}

/**
 * Sends until a worker has told the outcome; undefined when the run ends first. Each attempt waits longer than the one before: workers
 * that are behind by more than a fixed wait would do nothing but answer to attempts that were given up.
 */
async function untilDefinite(outside: Outside, send: (outcomeTimeoutMs: number) => Promise<CommandOutcome | undefined>): Promise<Definite | undefined> {
  for (let waitMs: number = outcomeTimeoutMs; !outside.signal.aborted; waitMs = Math.min(waitMs * 2, outcomeWaitMsMax)) {
    try {
      const outcome = await send(waitMs);
      if (outcome !== undefined && outcome.kind !== "unknown") return outcome;
    } catch (error) {
      if (failureIn(error)?.kind !== "transient") throw error;
      await systemClock.sleep(resendMs, outside.signal);
    }
  }
  return undefined;
}

const resendMs = 200 as DurationMs;
const outcomeWaitMsMax = 120_000;

function named({ verb, target }: Asked): string {
  return `${verb} of generation ${String(target.generation)} under fence ${String(target.fence)}`;
}

function described(outcome: Definite): string {
  return outcome.code === undefined ? outcome.kind : `${outcome.kind} ${outcome.code}`;
}

function describe(outcome: Definite): string {
  const { generation, fence, state } = outcome;
  return `${described(outcome)} (${state ?? "no state"}, generation ${String(generation)}, fence ${String(fence)})`;
}

function count({ answers }: Outside, what: string): void {
  answers.set(what, (answers.get(what) ?? 0) + 1);
}

function surprise({ surprises }: Outside, timer: string, problem: string): void {
  surprises.push({ timer, problem });
}
