import { describe, expect, it } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import { atomicBatchBytesMax, atomicBatchSizeMax, atomicBatchSizeMin, commandGroupsInFlightMax } from "../../src/base/limits.ts";
import { CommandGatherer } from "../../src/client/command-gatherer.ts";
import type { BatchOutcome, OutgoingMessage, PublishOutcome } from "../../src/nats/core/jetstream.ts";

type Call = { readonly how: "publish" | "atomic"; readonly messages: readonly OutgoingMessage[]; readonly settle: () => void };

const refused = new Failure("conflict", "STORE_CONFLICT", "publish");
const timeout = new Failure("transient", "BROKER_TIMEOUT", "publish");

/** A broker that answers when it is told to. */
class Broker {
  readonly calls: Call[] = [];
  readonly batchOutcomes: BatchOutcome[] = [];
  isPatient = false;
  #sequence = 0;

  gatherer(): CommandGatherer {
    return new CommandGatherer({
      publish: (messages) => this.#answer("publish", messages, () => messages.map((): PublishOutcome => ({ kind: "stored", sequence: (this.#sequence += 1), duplicate: false }))),
      publishAtomically: (messages) => this.#answer("atomic", messages, () => this.batchOutcomes.shift() ?? { kind: "stored", lastSequence: (this.#sequence += messages.length) }),
    });
  }

  async #answer<T>(how: Call["how"], messages: readonly OutgoingMessage[], outcome: () => T): Promise<T> {
    await new Promise<void>((resolve) => {
      this.calls.push({ how, messages, settle: resolve });
      if (!this.isPatient) resolve();
    });
    return outcome();
  }
}

const message = (index: number, bytes = 1): OutgoingMessage => ({ subject: "durable_timer.commands.start.v1", headers: [], body: new Uint8Array(bytes), messageId: String(index) });
const messages = (count: number): readonly OutgoingMessage[] => Array.from({ length: count }, (_, index) => message(index));
const turn = (): Promise<void> => new Promise((resolve) => { setImmediate(resolve); });
const sizes = (broker: Broker): readonly (readonly [string, number])[] => broker.calls.map(({ how, messages: { length } }) => [how, length]);

describe("CommandGatherer", () => {
  it("sends what comes in one turn as one batch, and gives each its own sequence", async () => {
    const broker = new Broker();
    const gatherer = broker.gatherer();
    const outcomes = await Promise.all(messages(100).map((one) => gatherer.publish(one)));
    expect(sizes(broker)).toEqual([["atomic", 100]]);
    expect(outcomes).toEqual(Array.from({ length: 100 }, (_, index) => ({ kind: "stored", sequence: index + 1, duplicate: false })));
  });

  it("sends few messages one by one, at once", async () => {
    const broker = new Broker();
    const gatherer = broker.gatherer();
    await Promise.all(messages(atomicBatchSizeMin - 1).map((one) => gatherer.publish(one)));
    expect(sizes(broker)).toEqual([["publish", atomicBatchSizeMin - 1]]);
  });

  it("keeps a bounded number of groups under way and gathers the rest for the next one", async () => {
    const broker = new Broker();
    broker.isPatient = true;
    const gatherer = broker.gatherer();
    const sent: Promise<PublishOutcome>[] = [];
    for (let group = 0; group < commandGroupsInFlightMax + 3; group += 1) {
      sent.push(...messages(30).map((one) => gatherer.publish(one)));
      await turn();
    }
    expect(sizes(broker)).toEqual(Array.from({ length: commandGroupsInFlightMax }, () => ["atomic", 30]));
    broker.isPatient = false;
    broker.calls[0]?.settle();
    broker.calls[1]?.settle();
    await Promise.all(sent);
    expect(sizes(broker).slice(commandGroupsInFlightMax)).toEqual([["atomic", 90]]);
    await gatherer.idle();
  });

  it("bounds a group in messages and in bytes", async () => {
    const broker = new Broker();
    const gatherer = broker.gatherer();
    await Promise.all(messages(atomicBatchSizeMax + 1).map((one) => gatherer.publish(one)));
    expect(sizes(broker)).toEqual([["atomic", atomicBatchSizeMax], ["publish", 1]]);
    broker.calls.length = 0;
    await Promise.all(Array.from({ length: 3 }, (_, index) => gatherer.publish(message(index, atomicBatchBytesMax / 2))));
    expect(sizes(broker)).toEqual([["publish", 2], ["publish", 1]]);
  });

  const broken: readonly { readonly outcome: BatchOutcome; readonly want: PublishOutcome["kind"]; readonly calls: readonly (readonly [string, number])[]; readonly because: string }[] = [
    { outcome: { kind: "refused", failure: refused }, want: "stored", calls: [["atomic", 30], ["publish", 30]], because: "nothing of a refused batch is stored" },
    { outcome: { kind: "conflict" }, want: "stored", calls: [["atomic", 30], ["publish", 30]], because: "one command of a batch must not decide for the others" },
    { outcome: { kind: "unknown", failure: timeout }, want: "unknown", calls: [["atomic", 30]], because: "a batch that was not answered may be stored, so that its sender decides" },
  ];
  it.each(broken)("settles a batch that is $outcome.kind: $because", async ({ outcome, want, calls }) => {
    const broker = new Broker();
    broker.batchOutcomes.push(outcome);
    const gatherer = broker.gatherer();
    const outcomes = await Promise.all(messages(30).map((one) => gatherer.publish(one)));
    expect(outcomes.map(({ kind }) => kind)).toEqual(Array.from({ length: 30 }, () => want));
    expect(sizes(broker)).toEqual(calls);
  });

  it("is idle when nothing waits, and not before", async () => {
    const broker = new Broker();
    broker.isPatient = true;
    const gatherer = broker.gatherer();
    await gatherer.idle();
    const sent = gatherer.publish(message(0));
    let isIdle = false;
    const idle = gatherer.idle().then(() => { isIdle = true; });
    await turn();
    await turn();
    expect(isIdle).toBe(false);
    broker.calls[0]?.settle();
    await sent;
    await idle;
    expect(isIdle).toBe(true);
  });
});
