/**
 * Watches every change of every stream and holds it against the invariants of ARCHITECTURE.md, by number.
 *
 * What it knows it knows from the streams alone; workers are not asked. A rule that the broker cannot see (an outcome
 * that was told) is checked by whoever hears it.
 */
import { present } from "../../src/base/assert.ts";
import { clockSampleAgeMsMax } from "../../src/base/limits.ts";
import { epochMsFromNanos } from "../../src/base/units.ts";
import { readCommand } from "../../src/protocol/command.ts";
import { commandSubjects, headerNames, stateRecordFilter, streamNames, subjectFilters, timerKeyFromSubject } from "../../src/protocol/names.ts";
import { decodeRecord } from "../../src/protocol/record-codec.ts";
import { readResume, type Resume } from "../../src/protocol/resume.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { dueAtMsOf } from "../../src/timer/decide-start.ts";
import { sameLineage, timerKey } from "../../src/timer/identity.ts";
import type { FeedbackInput, StartInput } from "../../src/timer/input.ts";
import { inputAge, type TimerRecord } from "../../src/timer/record.ts";
import type { ModelBroker } from "../model/broker.ts";
import { matches, type Kept } from "../model/store.ts";
import type { Change, Departure } from "../model/stream.ts";
import { limits } from "./limits.ts";
import { changeProblem } from "./transitions.ts";

/** A broken promise. */
export type Violation = { readonly invariant: string; readonly text: string; readonly atMs: number };

/** One timer as the streams have shown it. */
export type Life = {
  readonly name: string;
  /** Every record that it had, in order. */
  readonly records: TimerRecord[];
  /** When the last one was stored. */
  recordedAtMs: number;
  lastBytes?: Uint8Array;
  isLive: boolean;
  snapshot?: Kept;
  archived?: Uint8Array;
  /** Resumes by generation: the first copy. */
  readonly resumes: Map<number, Kept>;
  resumeCount: number;
  /** Schedules stored since the broker last lost something, by generation and fence. */
  readonly arms: Map<string, number>;
  /** Every generation and fence under which a schedule of it was ever stored. */
  readonly everArmed: Set<string>;
};

type Pending = { readonly life: Life; readonly input: StartInput | FeedbackInput; readonly storedAtMs: number };

export class Ledger {
  readonly violations: Violation[] = [];
  readonly lives = new Map<string, Life>();
  /** Changes held against the invariants. */
  changeCount = 0;
  /** Writes to STATE that are no timer's. */
  noteCount = 0;
  readonly #broker: ModelBroker;
  readonly #commands = new Map<string, Pending>();
  readonly #starts = new Map<string, number[]>();
  readonly #feedback = new Map<string, number[]>();
  #wereClocksExact = true;

  constructor(broker: ModelBroker) {
    this.#broker = broker;
    broker.watch((change) => this.#on(change));
  }

  /** The broker's clock is about to be set back: its stamps no longer prove what it has shown before. */
  expectClockJump(): void {
    this.#wereClocksExact = false;
  }

  violate(invariant: string, text: string): void {
    this.violations.push({ invariant, text, atMs: this.#broker.timeline.nowMs() });
  }

  lifeOf(name: string): Life {
    let life = this.lives.get(name);
    if (life === undefined) {
      life = { name, records: [], recordedAtMs: 0, isLive: false, resumes: new Map(), resumeCount: 0, arms: new Map(), everArmed: new Set() };
      this.lives.set(name, life);
    }
    return life;
  }

  #on(change: Change): void {
    this.changeCount += 1;
    if (change.kind === "tail_lost") {
      for (const life of this.lives.values()) life.arms.clear();
      return;
    }
    const key = timerKeyFromSubject(change.message.subject);
    const life = key === undefined ? undefined : this.lifeOf(`${key.flow}.${key.ref}`);
    if (change.kind === "stored") this.#onStored(change.stream, change.message, life);
    else this.#onRemoved(change.stream, change.message, { life, why: change.why });
  }

  #onStored(stream: string, message: Kept, life: Life | undefined): void {
    switch (stream) {
      case streamNames.state:
        return this.#onState(message, life);
      case streamNames.snapshots:
        return this.#onSnapshot(message, life);
      case streamNames.terminals:
        return this.#onTerminal(message, life);
      case streamNames.resumes:
        return this.#onResume(message);
      case streamNames.commands:
      case streamNames.feedback:
        return this.#onCommand(message);
      case streamNames.schedules:
        return this.#onArmed(message, life);
      default:
    }
  }

  #onRemoved(stream: string, message: Kept, { life, why }: { readonly life: Life | undefined; readonly why: Departure }): void {
    switch (stream) {
      case streamNames.state:
        if (why !== "replaced" && message.headers.get("KV-Operation") === undefined) this.violate("I10", `a state record went: ${why} ${message.subject}`);
        return;
      case streamNames.snapshots:
        return this.violate("I4", `a snapshot went: ${why} ${message.subject}`);
      case streamNames.terminals:
        if (!message.subject.includes("~rejected")) this.violate("I6", `a terminal record went: ${why} ${message.subject}`);
        return;
      case streamNames.commands:
      case streamNames.feedback:
        return this.#onSettled(message, why);
      case streamNames.schedules:
        return this.#onDisarmed(message, life, why);
      default:
    }
  }

