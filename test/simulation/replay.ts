/**
 * One scenario of a year, lived through in several ways that must not make a difference: each idle stretch as one jump of
 * the broker's clock, in small steps, with every message delivered twice, with restarts of everything.
 *
 * Commands arrive at fixed times of the broker's clock, and due times follow from those alone, so the records are the same
 * to the byte, but for the moment at which a worker came to a wake.
 */
import { prepareFeedback, type FeedbackTarget } from "../../src/client/feedback.ts";
import type { CommandMessage } from "../../src/client/command-message.ts";
import { prepareStart } from "../../src/client/start.ts";
import { commandSubjects, headerNames, subjectFilters } from "../../src/protocol/names.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { virtualStartAtMs } from "../model/timeline.ts";
import { fairWeather, type Fate, type Operation, type Weather } from "../model/weather.ts";
import { Dice } from "./dice.ts";
import type { Violation } from "./checks.ts";
import { recordsHash } from "./script.ts";
import { SimulatedWorld } from "./world.ts";

/** How a year passes. */
export type Way = "one jump" | "small steps" | "delivered twice" | "restarts";
export const ways: readonly Way[] = ["one jump", "small steps", "delivered twice", "restarts"];

export type ReplayReport = {
  readonly way: Way;
  readonly hash: string;
  readonly recordCount: number;
  readonly resumeCount: number;
  readonly days: number;
  readonly violations: readonly Violation[];
};

/** Something happens at this time of the broker's clock: a command arrives, or a timer becomes due. */
type Moment = { readonly atMs: number; readonly command?: CommandMessage };

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
      way: this.#way, hash: recordsHash(this.#world), violations: ledger.checks.violations, days: Math.round((broker.clockMs() - virtualStartAtMs) / dayMs),
      recordCount: lives.reduce((sum, { records }) => sum + records.length, 0), resumeCount: lives.reduce((sum, { resumes }) => sum + resumes.size, 0),
    };
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
    if (copy === 0) return;
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

/** Eighteen timers over a year, each in minutes of the hour of its own, so that nothing falls together. */
function scenario(): readonly Moment[] {
  const dice = new Dice(2_026);
  const moments = Array.from({ length: timerCount }, (_, index) => lifeOf(dice, index)).flat();
  return moments.toSorted((a, b) => a.atMs - b.atMs);
}

function lifeOf(dice: Dice, index: number): readonly Moment[] {
  const waitMs = dice.whole(24, 90 * 24) * hourMs;
  const retryWaitMs = dice.whole(24, 60 * 24) * hourMs;
  const retryCount = dice.whole(0, 3);
  const { message, waiting } = prepareStart({
    flow: { id: "orders", version: "1" }, execution: `ex-${String(index)}`, node: "wait", edges: { start: "e1", elapsed: "e2", retry: "e3" },
    wait: { delayMs: waitMs }, maxRetries: retryCount, retryWait: { delayMs: retryWaitMs }, body: Buffer.from(`event ${String(index)}`),
  }, { brokerPayloadBytesMax: undefined }, systemSha256);
  const moments: Moment[] = [];
  // Half a millisecond past, so that rounding to whole ones is the same however the clock got there.
  let atMs = virtualStartAtMs + dice.whole(1, 200 * 24) * hourMs + index * 3 * minuteMs + 0.5;
  moments.push({ atMs, command: message });
  for (let generation = 0; generation <= retryCount; generation += 1) {
    atMs += (generation === 0 ? waitMs : retryWaitMs) + 1;
    moments.push({ atMs });
    atMs += dice.whole(1, 48) * hourMs - 1;
    moments.push({ atMs, command: feedbackOf({ ...waiting, generation, fence: 2 * generation + 2 }, { isLast: generation === retryCount, doesFail: index % 3 === 0 }) });
  }
  return moments;
}

function feedbackOf(target: FeedbackTarget, { isLast, doesFail }: { readonly isLast: boolean; readonly doesFail: boolean }): CommandMessage {
  const own = { target, body: Buffer.from("so it went") };
  // The last answer of every third is one retry too many.
  const verb = isLast && !doesFail ? "complete" : "retry";
  return prepareFeedback({ ...own, verb }, { brokerPayloadBytesMax: undefined }, systemSha256);
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const stepMs = 12 * hourMs;
const timerCount = 18;
const settleMsMin = 1_500;
const settleMsMax = 150_000;
