/**
 * One simulated schedule: everything in it follows from its seed. First a storm, then calm weather in which everything
 * that was accepted has to come to its end.
 */
import { createHash } from "node:crypto";
import { stateRecordFilter, subjectFilters } from "../../src/protocol/names.ts";
import { decodeRecord } from "../../src/protocol/record-codec.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import type { DurationMs } from "../../src/base/units.ts";
import type { FeedbackPolicy } from "../../src/timer/decide-timeout.ts";
import { timerKey } from "../../src/timer/identity.ts";
import { virtualStartAtMs } from "../model/timeline.ts";
import { Dice } from "./dice.ts";
import type { Violation } from "./checks.ts";
import { Encore } from "./encore.ts";
import type { Life } from "./ledger.ts";
import { Owner, type Mischief, type TimerPlan } from "./owner.ts";
import { fairQuiet, spokenLog } from "./quiet.ts";
import { Squeeze } from "./squeeze.ts";
import { lateMsMax, roughness, Storm } from "./storm.ts";
import { SimulatedWorld, sweepIntervalMs } from "./world.ts";

export type ScheduleReport = {
  readonly seed: number;
  readonly violations: readonly Violation[];
  /** Over all records in the order in which they were stored. */
  readonly hash: string;
  /** What happened, and how often each invariant was held against it. */
  readonly counts: Readonly<Record<string, number>>;
};

/** Runs the schedule of a seed. `say` hears every step. */
export async function runSchedule(seed: number, say?: (line: string) => void): Promise<ScheduleReport> {
  return await new Schedule(seed, say).run();
}

class Schedule {
  readonly #seed: number;
  readonly #policy: FeedbackPolicy;
  readonly #dice: Dice;
  readonly #storm: Storm;
  readonly #world: SimulatedWorld;
  readonly #owner: Owner;
  readonly #plans: readonly TimerPlan[];
  readonly #say: ((line: string) => void) | undefined;
  readonly #stormMs: number;
  /** What comes after the end of every fourth seed. */
  readonly #encore: Encore | undefined;
  /** Dice of what was added later, so that the rest of a seed stays what it was. */
  readonly #extras: Dice;
  #isStorm = true;
  #deathCount = 0;