  #onState(message: Kept, life: Life | undefined): void {
    if (life === undefined || !matches(stateRecordFilter, message.subject)) {
      this.noteCount += 1;
      return;
    }
    if (message.headers.get("KV-Operation") !== undefined) return this.#onMarker(life);
    const decoded = decodeRecord(message.body);
    if (!decoded.ok) return this.violate("I9", `a record that cannot be read: ${decoded.problem}`);
    const { record } = decoded;
    if (this.#snapshotHashOf(life) !== record.snapshotHash) this.violate("I3", `${life.name} has a record without its snapshot`);
    const before = life.records.at(-1);
    const problem = life.archived !== undefined || (before !== undefined && !life.isLive) ? { invariant: "I7", text: "was revived" } : changeProblem(before, record);
    if (problem !== undefined) this.violate(problem.invariant, `${life.name}: ${problem.text}`);
    this.#checkTimes(life, before, record);
    this.#checkReceipt(life, before, record);
    life.records.push(record);
    life.recordedAtMs = this.#broker.timeline.nowMs();
    life.lastBytes = message.body;
    life.isLive = true;
  }

  /** I1, and one clock: due times come from the broker's stamps of the commands, however often those are delivered. */
  #checkTimes(life: Life, before: TimerRecord | undefined, record: TimerRecord): void {
    if (record.phase === "elapsed" && this.#broker.believableMs(believedMs) < record.dueAtMs) this.violate("I1", `${life.name} elapsed before it was due`);
    if (before === undefined && !(this.#starts.get(record.snapshotHash) ?? []).includes(record.dueAtMs)) this.violate("I12", `${life.name} is due at a time that follows from none of its starts`);
  }

  #checkReceipt(life: Life, before: TimerRecord | undefined, record: TimerRecord): void {
    const { phase, receipt } = record;
    if (receipt === undefined || before?.receipt?.hash === receipt.hash) return;
    const stamps = this.#feedback.get(receipt.hash);
    if (stamps === undefined) this.violate("I9", `${life.name} has the receipt of a feedback that nobody gave`);
    else if (phase === "waiting" && !stamps.some((atMs) => atMs + (record.retryDelayMs ?? 0) === record.dueAtMs)) this.violate("I12", `${life.name} waits for a time that follows from no retry`);
  }

  #onMarker(life: Life): void {
    const isSame = life.archived !== undefined && life.lastBytes !== undefined && Buffer.compare(life.archived, life.lastBytes) === 0;
    if (!isSame) this.violate("I6", `${life.name} was removed from the state before its archive held the same bytes`);
    life.isLive = false;
  }

