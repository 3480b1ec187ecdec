/**
 * The owner of the flows: starts timers, receives resumes, and says how each goes on. It does everything that a sender may
 * do: sends again with and without an id, sends old feedback, contradicts itself, loses its mind between two steps.
 */
import type { DurationMs } from "../../src/base/units.ts";
import type { CommandMessage } from "../../src/client/command-message.ts";
import { prepareFeedback, type FeedbackRequest, type FeedbackTarget } from "../../src/client/feedback.ts";
import { prepareStart, type StartRequest } from "../../src/client/start.ts";
import { commandSubjects, consumerNames, headerNames, replyPrefixDefault, streamNames } from "../../src/protocol/names.ts";
import { decodeOutcome, type Outcome } from "../../src/protocol/outcome.ts";
import { readResume, type Resume } from "../../src/protocol/resume.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { timerKey } from "../../src/timer/identity.ts";
import type { Delivered } from "../../src/nats/core/jetstream.ts";
import type { ModelBroker } from "../model/broker.ts";
import { ModelConnection } from "../model/connection.ts";
import type { Dice } from "./dice.ts";

/** What happens to one timer, as its owner means it. */
export type TimerPlan = {
  readonly name: string;
  readonly request: StartRequest;
  readonly startAfterMs: number;
  /** Retries that it is given, then its end; `silence` gives none. */
  readonly retryCount: number;
  readonly end: "complete" | "fail" | "silence" | "fail_waiting";
  /** From a resume to its feedback. */
  readonly thinkMs: number;
};

/** How often the owner does what a good one would not. */
export type Mischief = { readonly resend: number; readonly withoutId: number; readonly contradict: number; readonly stale: number; readonly conflictingStart: number };

export type OwnerOptions = {
  readonly broker: ModelBroker;
  readonly dice: Dice;
  readonly plans: readonly TimerPlan[];
  readonly mischief: Mischief;
  readonly onOutcome?: (name: string, outcome: Outcome) => void;
};

export class Owner {
  readonly #options: OwnerOptions;
  readonly #connection: ModelConnection;
  readonly #dice: Dice;
  /** By their timer's ref. */
  readonly #plans: ReadonlyMap<string, TimerPlan>;
  /** Commands on their way into the broker. */
  #pendingCount = 0;
  /** What it means to do later. */
  #plannedCount = 0;
  /** Timers whose start the broker has acknowledged, by name. */
  readonly acknowledged = new Map<string, FeedbackTarget>();
  readonly outcomes: { readonly name: string; readonly outcome: Outcome }[] = [];

  constructor(options: OwnerOptions) {
    this.#options = options;
    this.#dice = options.dice;
    this.#plans = new Map(options.plans.map((plan) => [timerKey(plan.request, systemSha256).ref, plan]));
    const { timeline } = options.broker;
    this.#connection = new ModelConnection({ broker: options.broker, name: "owner", monotonicMs: () => timeline.nowMs() as never });
    const { jetStream } = this.#connection;
    jetStream.listen(`${replyPrefixDefault}.>`, ({ subject, body }) => this.#hear(subject, body));
  }

  /** Begins with everything that is planned. */
  start(): void {
    for (const plan of this.#options.plans) this.#after(plan.startAfterMs, () => this.#startTimer(plan));
    this.#after(0, () => this.#consume());
  }

  isBusy(): boolean {
    return this.#pendingCount > 0;
  }

  /** True when it will never do anything again unless something happens to it. */
  isDone(): boolean {
    return this.#pendingCount + this.#plannedCount === 0;
  }

  cut(): void {
    this.#connection.cut();
  }

  async #startTimer(plan: TimerPlan): Promise<void> {
    const { mischief } = this.#options;
    const prepared = prepareStart(plan.request, { brokerPayloadBytesMax: undefined }, systemSha256);
    if (this.#dice.chance(mischief.conflictingStart)) {
      const other = prepareStart({ ...plan.request, body: Buffer.from("another event") }, { brokerPayloadBytesMax: undefined }, systemSha256);
      this.#after(this.#dice.between(0, 20_000), () => this.#send(plan.name, other.message));
    }
    await this.#send(plan.name, prepared.message);
    this.acknowledged.set(plan.name, prepared.waiting);
    // Too early for both: only a fail may end a timer that waits.
    if (this.#dice.chance(mischief.stale)) this.#after(this.#dice.between(0, plan.thinkMs), () => this.#feed(plan, prepared.waiting, this.#dice.pick(["retry", "complete"])));
    if (plan.end === "fail_waiting") this.#after(plan.thinkMs, () => this.#feed(plan, prepared.waiting, "fail"));
  }

  async #consume(): Promise<void> {
    const source = this.#connection.jetStream.openSource({ stream: streamNames.resumes, consumer: consumerNames.resume, lookahead: 16 });
    const never = new AbortController().signal;
    for (;;) {
      const taken = await source.take({ max: 16, expiresMs: takeExpiresMs, signal: never });
      for (const delivered of taken) this.#meet(delivered);
    }
  }

  #meet(delivered: Delivered): void {
    const read = readResume(delivered.message, systemSha256);
    if (!read.ok) {
      delivered.settle({ kind: "terminate", reason: read.problem });
      return;
    }
    const plan = this.#planOf(read.resume);
    if (plan === undefined || plan.end === "silence") {
      delivered.settle({ kind: "ack" });
      return;
    }
    this.#after(plan.thinkMs, () => this.#answer(plan, read.resume, delivered));
  }

