/** Conformance of standing pulls: delivery, settlement, bounds, and coming back by themselves. */
import { describe, expect, onTestFinished, test } from "vitest";
import type { PullSource } from "../../src/nats/core/jetstream.ts";
import { consumerConfig, eventually, message, ms, must, never, takeExactly, text } from "./jetstream.ts";
import type { TestBed } from "./jetstream.ts";

export function describeSources(bed: TestBed): void {
  const open = (target: { readonly stream: string; readonly consumer: string }, lookahead = 100): PullSource => {
    const source = bed.jetStream.openSource({ ...target, lookahead });
    onTestFinished(() => source.close());
    return source;
  };
  const many = (stream: string, count: number) => Array.from({ length: count }, (_, index) => message(`${stream}.${String(index)}`, { body: text(String(index)) }));
  const ackPending = async ({ stream, consumer }: { readonly stream: string; readonly consumer: string }): Promise<number> => must(await bed.jetStream.consumerState(stream, consumer)).ackPending;

  describe("a source", () => {
    test("delivers what is stored, and an acknowledgement removes it from a work queue", async () => {
      const target = await bed.workQueue();
      await bed.store(many(target.stream, 300));
      const source = open(target);
      const taken = await takeExactly(source, 300);
      expect(taken.map((delivered) => Buffer.from(delivered.message.body).toString())).toEqual(Array.from({ length: 300 }, (_, index) => String(index)));
      expect(taken.every(({ deliveryCount }) => deliveryCount === 1)).toBe(true);
      expect(taken.every((delivered) => delivered.settle({ kind: "ack" }))).toBe(true);
      await eventually("the queue is empty", async () => (await bed.state(target.stream)).messages === 0);
      expect(await ackPending(target)).toBe(0);
    });

    test("carries sequence, time and headers of the stored message", async () => {
      const target = await bed.workQueue();
      const [sequence] = await bed.store([message(`${target.stream}.a`, { headers: [["K", "v"], ["K", "w"]] })]);
      const [read] = await bed.jetStream.readLast({ stream: target.stream, subjects: [`${target.stream}.a`], from: "leader" });
      const [delivered] = await takeExactly(open(target), 1);
      expect(delivered?.message.sequence).toBe(sequence);
      expect(delivered?.message.timestampNs).toBe(read?.kind === "found" && read.message.timestampNs);
      expect(delivered?.message.headers.all("K")).toEqual(["v", "w"]);
    });

    test("settles a message once", async () => {
      const target = await bed.workQueue();
      await bed.store(many(target.stream, 1));
      const [delivered] = await takeExactly(open(target), 1);
      expect([delivered?.settle({ kind: "extend" }), delivered?.settle({ kind: "ack" }), delivered?.settle({ kind: "ack" }), delivered?.settle({ kind: "extend" })]).toEqual([true, true, false, false]);
    });

    test("delivers again what is handed back, not before its delay", async () => {
      const target = await bed.workQueue();
      await bed.store(many(target.stream, 2));
      const source = open(target);
      const [first, second] = await takeExactly(source, 2);
      const handedBackAtMs = Date.now();
      first?.settle({ kind: "nak", delayMs: ms(0) });
      second?.settle({ kind: "nak", delayMs: ms(700) });
      const [firstAgain] = await takeExactly(source, 1);
      const [secondAgain] = await takeExactly(source, 1);
      expect([firstAgain?.message.sequence, firstAgain?.deliveryCount]).toEqual([1, 2]);
      expect([secondAgain?.message.sequence, secondAgain?.deliveryCount]).toEqual([2, 2]);
      expect(Date.now() - handedBackAtMs).toBeGreaterThanOrEqual(690);
    });

    test("delivers again what nobody settles, and not what is extended", async () => {
      const target = await bed.workQueue({ ack_wait: 1_000_000_000 });
      await bed.store(many(target.stream, 2));
      const source = open(target);
      const [left, held] = await takeExactly(source, 2);
      const extending = setInterval(() => held?.settle({ kind: "extend" }), 200);
      onTestFinished(() => clearInterval(extending));
      const [again] = await takeExactly(source, 1);
      expect([again?.message.sequence, again?.deliveryCount]).toEqual([left?.message.sequence, 2]);
      again?.settle({ kind: "ack" });
      expect(await source.take({ max: 1, expiresMs: ms(1_500), signal: never })).toEqual([]);
      expect(held?.settle({ kind: "ack" })).toBe(true);
      await eventually("the queue is empty", async () => (await bed.state(target.stream)).messages === 0);
    });

    test("never delivers again what is terminated", async () => {
      const target = await bed.workQueue({ ack_wait: 1_000_000_000 });
      await bed.store(many(target.stream, 1));
      const source = open(target);
      const [delivered] = await takeExactly(source, 1);
      expect(delivered?.settle({ kind: "terminate", reason: "unreadable" })).toBe(true);
      expect(await source.take({ max: 1, expiresMs: ms(1_500), signal: never })).toEqual([]);
      expect((await bed.state(target.stream)).messages).toBe(0);
    });

    test("pulls no more than its look-ahead beyond what was taken", async () => {
      const target = await bed.workQueue();
      await bed.store(many(target.stream, 50));
      const source = open(target, 5);
      const taken = await source.take({ max: 2, expiresMs: ms(5_000), signal: never });
      expect(taken.length).toBeLessThanOrEqual(2);
      await eventually("the look-ahead is used", async () => (await ackPending(target)) === taken.length + 5);
      expect(await source.take({ max: 1, expiresMs: ms(1), signal: never })).toHaveLength(1);
      await eventually("what was taken is replaced", async () => (await ackPending(target)) === taken.length + 6);
    });

    test("gives nothing after its time, at once when told to stop, and whatever comes meanwhile", async () => {
      const target = await bed.workQueue();
      const source = open(target);
      const beganAtMs = Date.now();
      expect(await source.take({ max: 5, expiresMs: ms(300), signal: never })).toEqual([]);
      expect(Date.now() - beganAtMs).toBeGreaterThanOrEqual(295);
      const stop = new AbortController();
      const stopped = source.take({ max: 5, expiresMs: ms(60_000), signal: stop.signal });
      stop.abort();
      expect(await stopped).toEqual([]);
      const waiting = source.take({ max: 5, expiresMs: ms(10_000), signal: never });
      await bed.store(many(target.stream, 1));
      expect(await waiting).toHaveLength(1);
    });

    test("shares the messages with other sources of its consumer", async () => {
      const target = await bed.workQueue();
      const sources = [open(target, 10), open(target, 10)];
      const taking = Promise.all(sources.map(async (source) => {
        const sequences: number[] = [];
        for (;;) {
          const taken = await source.take({ max: 10, expiresMs: ms(1_000), signal: never });
          if (taken.length === 0) return sequences;
          for (const delivered of taken) sequences.push(delivered.settle({ kind: "ack" }) ? delivered.message.sequence : 0);
        }
      }));
      await bed.store(many(target.stream, 200));
      const [first = [], second = []] = await taking;
      expect([...first, ...second].sort((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
    });

    test("waits for a consumer that does not exist yet, and for one that is made again", async () => {
      const stream = await bed.stream({ retention: "workqueue" });
      const source = open({ stream, consumer: consumerConfig.durable_name });
      expect(await source.take({ max: 1, expiresMs: ms(300), signal: never })).toEqual([]);
      must(await bed.connection.admin.createConsumer(stream, consumerConfig));
      await bed.store(many(stream, 1));
      for (const delivered of await takeExactly(source, 1)) delivered.settle({ kind: "ack" });
      await eventually("the acknowledgement is in", async () => (await bed.state(stream)).messages === 0);
      // Only a stream can be deleted through our interface, and its consumers go with it.
      must(await bed.connection.admin.deleteStream(stream));
      must(await bed.connection.admin.createStream({ ...bed.streamConfig(stream), retention: "workqueue" }));
      must(await bed.connection.admin.createConsumer(stream, consumerConfig));
      await bed.store(many(stream, 1));
      expect(await takeExactly(source, 1)).toHaveLength(1);
    });

    test("asks for nothing while paused, and goes on when resumed", async () => {
      const target = await bed.workQueue();
      const source = open(target);
      source.pause();
      await bed.store(many(target.stream, 3));
      expect(await source.take({ max: 3, expiresMs: ms(300), signal: never })).toEqual([]);
      expect(await ackPending(target)).toBe(0);
      source.resume();
      expect(await takeExactly(source, 3)).toHaveLength(3);
    });

    test("hands back what it holds when it is closed", async () => {
      const target = await bed.workQueue();
      await bed.store(many(target.stream, 20));
      const source = open(target);
      const [taken] = await source.take({ max: 1, expiresMs: ms(5_000), signal: never });
      await eventually("all are pulled", async () => (await ackPending(target)) === 20);
      await source.close();
      expect(await takeExactly(open(target), 19, 10_000)).toHaveLength(19);
      expect(taken?.settle({ kind: "ack" })).toBe(true);
    });

    test("waits while its consumer is paused", async () => {
      const target = await bed.workQueue();
      must(await bed.connection.admin.pauseConsumer({ ...target, untilMs: (Date.now() + 60_000) as never }));
      await eventually("the pause holds", async () => must(await bed.jetStream.consumerState(target.stream, target.consumer)).paused);
      const source = open(target);
      await bed.store(many(target.stream, 1));
      expect(await source.take({ max: 1, expiresMs: ms(500), signal: never })).toEqual([]);
      must(await bed.connection.admin.pauseConsumer({ ...target, untilMs: 1_000 as never }));
      expect(await takeExactly(source, 1)).toHaveLength(1);
    });
  });
}
