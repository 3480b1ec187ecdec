/** Conformance of what happens when the broker goes and comes back. */
import { describe, expect, onTestFinished, test } from "vitest";
import type { BrokerEvent } from "../../src/nats/core/jetstream.ts";
import { eventually, message, ms, never, takeExactly } from "./jetstream.ts";
import type { TestBed } from "./jetstream.ts";

export function describeCrash(bed: TestBed): void {
  describe("a broker that crashes", () => {
    test("leaves what it acknowledged, ends what was in hand, and is connected to again by itself", async () => {
      const { connection } = bed;
      // Replicas remember what was delivered, and deliver it again only after its acknowledgement wait.
      const target = await bed.workQueue({ ack_wait: 2_000_000_000 });
      await bed.store([message(`${target.stream}.a`), message(`${target.stream}.b`)]);
      const source = bed.jetStream.openSource({ ...target, lookahead: 10 });
      onTestFinished(() => source.close());
      const held = await takeExactly(source, 2);
      const epoch = connection.epoch();
      const events: BrokerEvent["kind"][] = [];
      onTestFinished(connection.onEvent(({ kind }) => events.push(kind)));

      await bed.broker.crash();

      expect(held.map((delivered) => [delivered.epoch === connection.epoch(), delivered.settle({ kind: "ack" })])).toEqual([[false, false], [false, false]]);
      expect(connection.epoch()).toBeGreaterThan(epoch);
      expect(events.filter((kind) => kind === "connected" || kind === "disconnected").slice(0, 2)).toEqual(["disconnected", "connected"]);
      const again = await takeExactly(source, 2, 60_000);
      expect(again.map(({ message: { sequence } }) => sequence).sort()).toEqual([1, 2]);
      expect(again.every((delivered) => delivered.settle({ kind: "ack" }))).toBe(true);
      await eventually("the queue is empty", async () => (await bed.state(target.stream)).messages === 0);
    });

    test("answers nothing while it is away, and what was asked does not hang", async () => {
      const stream = await bed.stream();
      const crashing = bed.broker.crash();
      await eventually("the loss is noticed", () => !bed.connection.isConnected());
      const [outcome] = await bed.jetStream.publish([message(`${stream}.a`)]);
      expect(outcome).toMatchObject({ kind: "refused", failure: { kind: "transient", code: "BROKER_UNREACHABLE" } });
      expect(await bed.jetStream.streamState(stream)).toMatchObject({ kind: "failed", failure: { kind: "transient" } });
      await crashing;
      await eventually("the stream takes messages again", async () => (await bed.jetStream.publish([message(`${stream}.a`)]))[0]?.kind === "stored", 30_000);
    });

    test("makes publishes that were on their way unknown, each of them", async () => {
      const stream = await bed.stream();
      const flood = Array.from({ length: 1_500 }, (_, index) => message(`${stream}.${String(index)}`, { body: new Uint8Array(2_000) }));
      const publishing = bed.jetStream.publish(flood);
      await bed.broker.crash();
      const outcomes = await publishing;
      expect(outcomes).toHaveLength(flood.length);
      const storedCount = outcomes.filter(({ kind }) => kind === "stored").length;
      // These servers are killed, and the machine goes on: what was written is there, on disk or on its way.
      await eventually("the stream is back", async () => (await bed.jetStream.streamState(stream)).kind === "told", 30_000);
      expect((await bed.state(stream)).messages).toBeGreaterThanOrEqual(storedCount);
    });

    test("is walked to the end by a walk that it interrupted", async () => {
      const stream = await bed.stream();
      const subjects = Array.from({ length: 40 }, (_, index) => `${stream}.${String(index)}`);
      await bed.store(subjects.map((subject) => message(subject)));
      const walked: string[] = [];
      for await (const part of bed.jetStream.scan({ stream, filter: `${stream}.>`, batchSize: 10, signal: never })) {
        walked.push(...part.map(({ subject }) => subject));
        if (walked.length === 20) await bed.broker.crash();
      }
      expect(walked).toEqual(subjects);
    });

    test("is listened to again", async () => {
      const subject = `${bed.unusedName()}.core`;
      let heardCount = 0;
      onTestFinished(bed.jetStream.listen(subject, () => (heardCount += 1)));
      await bed.broker.crash();
      await eventually("a core message is heard", async () => {
        bed.jetStream.send({ subject, body: new Uint8Array(1) });
        await new Promise((resolve) => setTimeout(resolve, ms(50)));
        return heardCount > 0;
      });
      expect(heardCount).toBeGreaterThan(0);
    });
  });
}
