// One chaos run: servers and workers, timers, the storm, the calm after it, and the verdict from what NATS then holds.

import { ackExtendIntervalMs, ackWaitMs as ackWaitMsDefault } from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { untilAborted } from "../../src/concurrency/until-aborted.ts";
import { consumerNames, headerNames, streamNames } from "../../src/protocol/names.ts";
import { systemClock } from "../../src/system/clock.ts";
import { seededRandom } from "../../src/system/random.ts";
import { readHoldings } from "../../test/faults/holdings.ts";
import { Ledger } from "../../test/faults/ledger.ts";
import { readAll } from "../../test/stream-reader.ts";
import { openBed, type Bed, type BedOptions } from "./bed.ts";
import { latenessOf, type Lateness } from "./lateness.ts";
import { playFlow, sendStarts, type Outside, type Surprise } from "./party.ts";
import { planTimers } from "./plan.ts";
import { storm, type Disturbance } from "./storm.ts";
import { verdictOf, type Check, type Verdict } from "./verdict.ts";
import { StateWitness } from "./witness.ts";

export type RunOptions = {
  readonly serverCount: 1 | 3;
  readonly timerCount: number;
  readonly seed: number;
  readonly stormMs: number;
  /** Told what the run is at, for people who wait. */
  readonly tell: (what: string) => void;
  /** Breaks the run off: it rejects, and leaves nothing behind. */
  readonly signal?: AbortSignal;
};

/** What came of a run. */
export type RunResult = {
  readonly serverCount: 1 | 3;
  readonly timerCount: number;
  readonly natsVersion: string;
  readonly stormMs: number;
  /** How long it was stormy in the end. */
  readonly stormedMs: number;
  readonly totalMs: number;
  readonly waitMsMax: number;
  readonly bed: BedOptions;
  readonly disturbances: readonly Disturbance[];
  /** Worker processes beyond the first of each slot. */
  readonly workerRestartCount: number;
  readonly stateRecordsSeenCount: number;
  readonly answers: ReadonlyMap<string, number>;
  readonly lateness: { readonly quiet: Lateness; readonly all: Lateness };
  readonly verdict: Verdict;
  /** Those of the verdict, and what showed during the run. */
  readonly checks: readonly Check[];
  /** For whoever looks into a violation: the workers' last lines, and everything that was done to whom. */
  readonly trace: readonly string[];
};

/** Runs to its end, which is a verdict also when something is wrong. Rejects when it is broken off. */
export async function runChaos(options: RunOptions): Promise<RunResult> {
  const startedAtMs = Date.now();
  const isLong = options.stormMs >= longStormMs;
  const bedOptions: BedOptions = {
    serverCount: options.serverCount, workerCount: 4, seed: options.seed,
    ackWaitMs: isLong ? ackWaitMsDefault : ackWaitMsShort, resumeAckWaitSeconds: isLong ? 15 : 5, sweepIntervalSeconds: isLong ? 10 : 5,
  };
  const bed = await openBed(bedOptions);
  try {
    const playing = play(bed, { ...options, bedOptions, startedAtMs });
    const result = options.signal === undefined ? await playing : await Promise.race([playing, brokenOff(options.signal)]);
    return { ...result, totalMs: Date.now() - startedAtMs };
  } finally {
    await bed.close();
  }
}

async function brokenOff(signal: AbortSignal): Promise<never> {
  await untilAborted(signal);
  throw new Error("the run was broken off");
}

const longStormMs = 60_000;
/** More than the interval at which workers extend it. */
const ackWaitMsShort = ackExtendIntervalMs * 1.5;

type Play = RunOptions & { readonly bedOptions: BedOptions; readonly startedAtMs: number };

async function play(bed: Bed, options: Play): Promise<Omit<RunResult, "totalMs">> {
  const { timerCount, seed, serverCount, stormMs, tell, bedOptions } = options;
  const waitMsMax = Math.min(60_000, Math.round(stormMs * 0.4));
  const ending = new AbortController();
  const outside: Outside = {
    plans: planTimers({ seed, count: timerCount, waitMsMax }), ledger: new Ledger(), rivals: { refusedCount: 0 }, answers: new Map(), surprises: [], signal: ending.signal,
  };
  const witness = new StateWitness(bed.servers.urls);
  const flows = Promise.all(bed.clients.map(({ client }) => playFlow(outside, client)));
  tell(`${String(timerCount)} timers, ${String(serverCount)} server(s), ${String(bed.workers.length)} workers, ${String(Math.round(stormMs / 1_000))} s of storm`);
  const sendingAtMs = Date.now();
  const sent = Promise.all(bed.clients.map(({ flow, client }) => sendStarts(outside, client, { flow, paceMs: stormMs * 0.9 })));
  let handIndex = 0;
  const random = () => seededRandom(seed + 7_919 * (handIndex += 1));
  const disturbances = await storm({ bed, random, durationMs: stormMs, ackWaitMs: bedOptions.ackWaitMs, signal: whenCalm(sent, stormMs) });
  const calmAtMs = Date.now();
  await sent;
  tell(`the storm is over after ${String(disturbances.length)} disturbances; waiting for the timers to end`);
  const verdict = await settle(bed, outside, { witness, waitMsMax, tell });
  ending.abort();
  await flows;
  await witness.close();
  const crashes = bed.workers.flatMap((worker) => worker.crashes.map((problem) => ({ timer: worker.name, problem })));
  return {
    serverCount, timerCount, stormMs, waitMsMax, bed: bedOptions, disturbances, verdict,
    natsVersion: bed.broker.identity()?.version ?? "unknown",
    workerRestartCount: bed.workers.reduce((sum, { startCount }) => sum + startCount - 1, 0),
    stateRecordsSeenCount: witness.recordCount,
    answers: outside.answers,
    stormedMs: calmAtMs - sendingAtMs,
    lateness: latenessOf(outside.ledger.resumes, { quietAfterMs: calmAtMs + bedOptions.ackWaitMs + quietMarginMs }),
    checks: [...verdict.checks, ...shownMeanwhile(outside, { witness, crashes })],
    trace: [
      ...disturbances.map(({ kind, target, fromMs, untilMs }) => `${new Date(fromMs).toISOString()} ${kind} ${target} for ${String(untilMs - fromMs)} ms`),
      ...bed.workers.flatMap(({ name, lines }) => lines.map((line) => `${name} ${line}`)),
    ],
  };
}