  #onSnapshot(message: Kept, life: Life | undefined): void {
    if (life === undefined) return;
    if (life.snapshot !== undefined) this.violate("I4", `the snapshot of ${life.name} was written again`);
    life.snapshot = message;
  }

  #onTerminal(message: Kept, life: Life | undefined): void {
    if (life === undefined || message.subject.includes("~rejected")) return;
    if (life.archived !== undefined) this.violate("I6", `${life.name} was archived twice`);
    if (life.records.at(-1)?.phase !== "terminal" || life.lastBytes === undefined || Buffer.compare(life.lastBytes, message.body) !== 0) {
      this.violate("I6", `${life.name} was archived with other bytes than its last record's`);
    }
    life.archived = message.body;
  }

  #onResume(message: Kept): void {
    const read = readResume(message, systemSha256);
    if (!read.ok) return this.violate("I2", `a resume that cannot be read: ${read.problem}`);
    const { resume } = read;
    const key = timerKey(resume.lineage, systemSha256);
    const life = this.lifeOf(`${key.flow}.${key.ref}`);
    const shownMs = this.#wereClocksExact ? Number(message.timestampNs) / 1e6 : this.#broker.believableMs(believedMs);
    if (shownMs < resume.dueAtMs) this.violate("I1", `${life.name} was resumed before it was due`);
    this.#checkResume(message, life, resume);
  }

  #checkResume(message: Kept, life: Life, resume: Resume): void {
    const owed = life.records.find((record) => record.phase === "elapsed" && record.generation === resume.generation);
    if (owed?.fence !== resume.fence) this.violate("I2", `${life.name} was resumed under fence ${String(resume.fence)}, which its record of generation ${String(resume.generation)} never had`);
    if (life.snapshot === undefined || Buffer.compare(life.snapshot.body, message.body) !== 0) this.violate("I2", `${life.name} was resumed with other bytes than its snapshot's`);
    const first = life.resumes.get(resume.generation);
    if (first !== undefined && first.headers.get(headerNames.context) !== message.headers.get(headerNames.context)) this.violate("I2", `${life.name} was resumed twice in generation ${String(resume.generation)}, differently`);
    if (first === undefined) life.resumes.set(resume.generation, message);
    life.resumeCount += 1;
  }

  #onCommand(message: Kept): void {
    const read = readCommand(message, limits, systemSha256);
    if (!read.ok) return;
    const life = this.lifeOf(`${read.key.flow}.${read.key.ref}`);
    const { input } = read;
    this.#commands.set(`${message.subject} ${String(message.sequence)}`, { life, input, storedAtMs: this.#broker.timeline.nowMs() });
    if (input.kind === "start") add(this.#starts, input.snapshotHash, dueAtMsOf(input));
    else add(this.#feedback, input.receiptHash, epochMsFromNanos(message.timestampNs));
  }

  /** I8, I9: a command leaves its queue only when it has taken effect, or cannot. */
  #onSettled(message: Kept, why: Departure): void {
    const pending = this.#commands.get(`${message.subject} ${String(message.sequence)}`);
    if (pending === undefined) {
      if (why !== "terminated") this.violate("I9", `a malformed command was ${why}`);
      return;
    }
    const problem = why === "acked" ? ackProblem(pending) : why === "terminated" ? this.#refusalProblem(pending) : `was ${why}`;
    if (problem !== undefined) this.violate(why === "terminated" ? "I9" : "I8", `a ${verbOf(message)} of ${pending.life.name} ${problem}`);
  }

  #refusalProblem({ life, input, storedAtMs }: Pending): string | undefined {
    if (input.kind === "start") return this.#snapshotHashOf(life) === input.snapshotHash ? "was refused although it is its own" : undefined;
    const record = life.isLive ? life.records.at(-1) : undefined;
    if (record === undefined || record.snapshotHash !== input.snapshotHash || !sameLineage(record.lineage, input.lineage)) return undefined;
    // Feedback that came before what it is about may be refused: starts and feedback travel separately.
    const isCurrent = inputAge(input, record) === "equal" && life.recordedAtMs < storedAtMs;
    const isAcceptable = isCurrent && takes(record, input);
    return isAcceptable ? "was refused that its record would have taken" : undefined;
  }

  #onArmed(message: Kept, life: Life | undefined): void {
    if (life === undefined || message.schedule === undefined) return;
    const fence = message.headers.get(headerNames.fence) ?? "";
    const count = (life.arms.get(fence) ?? 0) + 1;
    life.arms.set(fence, count);
    life.everArmed.add(fence);
    // A look and a write are two things, so that a few too many are possible; many mean that something arms in a loop.
    if (count > armCountMax) this.violate("I11", `${life.name} was armed ${String(count)} times as ${fence}`);
    if (this.#hasOldWake(life, fence)) this.violate("I11", `${life.name} was armed as ${fence} although it was woken long ago`);
    if (message.schedule.fireAtMs > Number(message.headers.get(headerNames.dueAt))) this.violate("I11", `${life.name} is woken after it is due`);
  }

  /** A wake that lies there for longer than any write can have been on its way. */
  #hasOldWake(life: Life, fence: string): boolean {
    const wakes = this.#broker.streams.get(streamNames.schedules)?.store.under(`${wakePrefix}${life.name}`) ?? [];
    return wakes.some((wake) => wake.headers.get(headerNames.fence) === fence && this.#broker.clockMs() - Number(wake.timestampNs) / 1e6 > wakeAgeMsMax);
  }

  #onDisarmed(message: Kept, life: Life | undefined, why: Departure): void {
    if (life?.isLive !== true || why === "replaced" || why === "fired") return;
    const record = present(life.records.at(-1), "a live timer's record");
    if (!isWokenBy(record, message)) return;
    if (record.phase === "waiting") this.violate("I11", `what wakes ${life.name} was ${why} while it waits`);
    const isOwed = record.phase === "elapsed" && !life.resumes.has(record.generation) && why !== "purged";
    if (isOwed) this.violate("I11", `the wake of ${life.name} was settled before its resume was stored`);
  }

  #snapshotHashOf(life: Life): string | undefined {
    const { snapshot } = life;
    if (snapshot === undefined) return undefined;
    const read = readCommand({ ...snapshot, subject: commandSubjects.start }, limits, systemSha256);
    return read.ok && read.input.kind === "start" ? read.input.snapshotHash : undefined;
  }
}

