/**
 * One scenario of a year, lived through in several ways that must not make a difference: each idle stretch as one jump of
 * the broker's clock, in small steps, with every message delivered twice, with restarts of everything; and, in
 * replay-wall.ts, in real time on a real server, with short hours.
 *
 * In virtual time commands arrive at fixed times of the broker's clock, and due times follow from those alone, so these
 * records are the same to the byte, but for the moment at which a worker came to a wake: `recordsHash` is over all of it.
 * `hash` is over what the rules determine (year.ts), which all ways have in common.
 */
import type { CommandMessage } from "../../src/client/command-message.ts";
import { commandSubjects, headerNames, subjectFilters } from "../../src/protocol/names.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { timerKey } from "../../src/timer/identity.ts";
import { virtualStartAtMs } from "../model/timeline.ts";
import { fairWeather, type Fate, type Operation, type Weather } from "../model/weather.ts";
import { Dice } from "./dice.ts";
import { recordsHash } from "./script.ts";
import { SimulatedWorld } from "./world.ts";
import { answerTo, livesOfTheYear, requestOf, rulesHash, startOf, type Life, type Stored } from "./year.ts";

/** How a year passes. */
export type Way = "one jump" | "small steps" | "delivered twice" | "restarts";
export const ways: readonly Way[] = ["one jump", "small steps", "delivered twice", "restarts"];

export type ReplayReport = {
  readonly way: Way | "wall time";
  readonly hash: string;
  /** Over every field of the records, instants included; only in virtual time. */
  readonly recordsHash?: string;
  readonly recordCount: number;
  readonly resumeCount: number;
  /** Of the scenario. */
  readonly days: number;
  readonly violations: readonly string[];
};

/** Something happens at this time of the broker's clock: a command arrives, or a timer becomes due. */
type Moment = { readonly atMs: number; readonly command?: CommandMessage };

/** Lives through the year in virtual time. */
export async function replay(way: Way): Promise<ReplayReport> {
  return await new Replay(way).run();
}

class Replay {
  readonly #way: Way;
  readonly #world: SimulatedWorld;
  #momentCount = 0;

  constructor(way: Way) {
    this.#way = way;
    this.#world = new SimulatedWorld({ weather: way === "delivered twice" ? new ForgetfulWeather() : fairWeather, dice: new Dice(1) });
  }

  async run(): Promise<ReplayReport> {
    const { broker, ledger } = this.#world;
    const moments = scenario();
    this.#startWorker();
    for (const moment of moments) await this.#live(moment);
    const lives = [...ledger.lives.values()];
    return {
      way: this.#way, hash: rulesHash((life) => this.#storedOf(life), hourMs), recordsHash: recordsHash(this.#world),
      violations: ledger.checks.violations.map(({ invariant, text }) => `${invariant}: ${text}`), days: Math.round((broker.clockMs() - virtualStartAtMs) / dayMs),
      recordCount: lives.reduce((sum, { records }) => sum + records.length, 0), resumeCount: lives.reduce((sum, { resumes }) => sum + resumes.size, 0),
    };
  }

  #storedOf(life: Life): Stored {
    const { flow, ref } = timerKey(requestOf(life, hourMs), systemSha256);
    const { records, resumes } = this.#world.ledger.lifeOf(`${flow}.${ref}`);
    return { records, resumes: [...resumes].map(([generation, { body }]) => ({ generation, fence: 2 * generation + 2, body })) };
  }

  async #live({ atMs, command }: Moment): Promise<void> {
    const { broker } = this.#world;
    this.#momentCount += 1;
    while (this.#way === "small steps" && atMs - broker.clockMs() > stepMs) {
      broker.jumpClock(stepMs);
      await this.#world.pass(3_000);
    }
    if (this.#way === "restarts") this.#restart();
    broker.jumpClock(atMs - broker.clockMs());
    const copies = command === undefined ? 0 : this.#way === "delivered twice" ? 2 : 1;
    for (let copy = 0; copy < copies; copy += 1) this.#publish(command, copy);
    await this.#world.pass(settleMsMin);
    await this.#world.pass(settleMsMax, () => this.#isSettled());
  }

  /** A second copy has no id and comes a little later, so that it is another message. */
  #publish(command: CommandMessage | undefined, copy: number): void {
    if (command === undefined) return;
    const subject = commandSubjects[command.verb];
    const id = copy === 0 ? { messageId: command.messageId } : {};
    this.#world.timeline.after(copy * 400, () => this.#world.broker.streamOf(subject)?.publish({ subject, headers: [[headerNames.context, command.contextHeader]], body: command.body, ...id }));
  }

  #isSettled(): boolean {
    const world = this.#world;
    return world.messages("commands").length + world.messages("feedback").length + world.messages("schedules", subjectFilters.wakes).length === 0;
  }

  #startWorker(): void {
    this.#world.startWorker();
  }

  /** All workers die, and now and then the broker too. */
  #restart(): void {
    const { broker, timeline, workers } = this.#world;
    for (const worker of [...workers]) worker.kill();
    if (this.#momentCount % 5 === 0) {
      broker.crash({ tail: 0 });
      broker.restart();
    }
    timeline.after(100, () => this.#startWorker());
  }
}

/** The first acknowledgement of every message gets lost, so that each is delivered twice. */
class ForgetfulWeather implements Weather {
  readonly replicaLagMs = fairWeather.replicaLagMs;
  readonly refusesWake = fairWeather.refusesWake;
  readonly nextRedelivery = fairWeather.nextRedelivery;
  readonly deliveryMs = fairWeather.deliveryMs;
  readonly survivesCut = fairWeather.survivesCut;
  #count = 0;

  fate(operation: Operation): Fate {
    if (operation.how !== "ack" && operation.how !== "terminate") return fairWeather.fate(operation);
    this.#count += 1;
    return { ...fairWeather.fate(operation), kind: this.#count % 2 === 1 ? "lose_request" : "arrive" };
  }
}

/** Everything that happens in the year, in its order. */
function scenario(): readonly Moment[] {
  return livesOfTheYear().flatMap(momentsOf).toSorted((a, b) => a.atMs - b.atMs);
}

function momentsOf(life: Life): readonly Moment[] {
  const { message, waiting } = startOf(life, hourMs);
  const moments: Moment[] = [];
  // Half a millisecond past, so that rounding to whole ones is the same however the clock got there.
  let atMs = virtualStartAtMs + Math.round(life.startHour * hourMs) + 0.5;
  moments.push({ atMs, command: message });
  for (const [generation, thinkHours] of life.thinkHours.entries()) {
    atMs += (generation === 0 ? life.waitHours : life.retryWaitHours) * hourMs + 1;
    moments.push({ atMs });
    atMs += thinkHours * hourMs - 1;
    moments.push({ atMs, command: answerTo(life, { ...waiting, generation, fence: 2 * generation + 2 }) });
  }
  return moments;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const stepMs = 12 * hourMs;
const settleMsMin = 1_500;
const settleMsMax = 150_000;