  constructor(seed: number, say?: (line: string) => void) {
    this.#seed = seed;
    this.#policy = policyOf(new Dice(seed ^ 0xfeed));
    this.#dice = new Dice(seed);
    const dice = this.#dice;
    const replicas = dice.pick<1 | 3>([1, 3]);
    const tell = (who: string, text: string): void => say?.(`${((this.#world.timeline.nowMs() - this.#beganAtMs) / 1_000).toFixed(4).padStart(10)}  ${who.padEnd(9)} ${text}`);
    this.#say = say === undefined ? undefined : (line) => tell("chaos", line);
    const rough = roughness(dice, replicas);
    this.#storm = new Storm({
      dice: dice.fork(), roughness: rough,
      ...(say === undefined ? {} : { onFate: ({ client, kind, stream, subject, how }, fate) => tell(client, `${kind}${how === undefined ? "" : ` ${how}`} ${stream} ${subject}: ${fate.kind}`) }),
    });
    this.#world = new SimulatedWorld({
      weather: this.#storm, dice: dice.fork(), replicas, settings: { feedback: this.#policy },
      log: (worker) => (say === undefined ? fairQuiet : spokenLog((line) => tell(worker, line))),
    });
    if (say !== undefined) this.#world.broker.watch((change) => tell("broker", change.kind === "tail_lost" ? `lost ${String(change.count)} steps of ${change.stream}` : `${change.kind}${change.kind === "removed" ? ` (${change.why})` : ""} ${change.message.subject} ${String(change.message.sequence)} ${change.message.headers.get("Durable-Timer-Fence") ?? ""} ${bodyText(change.message.body)}`));
    this.#stormMs = dice.pick([7_000, 14_000, 30_000]);
    this.#extras = new Dice(seed ^ 0x5eed);
    // What time does by itself is no repetition, and nobody is idle before it has done it.
    if (this.#extras.chance(0.25) && this.#policy.onTimeout === "none") this.#encore = new Encore(this.#world);
    const isCrowd = this.#extras.chance(0.01);
    this.#plans = Array.from({ length: dice.whole(1, 4) * (isCrowd ? 10 : 1) }, (_, index) => planOf(dice, index, this.#stormMs));
    this.#owner = new Owner({ broker: this.#world.broker, dice: dice.fork(), plans: this.#plans, mischief: mischiefOf(dice) });
    this.#say?.(`seed ${String(seed)}: ${String(replicas)} replicas, ${JSON.stringify(rough)}`);
  }

  readonly #beganAtMs = virtualStartAtMs;

  async run(): Promise<ScheduleReport> {
    const world = this.#world;
    for (let index = 0; index < this.#dice.whole(1, 3); index += 1) this.#startWorker();
    this.#planAccidents();
    this.#owner.start();
    const squeeze = this.#planSqueeze();
    await world.pass(this.#stormMs);
    this.#calm();
    if (squeeze?.holdsStartsOnly() === true) await squeeze.holdStarts(throttled(() => world.timeline.nowMs(), () => this.#areAtRest()));
    squeeze?.end();
    const isOver = this.#isSound() && await world.pass(calmMsMax, this.#staysQuiet());
    if (this.#isSound()) this.#checkEnd(isOver);
    if (this.#encore !== undefined) await this.#playOn(this.#encore);
    return this.#report();
  }

  async #playOn(encore: Encore): Promise<void> {
    if (this.#isSound()) await encore.repeat(this.#extras, this.#staysQuiet());
    if (!this.#isSound() || !this.#extras.chance(0.3)) return;
    // The latest thing that was sent in the storm arrives by then.
    await this.#world.pass(lateMsMax);
    const isQuiet = this.#staysQuiet();
    // What was armed for a generation that has passed still becomes a wake.
    const isIdle = await this.#world.pass(calmMsMax, () => this.#owner.isDone() && isQuiet() && this.#world.messages("schedules").length === 0);
    if (isIdle && this.#isSound()) await encore.idle(sweepIntervalMs);
  }

  #isSound(): boolean {
    return this.#world.ledger.checks.violations.length === 0;
  }

  /** True once it has been quiet for some time. */
  #staysQuiet(): () => boolean {
    const { timeline } = this.#world;
    let quietSinceMs: number | undefined;
    return throttled(() => timeline.nowMs(), () => {
      if (!this.#isQuiet()) quietSinceMs = undefined;
      else quietSinceMs ??= timeline.nowMs();
      return quietSinceMs !== undefined && timeline.nowMs() - quietSinceMs > quietMs;
    });
  }

  /** Every fourth seed runs out of room in the middle of its storm. */
  #planSqueeze(): Squeeze | undefined {
    if (!this.#extras.chance(0.25)) return undefined;
    const squeeze = new Squeeze(this.#world, this.#extras);
    this.#world.timeline.after(this.#extras.between(0.1, 0.9) * this.#stormMs, () => {
      this.#say?.(`no more room: ${squeeze.what}`);
      squeeze.begin();
    });
    return squeeze;
  }

  #startWorker(): void {
    this.#world.startWorker(() => {
      this.#deathCount += 1;
      this.#say?.("a worker died");
      this.#world.timeline.after(this.#isStorm ? this.#dice.between(50, 5_000) : 50, () => this.#startWorker());
    });
  }

  #planAccidents(): void {
    const accidents = [
      () => [...this.#world.workers][0]?.kill(),
      () => { for (const worker of this.#world.workers) worker.connection.cut(); },
      () => this.#owner.cut(),
      () => this.#crashBroker(),
      () => this.#world.broker.moveLeadership(),
      () => this.#jumpClock(),
      () => this.#world.broker.sync(),
      () => this.#stopEldest(() => this.#startWorker()),
    ] as const;
    for (let count = this.#dice.whole(0, 8); count > 0; count -= 1) {
      const [accident, atMs] = [this.#dice.whole(0, accidents.length - 1), this.#dice.between(0, this.#stormMs)];
      this.#world.timeline.after(atMs, () => {
        this.#say?.(`accident ${["kill", "cut", "cut owner", "broker crash", "leader", "clock", "sync", "rollout"][accident] ?? ""}`);
        accidents[accident]?.();
      });
    }
  }

  #crashBroker(): void {
    const { broker } = this.#world;
    broker.crash({ tail: this.#dice.whole(0, 8) });
    this.#world.timeline.after(this.#dice.between(100, 6_000), () => broker.restart());
  }

  #jumpClock(): void {
    const byMs = this.#dice.pick([-8_000, -500, 700, 30_000]);
    if (byMs < 0) this.#world.ledger.expectClockJump();
    this.#world.broker.jumpClock(byMs);
  }

  /** The eldest worker is told to stop, as in a rollout; `then` hears when it has had the time for that. */
  #stopEldest(then: () => void): void {
    const [eldest] = this.#world.workers;
    eldest?.stop();
    if (eldest !== undefined) this.#world.timeline.after(8_000, () => { this.#world.workers.delete(eldest); then(); });
  }

  #calm(): void {
    this.#say?.("the storm is over");
    this.#isStorm = false;
    this.#storm.end();
    this.#world.broker.restart();
    // A new worker begins with a sweep; as many as there were are enough for the rest.
    this.#stopEldest(() => undefined);
    this.#startWorker();
  }

  #isQuiet(): boolean {
    if (this.#owner.isBusy() || this.#owner.acknowledged.size < this.#plans.length) return false;
    return this.#world.messages("commands").length === 0 && this.#areAtRest();
  }

  /** All timers that have begun are. */
  #areAtRest(): boolean {
    const world = this.#world;
    // A schedule of a generation that has passed does no harm, wherever it comes from.
    const wakes = world.messages("schedules", subjectFilters.wakes);
    if (world.messages("feedback").length + world.messages("resumes").length + wakes.length > 0) return false;
    const isResumed = [...world.ledger.lives.values()].every(({ records, resumes }) => records.every(({ phase, generation }) => phase !== "elapsed" || resumes.has(generation)));
    return isResumed && this.#liveRecords().every((record) => record?.phase === "elapsed");
  }

  #liveRecords() {
    const stored = this.#world.messages("state", stateRecordFilter).filter(({ body }) => body.length > 0);
    return stored.map(({ body }) => { const decoded = decodeRecord(body); return decoded.ok ? decoded.record : undefined; });
  }

  /** I8, I11: everything that was acknowledged has come to its end, or waits for feedback that its owner never gives. */
  #checkEnd(isOver: boolean): void {
    const { ledger, timeline } = this.#world;
    ledger.checks.hold("I11", isOver, () => `not everything came to its end in calm weather: ${this.#whatIsLeft()}`);
    for (const plan of this.#plans) this.#checkTimer(plan);
    const serving = [...this.#world.workers].filter((worker) => !worker.isGone());
    for (const { name, metrics } of serving) ledger.checks.hold("I13", metrics.held === 0, () => `${name} still holds wakes`);
    const plannedMax = plannedPerProcessMax * (1 + this.#world.workers.size) + plannedPerTimerMax * this.#plans.length;
    ledger.checks.hold("I13", timeline.plannedCount() <= plannedMax, () => `${String(timeline.plannedCount())} things are still planned at the end`);
  }

  #whatIsLeft(): string {
    const left = ["commands", "feedback", "resumes", "schedules"] as const;
    const counts = left.map((role) => `${role} ${String(this.#world.messages(role).length)}`).join(", ");
    return `${counts}; ${this.#liveRecords().map((record) => `${record?.phase ?? "?"} ${record?.lineage.execution ?? ""}`).join(", ")}`;
  }

  #checkTimer(plan: TimerPlan): void {
    const { ledger } = this.#world;
    const key = timerKey(plan.request, systemSha256);
    const life = ledger.lifeOf(`${key.flow}.${key.ref}`);
    ledger.checks.hold("I8", life.records.length > 0, () => `${plan.name} was acknowledged and is gone`);
    ledger.checks.holdUnless("I11", lifeProblem(life, plan), plan.name);
  }

  #report(): ScheduleReport {
    const { ledger, timeline } = this.#world;
    const hash = createHash("sha256");
    const lives = [...ledger.lives.values()];
    for (const life of lives) for (const record of life.records) hash.update(JSON.stringify(record));
    const counts = {
      schedules: 1, events: timeline.eventCount, changes: ledger.changeCount, resumes: lives.reduce((sum, life) => sum + life.resumeCount, 0),
      deaths: this.#deathCount, simulatedSeconds: (timeline.nowMs() - this.#beganAtMs) / 1_000, ...ledger.checks.counts(),
    };
    return { seed: this.#seed, violations: ledger.checks.violations, hash: hash.digest("hex"), counts };
  }
}

