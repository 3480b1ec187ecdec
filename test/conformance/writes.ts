/** Conformance of publishing: single messages and atomic batches. */
import { describe, expect, test } from "vitest";
import { publishesInFlightMax } from "../../src/base/limits.ts";
import { eventually, message, must, text } from "./jetstream.ts";
import type { TestBed } from "./jetstream.ts";

export function describeWrites(bed: TestBed): void {
  describe("publishing", () => {
    test("stores messages in order, with their headers and the very bytes", async () => {
      const stream = await bed.stream();
      const bodies = [text(""), new Uint8Array([0, 255, 10, 13, 200]), text('{"a":1}')];
      const sequences = await bed.store(bodies.map((body, index) => message(`${stream}.${String(index)}`, { body, headers: [["Some-Header", "a: b"], ["some-header", "c"]] })));
      expect(sequences).toEqual([1, 2, 3]);
      const read = await bed.jetStream.readLast({ stream, subjects: [`${stream}.0`, `${stream}.1`, `${stream}.2`], from: "leader" });
      expect(read.map((last) => (last.kind === "found" ? [...last.message.body] : last.kind))).toEqual(bodies.map((body) => [...body]));
      expect(read[0]?.kind === "found" && [read[0].message.headers.get("Some-Header"), read[0].message.headers.get("some-header")]).toEqual(["a: b", "c"]);
    });

    test("that expects nothing on its subject stores only the first message", async () => {
      const stream = await bed.stream();
      const first = message(`${stream}.a`, { expectedLastSubjectSequence: 0, body: text("first") });
      const [stored, again] = await bed.jetStream.publish([first, { ...first, body: text("second") }]);
      expect([stored?.kind, again]).toEqual(["stored", { kind: "conflict" }]);
      const [last] = await bed.jetStream.readLast({ stream, subjects: [`${stream}.a`], from: "leader" });
      expect(last?.kind === "found" && [...last.message.body]).toEqual([...text("first")]);
    });

    test("that expects a sequence replaces exactly that one", async () => {
      const stream = await bed.stream({ max_msgs_per_subject: 1 });
      const [first] = await bed.store([message(`${stream}.a`)]);
      const replace = message(`${stream}.a`, { expectedLastSubjectSequence: first ?? 0 });
      const [second] = await bed.store([replace]);
      expect(second).toBe((first ?? 0) + 1);
      expect(await bed.jetStream.publish([replace])).toEqual([{ kind: "conflict" }]);
      expect((await bed.state(stream)).messages).toBe(1);
    });

    test("a second copy under one message id tells the first one's sequence", async () => {
      const stream = await bed.stream();
      const [first] = await bed.store([message(`${stream}.a`, { messageId: "id-1" })]);
      expect(await bed.jetStream.publish([message(`${stream}.a`, { messageId: "id-1" })])).toEqual([{ kind: "stored", sequence: first, duplicate: true }]);
      expect((await bed.state(stream)).messages).toBe(1);
    });

    test("to a subject of no stream is refused", async () => {
      const [outcome] = await bed.jetStream.publish([message(`${bed.unusedName()}.a`)]);
      expect(outcome).toMatchObject({ kind: "refused", failure: { kind: "transient", code: "BROKER_NO_RESPONDERS" } });
    });

    test("into a full stream is refused until there is room", async () => {
      const stream = await bed.stream({ max_msgs: 2 });
      await bed.store([message(`${stream}.a`), message(`${stream}.b`)]);
      const [full] = await bed.jetStream.publish([message(`${stream}.c`)]);
      expect(full).toMatchObject({ kind: "refused", failure: { kind: "capacity", code: "STREAM_FULL" } });
      must(await bed.jetStream.purge({ stream, subject: `${stream}.a` }));
      expect((await bed.jetStream.publish([message(`${stream}.c`)]))[0]?.kind).toBe("stored");
    });

    test("into a full stream that discards the old removes the oldest message", async () => {
      const stream = await bed.stream({ max_msgs: 2, discard: "old" });
      await bed.store([message(`${stream}.a`), message(`${stream}.b`), message(`${stream}.c`)]);
      expect(await bed.state(stream)).toMatchObject({ messages: 2, firstSequence: 2, lastSequence: 3 });
    });

    test("with a roll-up leaves only that message on its subject", async () => {
      const stream = await bed.stream();
      await bed.store([message(`${stream}.a`), message(`${stream}.a`), message(`${stream}.b`)]);
      await bed.store([message(`${stream}.a`, { rollup: true })]);
      expect(await bed.state(stream)).toMatchObject({ messages: 2, lastSequence: 4 });
    });

    test("with a time to live stores a message that goes by itself", async () => {
      const stream = await bed.stream();
      await bed.store([message(`${stream}.a`, { ttlMs: 1_000 as never }), message(`${stream}.b`)]);
      expect((await bed.state(stream)).messages).toBe(2);
      await eventually("the message has gone", async () => (await bed.state(stream)).messages === 1);
    });

    test("with an option that the stream does not allow is refused", async () => {
      const stream = await bed.stream({ allow_msg_ttl: false });
      const [outcome] = await bed.jetStream.publish([message(`${stream}.a`, { ttlMs: 1_000 as never })]);
      expect(outcome).toMatchObject({ kind: "refused", failure: { kind: "invalid", code: "BROKER_FEATURE_MISSING" } });
    });

    test("more than the broker's limit is refused and disturbs nothing else", async () => {
      const stream = await bed.stream();
      const max = bed.connection.identity()?.payloadBytesMax ?? 0;
      const [tooLarge, small] = await bed.jetStream.publish([message(`${stream}.a`, { body: new Uint8Array(max) }), message(`${stream}.b`)]);
      expect(tooLarge).toMatchObject({ kind: "refused", failure: { kind: "invalid", code: "MESSAGE_TOO_LARGE" } });
      expect(small?.kind).toBe("stored");
    });

    test("more messages than may be in flight answers each of them, and stores them all", async () => {
      const stream = await bed.stream();
      let open = Array.from({ length: publishesInFlightMax + 100 }, (_, index) => message(`${stream}.${String(index)}`));
      // Replicas on a busy machine may change their leader in the middle of it; what they refused is published again.
      await eventually("all are stored", async () => {
        const outcomes = await bed.jetStream.publish(open);
        expect(outcomes).toHaveLength(open.length);
        expect(outcomes.filter(({ kind }) => kind === "conflict")).toEqual([]);
        open = open.filter((_, index) => outcomes[index]?.kind !== "stored");
        return open.length === 0;
      }, 40_000);
      expect((await bed.state(stream)).messages).toBeGreaterThanOrEqual(publishesInFlightMax + 100);
    });
  });

  describe("an atomic batch", () => {
    test("stores all its messages one behind the other", async () => {
      const stream = await bed.stream();
      await bed.store([message(`${stream}.before`)]);
      const batch = ["a", "b", "c"].map((name) => message(`${stream}.${name}`, { expectedLastSubjectSequence: 0 }));
      expect(await bed.jetStream.publishAtomically(batch)).toEqual({ kind: "stored", lastSequence: 4 });
      const read = await bed.jetStream.readLast({ stream, subjects: batch.map(({ subject }) => subject), from: "leader" });
      expect(read.map((last) => last.kind === "found" && last.message.sequence)).toEqual([2, 3, 4]);
    });

    test("of one message is stored like any other", async () => {
      const stream = await bed.stream();
      expect(await bed.jetStream.publishAtomically([message(`${stream}.a`)])).toEqual({ kind: "stored", lastSequence: 1 });
    });

    test("in which one expectation does not hold stores nothing", async () => {
      const stream = await bed.stream();
      await bed.store([message(`${stream}.b`)]);
      const batch = ["a", "b", "c"].map((name) => message(`${stream}.${name}`, { expectedLastSubjectSequence: 0 }));
      expect(await bed.jetStream.publishAtomically(batch)).toEqual({ kind: "conflict" });
      expect((await bed.state(stream)).messages).toBe(1);
    });

    test("in which one message id was seen before stores nothing", async () => {
      const stream = await bed.stream();
      await bed.store([message(`${stream}.a`, { messageId: "seen" })]);
      const batch = [message(`${stream}.b`, { messageId: "new" }), message(`${stream}.c`, { messageId: "seen" })];
      expect(await bed.jetStream.publishAtomically(batch)).toEqual({ kind: "conflict" });
      expect((await bed.state(stream)).messages).toBe(1);
    });

    test("may hold several messages of one subject when none expects anything", async () => {
      const stream = await bed.stream();
      const batch = ["1", "2", "3"].map((messageId) => message(`${stream}.same`, { messageId }));
      expect(await bed.jetStream.publishAtomically(batch)).toEqual({ kind: "stored", lastSequence: 3 });
      expect((await bed.state(stream)).messages).toBe(3);
    });

    test("may replace a message with a marker that expires", async () => {
      const stream = await bed.stream({ max_msgs_per_subject: 1 });
      const [first] = await bed.store([message(`${stream}.a`)]);
      const marker = message(`${stream}.a`, { expectedLastSubjectSequence: first ?? 0, rollup: true, ttlMs: 1_000 as never, body: text("") });
      expect((await bed.jetStream.publishAtomically([marker, message(`${stream}.b`)])).kind).toBe("stored");
      await eventually("the marker has gone", async () => (await bed.state(stream)).messages === 1);
    });

    test("is refused by a stream that does not allow it", async () => {
      const stream = await bed.stream({ allow_atomic: false });
      expect(await bed.jetStream.publishAtomically([message(`${stream}.a`), message(`${stream}.b`)])).toMatchObject({ kind: "refused", failure: { code: "BROKER_FEATURE_MISSING" } });
      expect((await bed.state(stream)).messages).toBe(0);
    });

    test("is refused by a stream without room for it", async () => {
      const stream = await bed.stream({ max_msgs: 2 });
      const outcome = await bed.jetStream.publishAtomically(["a", "b", "c"].map((name) => message(`${stream}.${name}`)));
      expect(outcome).toMatchObject({ kind: "refused", failure: { kind: "capacity", code: "STREAM_FULL" } });
      expect((await bed.state(stream)).messages).toBe(0);
    });
  });
}