function add(map: Map<string, number[]>, name: string, value: number): void {
  const list = map.get(name);
  if (list === undefined) map.set(name, [value]);
  else list.push(value);
}

/** I8, L3: what is acknowledged has taken effect, and everything that follows from it is stored. */
function ackProblem({ life, input }: Pending): string | undefined {
  const made = input.kind === "start" ? life.records.find(({ snapshotHash }) => snapshotHash === input.snapshotHash) : madeBy(life, input);
  if (made === undefined) return "was acknowledged without effect";
  if (input.kind === "feedback" && !sameLineage(made.lineage, input.lineage)) return "was acknowledged although it is of another lineage";
  const isArmed = made !== life.records.at(-1) || life.everArmed.has(`${String(made.generation)}:${String(made.fence)}`);
  if (made.phase === "waiting" && !isArmed) return "was acknowledged before its schedule was stored";
  return made.phase === "terminal" && life.archived === undefined ? "was acknowledged before it was archived" : undefined;
}

function madeBy(life: Life, { receiptHash, generation, fence }: FeedbackInput): TimerRecord | undefined {
  return life.records.find(({ receipt }) => receipt?.hash === receiptHash && receipt.generation === generation && receipt.fence === fence);
}

/** True for the schedule or wake that armed this record. */
function isWokenBy(record: TimerRecord, { headers }: Kept): boolean {
  const armedFence = record.phase === "elapsed" ? record.armedFence : record.fence;
  return headers.get(headerNames.fence) === `${String(record.generation)}:${String(armedFence)}`;
}

function takes({ phase }: TimerRecord, { verb }: FeedbackInput): boolean {
  return phase === "elapsed" || (phase === "waiting" && verb === "fail");
}

function verbOf({ subject }: Kept): string {
  return subject.split(".").at(-2) ?? "";
}

const armCountMax = 6;
const wakeAgeMsMax = 100_000;
const wakePrefix = subjectFilters.wakes.slice(0, -1);
/** A sample of the broker's clock is believed that long, and a request of its own may have been on its way. */
const believedMs = clockSampleAgeMsMax + 5_000;
