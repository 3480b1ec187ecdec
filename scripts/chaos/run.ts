// One chaos run: servers and workers, timers, the storm, the calm after it, and the verdict from what NATS then holds.

import { ackWaitMs as ackWaitMsDefault } from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { consumerNames, streamNames } from "../../src/protocol/names.ts";
import { systemClock } from "../../src/system/clock.ts";
import { seededRandom } from "../../src/system/random.ts";
import { readHoldings } from "../../test/faults/holdings.ts";
import { Ledger } from "../../test/faults/ledger.ts";
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
};

/** What came of a run. */
export type RunResult = {
  readonly serverCount: 1 | 3;
  readonly timerCount: number;
  readonly natsVersion: string;
  readonly stormMs: number;
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

/** Runs to its end, which is a verdict also when something is wrong. */
export async function runChaos(options: RunOptions): Promise<RunResult> {
  const startedAtMs = Date.now();
  const isLong = options.stormMs >= longStormMs;
  const bedOptions: BedOptions = {
    serverCount: options.serverCount, workerCount: 4, seed: options.seed,
    ackWaitMs: isLong ? ackWaitMsDefault : 3_000, resumeAckWaitSeconds: isLong ? 15 : 4, sweepIntervalSeconds: isLong ? 10 : 5,
  };
  const bed = await openBed(bedOptions);
  try {
    const result = await play(bed, { ...options, bedOptions, startedAtMs });
    return { ...result, totalMs: Date.now() - startedAtMs };
  } finally {
    await bed.close();
  }
}

const longStormMs = 60_000;

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
  const sent = Promise.all(bed.clients.map(({ flow, client }) => sendStarts(outside, client, { flow, paceMs: stormMs * 0.9 })));
  let handIndex = 0;
  const random = () => seededRandom(seed + 7_919 * (handIndex += 1));
  const [disturbances] = await Promise.all([storm({ bed, random, durationMs: stormMs, ackWaitMs: bedOptions.ackWaitMs, signal: ending.signal }), sent]);
  const calmAtMs = Date.now();
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
    lateness: latenessOf(outside.ledger.resumes, { quietAfterMs: calmAtMs + bedOptions.ackWaitMs + quietMarginMs }),
    checks: [...verdict.checks, ...shownMeanwhile(outside, { witness, crashes })],
    trace: [
      ...disturbances.map(({ kind, target, fromMs, untilMs }) => `${new Date(fromMs).toISOString()} ${kind} ${target} for ${String(untilMs - fromMs)} ms`),
      ...bed.workers.flatMap(({ name, lines }) => lines.map((line) => `${name} ${line}`)),
    ],
  };
}

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
    if (left === "" || isLate) {
      const verdict = await judge(bed, outside, options.witness);
      if (isLate) options.tell(`still not settled: ${left}`);
      if (isLate || (verdict.identity.holds && verdict.checks.every(({ violations }) => violations.length === 0))) return verdict;
    }
    await systemClock.sleep(settleLookMs);
  }
}

const settleMsMax = 240_000;
const settleLookMs = 2_000 as DurationMs;

async function judge(bed: Bed, outside: Outside, witness: StateWitness): Promise<Verdict> {
  const holdings = await readHoldings(bed.servers.urls);
  return verdictOf({ plans: outside.plans, ledger: outside.ledger, holdings, seen: witness.timers, rivalsRefusedCount: outside.rivals.refusedCount });
}

/** What still moves, in words; empty when nothing does. */
async function workLeft({ broker }: Bed, { plans }: Outside): Promise<string> {
  const { jetStream } = broker;
  const waitingCountMax = plans.filter(({ ending }) => ending === "stay_waiting").length;
  const messages = async (stream: string, most: number) => {
    const state = await jetStream.streamState(stream);
    if (state.kind === "failed") return [`${stream} does not answer`];
    return state.value.messages > most ? [`${stream} has ${String(state.value.messages)} messages`] : [];
  };
  const wakes = await jetStream.consumerState(streamNames.schedules, consumerNames.wake);
  const left = [
    ...(await messages(streamNames.commands, 0)), ...(await messages(streamNames.feedback, 0)), ...(await messages(streamNames.resumes, 0)),
    ...(await messages(streamNames.schedules, waitingCountMax)),
    ...(wakes.kind === "told" && wakes.value.ackPending + wakes.value.pending === 0 ? [] : ["wakes are not settled"]),
  ];
  return left.join(", ");
}