  async #answer(plan: TimerPlan, resume: Resume, delivered: Delivered): Promise<void> {
    const verb = resume.generation < plan.retryCount ? "retry" : endVerb(plan);
    if (this.#dice.chance(this.#options.mischief.contradict)) await this.#feed(plan, resume, this.#dice.pick(["retry", "complete", "fail"]));
    await this.#feed(plan, resume, verb);
    if (this.#dice.chance(this.#options.mischief.stale)) await this.#feedNonsense(plan, resume);
    delivered.settle({ kind: "ack" });
  }

  #feed(plan: TimerPlan, target: FeedbackTarget, verb: "retry" | "complete" | "fail"): Promise<void> {
    const body = Buffer.from(`${verb} ${plan.name}`);
    const { lineage, generation, fence, snapshotHash } = target;
    const own = { target: { lineage, generation, fence, snapshotHash }, body };
    const request: FeedbackRequest = verb === "fail" ? { ...own, verb, failure: { code: "gave_up", message: "so it is planned" } } : { ...own, verb };
    return this.#send(plan.name, prepareFeedback(request, { brokerPayloadBytesMax: undefined }, systemSha256));
  }

  /** Feedback on a point that has passed, has not come, or never will. */
  #feedNonsense(plan: TimerPlan, resume: Resume): Promise<void> {
    const { lineage, generation, fence, snapshotHash } = resume;
    const target = this.#dice.pick<FeedbackTarget>([
      { lineage, generation, fence: fence - 1, snapshotHash },
      { lineage, generation: generation + 1, fence: fence + 50, snapshotHash },
      { lineage: { ...lineage, execution: "never was" }, generation, fence, snapshotHash },
      { lineage: { ...lineage, edges: { ...lineage.edges, start: "another edge" } }, generation, fence, snapshotHash },
    ]);
    return this.#feed(plan, target, this.#dice.pick(["retry", "complete"]));
  }

  /** Sends until the broker has it, perhaps more than once. */
  async #send(name: string, command: CommandMessage): Promise<void> {
    this.#pendingCount += 1;
    const { mischief } = this.#options;
    for (;;) {
      const withId = this.#dice.chance(mischief.withoutId) ? {} : { messageId: command.messageId };
      const [outcome] = await this.#connection.jetStream.publish([{
        subject: commandSubjects[command.verb], body: command.body, ...withId,
        headers: [[headerNames.context, command.contextHeader], [headerNames.replyTo, `${replyPrefixDefault}.${name}`]],
      }]);
      if (outcome?.kind === "stored") break;
      await this.#pause(this.#dice.between(500, 3_000));
    }
    this.#pendingCount -= 1;
    if (!this.#dice.chance(mischief.resend)) return;
    const copy = { subject: commandSubjects[command.verb], body: command.body, headers: [[headerNames.context, command.contextHeader]] } as const;
    this.#after(this.#dice.between(0, 15_000), () => this.#connection.jetStream.publish([copy]));
  }

  #hear(subject: string, body: Uint8Array): void {
    const outcome = decodeOutcome(body);
    const name = subject.split(".").at(-1) ?? "";
    if (outcome === undefined) throw new Error("an outcome that cannot be read");
    this.outcomes.push({ name, outcome });
    this.#options.onOutcome?.(name, outcome);
  }

  #planOf(resume: Resume): TimerPlan | undefined {
    return this.#plans.get(timerKey(resume.lineage, systemSha256).ref);
  }

  #after(delayMs: number, act: () => unknown): void {
    this.#plannedCount += 1;
    this.#options.broker.timeline.after(delayMs, () => {
      this.#plannedCount -= 1;
      act();
    });
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => { this.#after(delayMs, () => resolve()); });
  }
}

function endVerb({ end }: TimerPlan): "complete" | "fail" {
  return end === "fail" || end === "fail_waiting" ? "fail" : "complete";
}

const takeExpiresMs = 5_000 as DurationMs;
