/**
 * What comes after the end: every command and every wake of the run once more, in any order, which must change nothing
 * (I12), and then a time in which nobody wants anything, in which nothing must be written (I15).
 */
import { stateSubject, streamNames, subjectFilters } from "../../src/protocol/names.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { matches, type Kept } from "../model/store.ts";
import type { Dice } from "./dice.ts";
import { recordsHash } from "./script.ts";
import type { SimulatedWorld } from "./world.ts";

export class Encore {
  readonly #world: SimulatedWorld;
  readonly #heard = new Map<string, Kept>();
  #isPlaying = false;
  /** Stored since the idle time began, but for notes. */
  #writes: string[] = [];
  #noteWriteCount = 0;

  /** Listens from now on. */
  constructor(world: SimulatedWorld) {
    this.#world = world;
    world.broker.watch((change) => {
      if (change.kind === "stored") this.#hear(change.stream, change.message);
    });
  }

  /** Delivers everything once more; `isQuiet` tells when its consequences are over. */
  async repeat(dice: Dice, isQuiet: () => boolean): Promise<void> {
    const { broker, ledger, timeline } = this.#world;
    const before = recordsHash(this.#world);
    this.#isPlaying = true;
    for (const { subject, headerList, body } of this.#heard.values()) {
      timeline.after(dice.between(0, spreadMs), () => broker.streamOf(subject)?.publish({ subject, headers: ownHeaders(headerList), body }));
    }
    await this.#world.pass(spreadMs);
    const hasSettled = await this.#world.pass(settleMsMax, isQuiet);
    ledger.checks.hold("I12", hasSettled, () => "messages that were delivered once more were not all settled");
    ledger.checks.hold("I12", recordsHash(this.#world) === before, () => "messages that were delivered once more changed a record");
  }

  /** Nobody wants anything for some sweep intervals. */
  async idle(intervalMs: number): Promise<void> {
    const { ledger } = this.#world;
    this.#writes = [];
    this.#noteWriteCount = 0;
    await this.#world.pass(idleIntervals * intervalMs);
    ledger.checks.hold("I15", this.#writes.length === 0, () => `something was written while nothing was to be done: ${this.#writes.join(", ")}`);
    ledger.checks.hold("I15", this.#noteWriteCount <= (idleIntervals + 1) * notesPerSweep, () => `${String(this.#noteWriteCount)} notes were written in ${String(idleIntervals)} idle intervals`);
  }

  #hear(stream: string, message: Kept): void {
    if (message.subject.startsWith(notePrefix)) this.#noteWriteCount += 1;
    else this.#writes.push(message.subject);
    if (this.#isPlaying || !isInput(stream, message)) return;
    const content = `${message.subject} ${systemSha256(message.body).toString()} ${JSON.stringify(ownHeaders(message.headerList))}`;
    this.#heard.set(content, message);
  }
}

function isInput(stream: string, { subject }: Kept): boolean {
  return stream === streamNames.commands || stream === streamNames.feedback || matches(subjectFilters.wakes, subject);
}

/** The same message, but for what made the broker recognise it. */
function ownHeaders(list: Kept["headerList"]): Kept["headerList"] {
  return list.filter(([name]) => !name.startsWith("Nats-"));
}

const notePrefix = stateSubject("l.");
const spreadMs = 2_000;
const settleMsMax = 120_000;
const idleIntervals = 2;
/** The lease is taken and given back, and the summary is written. */
const notesPerSweep = 3;
