/**
 * A stream or the account runs out of room in the middle of a storm. What is live must stay, what was acknowledged must come
 * to its end once there is room again; and while only new timers lack room, the others must go on to theirs (I10).
 */
import { prepareStart } from "../../src/client/start.ts";
import { commandSubjects, headerNames, streamNames, subjectFilters, type StreamRole } from "../../src/protocol/names.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import type { Dice } from "./dice.ts";
import type { SimulatedWorld } from "./world.ts";

/** `snapshots_tight` leaves only what admission keeps free, room for some timers still; the others are full to the last byte. */
type Squeezed = StreamRole | "account" | "snapshots_tight";
const choices: readonly [Squeezed, ...Squeezed[]] = ["state", "commands", "feedback", "snapshots", "terminals", "resumes", "account", "snapshots_tight", "snapshots_tight", "snapshots_tight"];

export class Squeeze {
  readonly #world: SimulatedWorld;
  readonly what: Squeezed;
  #isOn = false;

  constructor(world: SimulatedWorld, dice: Dice) {
    this.#world = world;
    this.what = dice.pick(choices);
  }

  /** There is no more room than for what is there. */
  begin(): void {
    const { broker } = this.#world;
    this.#isOn = true;
    if (this.what === "account") broker.storageBytesMax = broker.storageBytes();
    else if (this.what === "snapshots_tight") this.#crowd();
    else this.#limit(this.what, this.#world.broker.streams.get(streamNames[this.what])?.store.bytes ?? 0);
  }

  /** What lies in SNAPSHOTS besides is nobody's timer, and takes all the room but what admission keeps free. */
  #crowd(): void {
    const snapshots = this.#world.broker.streams.get(streamNames.snapshots);
    if (snapshots === undefined) return;
    snapshots.publish({ subject: `${subjectFilters.snapshots.slice(0, -1)}filler`, headers: [], body: new Uint8Array(fillerBytes) });
    this.#limit("snapshots", snapshots.store.bytes / tightShare);
  }

  /** True when only new timers lack room, and at least one was begun: the others must go on. */
  holdsStartsOnly(): boolean {
    return this.#isOn && this.what === "snapshots_tight" && this.#world.messages("snapshots").length > 1;
  }

  /** Feedback flows while starts are held, and none of those is taken. `areAtRest` tells when all that have begun are. */
  async holdStarts(areAtRest: () => boolean): Promise<void> {
    const { ledger } = this.#world;
    // What was being written when the room ran out comes to its end first.
    await this.#world.pass(noticedMsMax);
    const begunCount = this.#world.messages("snapshots").length;
    this.#start();
    const rest = areAtRest() || await this.#world.pass(restMsMax, areAtRest);
    await this.#world.pass(noticedMsMax);
    if (ledger.checks.violations.length > 0) return;
    ledger.checks.hold("I10", rest, () => "feedback did not flow while starts were held");
    ledger.checks.hold("I10", this.#world.messages("snapshots").length === begunCount, () => "a timer was begun without room for it");
  }

  /** One more timer, which nobody answers: it is due when there is room again. */
  #start(): void {
    const { message } = prepareStart({
      flow: { id: "orders", version: "1" }, execution: "held", node: "wait", edges: { start: "e1", elapsed: "e2" }, wait: { delayMs: 1_000 }, body: Buffer.from("held"),
    }, { brokerPayloadBytesMax: undefined }, systemSha256);
    this.#world.broker.streamOf(commandSubjects.start)?.publish({ subject: commandSubjects.start, headers: [[headerNames.context, message.contextHeader]], body: message.body });
  }

  /** Somebody has made room. */
  end(): void {
    if (!this.#isOn) return;
    this.#isOn = false;
    this.#world.broker.storageBytesMax = undefined;
    for (const [role, name] of Object.entries(streamNames) as readonly (readonly [StreamRole, string])[]) {
      const stream = this.#world.broker.streams.get(name);
      if (stream !== undefined && role !== "schedules") stream.config = { ...stream.config, max_bytes: roomyBytes };
    }
  }

  #limit(role: StreamRole, bytes: number): void {
    const stream = this.#world.broker.streams.get(streamNames[role]);
    if (stream !== undefined) stream.config = { ...stream.config, max_bytes: Math.max(1, Math.floor(bytes)) };
  }
}

/** Between the share at which admission closes and a full stream. */
const tightShare = 0.93;
const fillerBytes = 100_000;
const roomyBytes = 64 * 1024 * 1024;
const noticedMsMax = 20_000;
const restMsMax = 300_000;