/** Aborts once the storm has lasted and all starts are sent; on a machine too busy for that, in the end anyway. */
function whenCalm(sent: Promise<unknown>, stormMs: number): AbortSignal {
  const calm = new AbortController();
  const lasted = systemClock.sleep(stormMs as DurationMs);
  const tooLong = systemClock.sleep((stormMs * stormStretchMax) as DurationMs, calm.signal);
  const over = Promise.race([Promise.all([lasted, sent]), tooLong]);
  over.then(() => { calm.abort(); }, () => { calm.abort(); });
  return calm.signal;
}

const stormStretchMax = 6;

/** Wakes that a worker held when it was killed are delivered again by then, and the first sweep has passed. */
const quietMarginMs = 5_000;

function shownMeanwhile(outside: Outside, { witness, crashes }: { readonly witness: StateWitness; readonly crashes: readonly Surprise[] }): readonly Check[] {
  const answerCount = [...outside.answers.values()].reduce((sum, count) => sum + count, 0);
  return [
    { name: "records in STATE only go forward, and none lives after its end", comparedCount: witness.recordCount, violations: witness.surprises },
    { name: "no answer contradicts the protocol; wrong feedback is refused", comparedCount: answerCount, violations: outside.surprises },
    { name: "no worker ended by itself", comparedCount: crashes.length, violations: crashes },
  ];
}

/**
 * Waits until the queues are empty and the account holds. What stays wrong is the verdict: losses, doubles and early resumes do not
 * mend themselves, so waiting cannot hide them.
 */
async function settle(bed: Bed, outside: Outside, options: { readonly witness: StateWitness; readonly waitMsMax: number; readonly tell: (what: string) => void }): Promise<Verdict> {
  const endAtMs = Date.now() + options.waitMsMax + settleMsMax;
  for (;;) {
    const left = await workLeft(bed, outside);
    const isLate = Date.now() > endAtMs;
    if (left.length === 0 || isLate) {
      const judged = await judge(bed, outside, options.witness);
      const drained: Check = { name: "no queue holds anything but schedules of waiting timers", comparedCount: queueCount, violations: left };
      const verdict = { ...judged, checks: [...judged.checks, drained] };
      if (isLate && left.length > 0) await tellStuck(bed, options.tell);
      if (isLate || (verdict.identity.holds && verdict.checks.every(({ violations }) => violations.length === 0))) return verdict;
    }
    await systemClock.sleep(settleLookMs);
  }
}

/** Generous: what is lost stays lost, and a busy machine is slow. */
const settleMsMax = 240_000;
const settleLookMs = 2_000 as DurationMs;

async function judge(bed: Bed, outside: Outside, witness: StateWitness): Promise<Verdict> {
  const holdings = await readHoldings(bed.servers.urls);
  return verdictOf({ plans: outside.plans, ledger: outside.ledger, holdings, seen: witness.timers, rivalsRefusedCount: outside.rivals.refusedCount });
}

/** What still moves; empty when nothing does. */
async function workLeft({ broker }: Bed, { plans }: Outside): Promise<readonly Surprise[]> {
  const { jetStream } = broker;
  const waitingCountMax = plans.filter(({ ending }) => ending === "stay_waiting").length;
  const mostByStream = [[streamNames.commands, 0], [streamNames.feedback, 0], [streamNames.resumes, 0], [streamNames.schedules, waitingCountMax]] as const;
  const states = await Promise.all(mostByStream.map(async ([stream, most]): Promise<readonly Surprise[]> => {
    const state = await jetStream.streamState(stream);
    if (state.kind === "failed") return [{ timer: stream, problem: "does not answer" }];
    return state.value.messages > most ? [{ timer: stream, problem: `holds ${String(state.value.messages)} messages` }] : [];
  }));
  const wakes = await jetStream.consumerState(streamNames.schedules, consumerNames.wake);
  const isQuiet = wakes.kind === "told" && wakes.value.ackPending + wakes.value.pending === 0;
  return [...states.flat(), ...(isQuiet ? [] : [{ timer: consumerNames.wake, problem: "has wakes in hand" }])];
}

const queueCount = 5;

/** Who holds what is left: the consumers as the server sees them, and the first messages. */
async function tellStuck({ broker, servers }: Bed, tell: (what: string) => void): Promise<void> {
  for (const role of ["commands", "feedback", "resumes"] as const) {
    const messages = await readAll(servers.urls, { stream: streamNames[role], filter: ">" });
    for (const { subject, sequence, headers } of messages.slice(0, 5)) tell(`left in ${role}: ${subject} ${String(sequence)} ${headers.get(headerNames.context) ?? ""}`);
  }
  for (const [stream, consumer] of [["commands", "start"], ["feedback", "feedback"], ["schedules", "wake"], ["resumes", "resume"]] as const) {
    const state = await broker.jetStream.consumerState(streamNames[stream], consumerNames[consumer]);
    if (state.kind === "failed") continue;
    const { pending, ackPending, redelivered, waitingPulls } = state.value;
    tell(`consumer ${consumer}: ${JSON.stringify({ pending, ackPending, redelivered, waitingPulls })}`);
  }
}
