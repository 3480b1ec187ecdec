/**
 * Gathers the commands that concurrent callers send at the same time into atomic batches: one synchronisation of the
 * broker's disk then serves all of them.
 *
 * G1 Two groups are under way at most; what comes meanwhile waits and makes the next group larger. So a lone command never
 *    waits, and the size of the groups follows the load.
 * G2 A group is bounded in messages and bytes. Small groups are published one by one, which is cheaper.
 * G3 Each command has its own outcome, also when its batch was refused or not answered (nats/core/publish-group.ts).
 */
import { present } from "../base/assert.ts";
import { commandGroupsInFlightMax } from "../base/limits.ts";
import { portionSize, type PortionLimits } from "../base/portions.ts";
import type { JetStream, OutgoingMessage, PublishOutcome } from "../nats/core/jetstream.ts";
import { groupLimits, publishGroup } from "../nats/core/publish-group.ts";

type Waiting = {
  readonly message: OutgoingMessage;
  readonly resolve: (outcome: PublishOutcome) => void;
  readonly reject: (error: unknown) => void;
};

/** Publishes to one stream. The callers' own concurrency is what bounds those that wait. */
export class CommandGatherer {
  readonly #jetStream: Pick<JetStream, "publish" | "publishAtomically">;
  #waiting: Waiting[] = [];
  readonly #underWay = new Set<Promise<void>>();
  #isScheduled = false;

  constructor(jetStream: Pick<JetStream, "publish" | "publishAtomically">) {
    this.#jetStream = jetStream;
  }

  /** Resolves with the message's own outcome; never rejects but for a bug. */
  publish(message: OutgoingMessage): Promise<PublishOutcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ message, resolve, reject });
      this.#schedule();
    });
  }

  /** Resolves once nothing waits or is under way. */
  async idle(): Promise<void> {
    while (this.#waiting.length > 0 || this.#underWay.size > 0) {
      await (this.#underWay.size > 0 ? Promise.race(this.#underWay) : new Promise((resolve) => { setImmediate(resolve); }));
    }
  }

  /** At the end of this turn of the event loop, when everybody who was woken in it has sent. */
  #schedule(): void {
    if (this.#isScheduled || this.#underWay.size >= commandGroupsInFlightMax) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#sendGroups();
    });
  }

  #sendGroups(): void {
    while (this.#waiting.length > 0 && this.#underWay.size < commandGroupsInFlightMax) {
      const group = this.#waiting.splice(0, portionSize(this.#waiting, 0, waitingLimits));
      const sending = this.#send(group).finally(() => {
        this.#underWay.delete(sending);
        if (this.#waiting.length > 0) this.#schedule();
      });
      this.#underWay.add(sending);
    }
  }

  async #send(group: readonly Waiting[]): Promise<void> {
    try {
      const outcomes = await publishGroup(this.#jetStream, group.map(({ message }) => message));
      for (const [index, { resolve }] of group.entries()) resolve(present(outcomes[index], "one outcome per command"));
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }
}

const waitingLimits: PortionLimits<Waiting> = { ...groupLimits, bytesOf: ({ message }) => groupLimits.bytesOf(message) };