/** What is wrong with the end of a timer; undefined when nothing is. */
function lifeProblem(life: Life, { end }: TimerPlan): string | undefined {
  const last = life.records.at(-1);
  if (last === undefined) return undefined;
  const unresumed = life.records.find(({ phase, generation }) => phase === "elapsed" && !life.resumes.has(generation));
  if (unresumed !== undefined) return `elapsed in generation ${String(unresumed.generation)} and was never resumed`;
  const hasEnded = !life.isLive && life.archived !== undefined;
  const mayRest = life.isLive && end === "silence" && last.phase === "elapsed";
  return hasEnded || mayRest ? undefined : `is left as ${last.phase}`;
}

/** Mostly the default, so that what the other schedules show is not a matter of time-outs. */
function policyOf(dice: Dice): FeedbackPolicy {
  const onTimeout = dice.pick<FeedbackPolicy["onTimeout"]>(["none", "none", "none", "none", "fail", "resume_again"]);
  return { onTimeout, timeoutMs: dice.pick([2_000, 6_000, 30_000]) as DurationMs };
}

function planOf(dice: Dice, index: number, stormMs: number): TimerPlan {
  const maxRetries = dice.whole(0, 2);
  const wait = dice.pick([0, 300, 2_000, 9_000]);
  return {
    name: `timer-${String(index)}`,
    request: {
      flow: { id: dice.pick(["orders", "not plain!"]), version: "1" }, execution: `ex-${String(index)}`, node: "wait",
      edges: { start: "e1", elapsed: "e2", retry: "e3" },
      wait: { delayMs: wait }, maxRetries, retryWait: { delayMs: dice.pick([0, 1_000, 6_000]) }, body: Buffer.from(`event ${String(index)}`),
    },
    startAfterMs: dice.between(0, stormMs * 0.7),
    retryCount: dice.whole(0, maxRetries + 1),
    end: dice.pick(["complete", "complete", "fail", "silence", "fail_waiting"]),
    thinkMs: dice.pick([1, 100, 3_000]),
  };
}

function mischiefOf(dice: Dice): Mischief {
  const level = (): number => dice.pick([0, 0.2, 0.6]);
  return { resend: level(), withoutId: level(), contradict: level(), stale: level(), conflictingStart: level() };
}

/** Looks at most once per second of simulated time. */
function throttled(nowMs: () => number, look: () => boolean): () => boolean {
  let lookedAtMs = 0;
  return () => {
    if (nowMs() - lookedAtMs < 1_000) return false;
    lookedAtMs = nowMs();
    return look();
  };
}

function bodyText(body: Uint8Array): string {
  const record = decodeRecord(body);
  return record.ok ? `${record.record.phase}(${String(record.record.generation)},${String(record.record.fence)}) due ${String(record.record.dueAtMs)}` : `${String(body.length)} bytes`;
}

/** Things that a worker, or the rest of the world, has planned at a time when nothing is on its way. */
const plannedPerProcessMax = 30;
/** Its owner may mean to send a few things again. */
const plannedPerTimerMax = 5;
const calmMsMax = 900_000;
const quietMs = 3_000;
