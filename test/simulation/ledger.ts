/**
 * Watches every change of every stream and holds it against the invariants of ARCHITECTURE.md, by number (checks.ts says
 * which of them are held here).
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
import { feedbackTimeout, type FeedbackPolicy } from "../../src/timer/decide-timeout.ts";
import { sameLineage, timerKey } from "../../src/timer/identity.ts";
import type { FeedbackInput, StartInput } from "../../src/timer/input.ts";
import { inputAge, type TimerRecord } from "../../src/timer/record.ts";
import { feedbackPolicyDefault } from "../../src/worker/settings.ts";
import type { ModelBroker } from "../model/broker.ts";
import { matches, type Kept } from "../model/store.ts";
import type { Change, Departure } from "../model/stream.ts";
import type { Checks } from "./checks.ts";
import { limits } from "./limits.ts";
import { changeProblem } from "./transitions.ts";

/** One timer as the streams have shown it. */
export type Life = {
  readonly name: string;
  /** Every record that it had, in order. */
  readonly records: TimerRecord[];
  /** When the last one was stored. */
  recordedAtMs: number;
  lastBytes?: Uint8Array;
  isLive: boolean;
  /** A tombstone stands in its snapshot's place. */
  isCollected: boolean;
  snapshot?: Kept;
  /** Of that snapshot, when it is a start that can be read. */
  snapshotHash?: string;
  archived?: Uint8Array;
  /** Its archive record was removed again. */
  isUnarchived?: boolean;
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
  readonly checks: Checks;
  readonly lives = new Map<string, Life>();
  /** Changes held against the invariants. */
  changeCount = 0;
  /** Writes to STATE that are no timer's. */
  noteCount = 0;
  /** What the workers were told to do about unanswered resumes. */
  feedback: FeedbackPolicy = feedbackPolicyDefault;
  readonly #broker: ModelBroker;
  readonly #commands = new Map<string, Pending>();
  readonly #starts = new Map<string, number[]>();
  readonly #feedback = new Map<string, number[]>();
  #wereClocksExact = true;

  constructor(broker: ModelBroker, checks: Checks) {
    this.#broker = broker;
    this.checks = checks;
    broker.watch((change) => this.#on(change));
  }

  /** The broker's clock is about to be set back: its stamps no longer prove what it has shown before. */
  expectClockJump(): void {
    this.#wereClocksExact = false;
  }

  lifeOf(name: string): Life {
    let life = this.lives.get(name);
    if (life === undefined) {
      life = { name, records: [], recordedAtMs: 0, isLive: false, isCollected: false, resumes: new Map(), resumeCount: 0, arms: new Map(), everArmed: new Set() };
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
        if (isRecord(message)) this.checks.hold("I6", why === "replaced", () => `a state record went: ${why} ${message.subject}`);
        return;
      case streamNames.snapshots:
        return this.#onSnapshotGone(message, why);
      case streamNames.terminals:
        if (life !== undefined && !isRejected(message) && isRecord(message)) this.#onTerminalGone(life, why);
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
    if (!isRecord(message)) return this.#onMarker(life);
    const decoded = decodeRecord(message.body);
    this.checks.hold("I9", decoded.ok, () => `a record of ${life.name} cannot be read`);
    if (!decoded.ok) return;
    const { record } = decoded;
    const before = life.records.at(-1);
    this.#checkChange(life, before, record);
    this.#checkTimes(life, before, record);
    this.#checkReceipt(life, before, record);
    life.records.push(record);
    life.recordedAtMs = this.#broker.timeline.nowMs();
    life.lastBytes = message.body;
    life.isLive = true;
  }

  #checkChange(life: Life, before: TimerRecord | undefined, record: TimerRecord): void {
    const isFirst = before === undefined;
    this.checks.hold("I3", life.snapshotHash === record.snapshotHash, () => `${life.name} has a record without its snapshot`);
    this.checks.hold("I7", life.archived === undefined && (isFirst || life.isLive), () => `${life.name} was revived`);
    const problem = life.isLive || isFirst ? changeProblem(before, record, this.feedback) : undefined;
    for (const invariant of ["I5", "I7", "I9"] as const) this.checks.holdUnless(invariant, problem?.invariant === invariant ? problem.text : undefined, life.name);
  }

  /** I1, and one clock: due times come from the broker's stamps of the commands, however often those are delivered. */
  #checkTimes(life: Life, before: TimerRecord | undefined, record: TimerRecord): void {
    if (record.phase === "elapsed") this.checks.hold("I1", this.#broker.believableMs(believedMs) >= record.dueAtMs, () => `${life.name} elapsed before it was due`);
    const timeUpMs = timeUpOf(before, record);
    if (timeUpMs !== undefined) this.checks.hold("I9", this.#broker.believableMs(believedMs) >= timeUpMs, () => `${life.name} timed out before its time was up`);
    if (before === undefined) this.checks.hold("I12", (this.#starts.get(record.snapshotHash) ?? []).includes(record.dueAtMs), () => `${life.name} is due at a time that follows from none of its starts`);
  }

  #checkReceipt(life: Life, before: TimerRecord | undefined, record: TimerRecord): void {
    const { phase, receipt } = record;
    if (receipt === undefined || before?.receipt?.hash === receipt.hash) return;
    const stamps = this.#feedback.get(receipt.hash);
    this.checks.hold("I9", stamps !== undefined, () => `${life.name} has the receipt of a feedback that nobody gave`);
    if (phase === "waiting") this.checks.hold("I12", stamps?.some((atMs) => atMs + (record.retryDelayMs ?? 0) === record.dueAtMs) === true, () => `${life.name} waits for a time that follows from no retry`);
  }

  #onMarker(life: Life): void {
    const isSame = life.archived !== undefined && life.lastBytes !== undefined && Buffer.compare(life.archived, life.lastBytes) === 0;
    // A marker where no record ever was keeps late writers out.
    this.checks.hold("I6", isSame || life.records.length === 0, () => `${life.name} was removed from the state before its archive held the same bytes`);
    life.isLive = false;
  }

  /** A snapshot is written once; when its timer is archived, a tombstone may stand in its place. */
  #onSnapshot(message: Kept, life: Life | undefined): void {
    if (life === undefined) return;
    if (isTombstone(message)) {
      this.checks.hold("I7", !life.isLive && life.snapshot !== undefined, () => `${life.name} was collected although it lives`);
      life.isCollected = true;
      return;
    }
    this.checks.hold("I4", life.snapshot === undefined || life.isCollected, () => `the snapshot of ${life.name} was written again`);
    this.checks.hold("I7", !life.isCollected, () => `${life.name} was started again over its tombstone`);
    life.snapshot = message;
    const read = readCommand({ ...message, subject: commandSubjects.start }, limits, systemSha256);
    if (read.ok && read.input.kind === "start") life.snapshotHash = read.input.snapshotHash;
  }

  #onSnapshotGone(message: Kept, why: Departure): void {
    const key = timerKeyFromSubject(message.subject);
    const life = key === undefined ? undefined : this.lifeOf(`${key.flow}.${key.ref}`);
    if (life === undefined) return;
    const isReplaced = why === "replaced" && life.isCollected;
    // With its tombstone the last trace of a timer goes, and another one may be started under its name.
    if (isTombstone(message) && why === "expired") {
      this.checks.hold("I7", life.archived === undefined || life.isUnarchived === true, () => `the tombstone of ${life.name} expired before its archive record was removed`);
      this.lives.delete(life.name);
    }
    else this.checks.hold("I4", isReplaced, () => `the snapshot of ${life.name} went: ${why}`);
    this.checks.hold("I3", !life.isLive, () => `the snapshot of ${life.name} went while it lives`);
  }

  #onTerminal(message: Kept, life: Life | undefined): void {
    // Markers of removed records pass by.
    if (life === undefined || isRejected(message) || !isRecord(message)) return;
    this.checks.hold("I6", life.archived === undefined, () => `${life.name} was archived twice`);
    const isSame = life.records.at(-1)?.phase === "terminal" && life.lastBytes !== undefined && Buffer.compare(life.lastBytes, message.body) === 0;
    this.checks.hold("I6", isSame, () => `${life.name} was archived with other bytes than its last record's`);
    life.archived = message.body;
  }

  /** In this order: the tombstone keeps late starts away before the archive stops doing so. */
  #onTerminalGone(life: Life, why: Departure): void {
    this.checks.hold("I6", life.isCollected, () => `the archive record of ${life.name} went without a tombstone: ${why}`);
    this.checks.hold("I6", !life.isLive, () => `the archive record of ${life.name} went before its state: ${why}`);
    life.isUnarchived = true;
  }

  #onResume(message: Kept): void {
    const read = readResume(message, systemSha256);
    this.checks.hold("I2", read.ok, () => "a resume cannot be read");
    if (!read.ok) return;
    const { resume } = read;
    const key = timerKey(resume.lineage, systemSha256);
    const life = this.lifeOf(`${key.flow}.${key.ref}`);
    const shownMs = this.#wereClocksExact ? Number(message.timestampNs) / 1e6 : this.#broker.believableMs(believedMs);
    this.checks.hold("I1", shownMs >= resume.dueAtMs, () => `${life.name} was resumed before it was due`);
    this.#checkResume(message, life, resume);
  }

  #checkResume(message: Kept, life: Life, resume: Resume): void {
    const owed = life.records.find((record) => record.phase === "elapsed" && record.generation === resume.generation);
    this.checks.hold("I2", owed?.fence === resume.fence, () => `${life.name} was resumed under fence ${String(resume.fence)}, which its record of generation ${String(resume.generation)} never had`);
    const isSame = life.snapshot !== undefined && Buffer.compare(life.snapshot.body, message.body) === 0;
    this.checks.hold("I2", isSame, () => `${life.name} was resumed with other bytes than its snapshot's`);
    const first = life.resumes.get(resume.generation);
    if (first === undefined) this.checks.hold("I7", life.archived === undefined, () => `${life.name} was resumed for the first time after it was archived`);
    else this.checks.hold("I2", first.headers.get(headerNames.context) === message.headers.get(headerNames.context), () => `${life.name} was resumed twice in generation ${String(resume.generation)}, differently`);
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
    const known = this.#commands.get(`${message.subject} ${String(message.sequence)}`);
    // Its timer may have been collected since, and be a new one now.
    const pending = known === undefined ? undefined : { ...known, life: this.lifeOf(known.life.name) };
    if (pending === undefined) return this.checks.hold("I9", why === "terminated", () => `a malformed command was ${why}`);
    const who = `a ${verbOf(message)} of ${pending.life.name}`;
    if (why === "terminated") this.checks.holdUnless("I9", this.#refusalProblem(pending), who);
    else this.checks.holdUnless("I8", why === "acked" ? ackProblem(pending) : `was ${why}`, who);
  }

  #refusalProblem({ life, input, storedAtMs }: Pending): string | undefined {
    if (input.kind === "start") return life.snapshotHash === input.snapshotHash ? "was refused although it is its own" : undefined;
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
    this.checks.hold("I13", count <= armCountMax, () => `${life.name} was armed ${String(count)} times as ${fence}`);
    this.checks.hold("I11", !this.#hasOldWake(life, fence), () => `${life.name} was armed as ${fence} although it was woken long ago`);
    this.checks.hold("I11", message.schedule.fireAtMs <= Number(message.headers.get(headerNames.dueAt)), () => `${life.name} is woken after it is due`);
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
    this.checks.hold("I11", record.phase !== "waiting", () => `what wakes ${life.name} was ${why} while it waits`);
    const isOwed = record.phase === "elapsed" && !life.resumes.has(record.generation) && why !== "purged";
    this.checks.hold("I11", !isOwed, () => `the wake of ${life.name} was settled before its resume was stored`);
  }
}

/** The time that a record names for a second resume, or for its end without feedback. */
function timeUpOf(before: TimerRecord | undefined, record: TimerRecord): number | undefined {
  if (record.phase === "elapsed") return before?.phase === "elapsed" ? record.resumedAgainAtMs : undefined;
  return record.phase === "terminal" && record.failure?.code === feedbackTimeout ? record.endedAtMs : undefined;
}

function add(map: Map<string, number[]>, name: string, value: number): void {
  const list = map.get(name);
  if (list === undefined) map.set(name, [value]);
  else list.push(value);
}

function isRecord({ headers }: Kept): boolean {
  return headers.get("KV-Operation") === undefined;
}

function isTombstone({ headers }: Kept): boolean {
  return headers.get(headerNames.tombstone) !== undefined;
}

function isRejected({ subject }: Kept): boolean {
  return subject.includes("~rejected");
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
