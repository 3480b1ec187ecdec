/**
 * Exhaustive crash points: each durable operation of a transition is disturbed in each way, alone and in pairs, and the
 * end must be that of the undisturbed run.
 */
import type { FeedbackPolicy } from "../../src/timer/decide-timeout.ts";
import type { RetentionSettings, WorkerSettings } from "../../src/worker/settings.ts";
import { virtualStartAtMs } from "../model/timeline.ts";
import type { Weather } from "../model/weather.ts";
import { fairWeather, type Fate, type Operation } from "../model/weather.ts";
import { Dice } from "./dice.ts";
import type { Violation } from "./checks.ts";
import { hasCome, playScript, recordsHash, type Ending, type Script } from "./script.ts";
import { SimulatedWorld } from "./world.ts";

/** A way to disturb an operation. */
export type Disturbance = "die_before" | "die_after" | "lose_reply" | "lose_request";
const disturbances: readonly Disturbance[] = ["die_before", "die_after", "lose_reply", "lose_request"];

/** The `nth` durable operation of the transition, counted from 1, meets this. */
export type CrashPoint = { readonly nth: number; readonly how: Disturbance };

export type Transition = {
  readonly name: string;
  readonly script: Script;
  /** Operations from this time on belong to the transition. */
  readonly fromMs: number;
  readonly ending: Ending;
  /** What the workers do about a resume that nobody answers; they count it, without this. */
  readonly feedback?: FeedbackPolicy;
  /** When the workers collect ended timers; never, without this. */
  readonly retention?: RetentionSettings;
  /** What else has to be so in the end. */
  readonly isOver?: (world: SimulatedWorld) => boolean;
  /** What else happens, at its time. */
  readonly accidents?: readonly { readonly atMs: number; readonly happen: (world: SimulatedWorld) => void }[];
};

export type CrashRun = { readonly hash: string; readonly operations: readonly string[]; readonly violations: readonly Violation[]; readonly hasEnded: boolean; readonly checks: Readonly<Record<string, number>> };

/** Runs a transition with some of its operations disturbed. */
export async function runTransition(transition: Transition, points: readonly CrashPoint[]): Promise<CrashRun> {
  const weather = new ListedWeather(transition.fromMs, points);
  const world = new SimulatedWorld({ weather, dice: new Dice(1), settings: settingsOf(transition) });
  weather.nowMs = () => world.timeline.nowMs() - virtualStartAtMs;
  const start = (): void => { world.startWorker(() => world.timeline.after(restartMs, start)); };
  start();
  playScript(world, transition.script);
  for (const { atMs, happen } of transition.accidents ?? []) world.timeline.after(atMs, () => happen(world));
  // No transition is over before its last command and accident.
  const lastMs = Math.max(transition.fromMs, ...transition.script.steps.map(({ atMs }) => atMs), ...(transition.accidents ?? []).map(({ atMs }) => atMs));
  await world.pass(lastMs + 1);
  const isOver = (): boolean => hasCome(world, transition.ending) && transition.isOver?.(world) !== false;
  const hasEnded = isOver() || await world.pass(endMsMax, isOver);
  // What was handed out before may still come to something.
  if (points.length > 0) await world.pass(afterwardsMs);
  return { hash: recordsHash(world), operations: weather.operations, violations: world.ledger.checks.violations, hasEnded, checks: world.ledger.checks.counts() };
}

function settingsOf({ feedback, retention }: Transition): Partial<WorkerSettings> {
  return { ...(feedback === undefined ? {} : { feedback }), ...(retention === undefined ? {} : { retention }) };
}

/** What is wrong with a disturbed run; undefined when nothing is. */
export function crashProblem(run: CrashRun, undisturbed: CrashRun): string | undefined {
  const [violation] = run.violations;
  if (violation !== undefined) return `${violation.invariant}: ${violation.text}`;
  if (!run.hasEnded) return "did not come to its end";
  return run.hash === undisturbed.hash ? undefined : "ended in other records than undisturbed";
}

/** Each operation disturbed in each way. */
export function singlePoints(count: number): readonly (readonly CrashPoint[])[] {
  return Array.from({ length: count }, (_, index) => disturbances.map((how) => [{ nth: index + 1, how }])).flat();
}

/** After a first disturbance the transition takes some operations more: the second one may meet any of them. */
export function pairsOfPoints(count: number): readonly (readonly CrashPoint[])[] {
  return singlePoints(count).flatMap(([first]) => {
    if (first === undefined) return [];
    return Array.from({ length: count }, (_, index) => disturbances.map((how) => [first, { nth: first.nth + 1 + index, how }])).flat();
  });
}

class ListedWeather implements Weather {
  readonly operations: string[] = [];
  readonly #fromMs: number;
  readonly #points: readonly CrashPoint[];
  nowMs: () => number = () => 0;
  readonly replicaLagMs = fairWeather.replicaLagMs;
  readonly refusesWake = fairWeather.refusesWake;
  readonly nextRedelivery = fairWeather.nextRedelivery;
  readonly deliveryMs = fairWeather.deliveryMs;
  readonly survivesCut = fairWeather.survivesCut;

  constructor(fromMs: number, points: readonly CrashPoint[]) {
    this.#fromMs = fromMs;
    this.#points = points;
  }

  fate(operation: Operation): Fate {
    if (!isDurable(operation) || this.nowMs() < this.#fromMs) return fairWeather.fate(operation);
    this.operations.push(`${operation.kind}${operation.how === undefined ? "" : ` ${operation.how}`} ${operation.stream}`);
    const point = this.#points.find(({ nth }) => nth === this.operations.length);
    return { kind: point?.how ?? "arrive", thereMs: 0.1, backMs: 0.1 };
  }
}

/** Lease and summary of the sweep are its own business. */
function isDurable({ client, kind, subject, how }: Operation): boolean {
  if (!client.startsWith("worker") || subject.includes(".l.")) return false;
  return kind === "publish" || kind === "batch" || kind === "purge" || how === "ack" || how === "terminate";
}

const restartMs = 200;
const endMsMax = 400_000;
const afterwardsMs = 35_000;
