/** Conformance of reading: the last message of subjects, walks over a stream, purges. */
import { describe, expect, test } from "vitest";
import { multiGetSizeMax } from "../../src/base/limits.ts";
import type { StoredMessage } from "../../src/protocol/message.ts";
import type { LastMessage } from "../../src/nats/core/jetstream.ts";
import { eventually, message, must, never, text } from "./jetstream.ts";
import type { TestBed } from "./jetstream.ts";

type ReadOptions = { readonly stream: string; readonly subjects: readonly string[]; readonly from: "leader" | "replica" };

export function describeReads(bed: TestBed): void {
  /** A replica may lag behind: it is asked until it has what the leader has. */
  const settled = async (options: ReadOptions): Promise<readonly LastMessage[]> => {
    const sequences = (read: readonly LastMessage[]): string => read.map((last) => (last.kind === "found" ? last.message.sequence : last.kind)).join();
    const expected = sequences(await bed.jetStream.readLast({ ...options, from: "leader" }));
    let read = await bed.jetStream.readLast(options);
    await eventually("the replica has caught up", async () => {
      read = await bed.jetStream.readLast(options);
      return sequences(read) === expected;
    });
    return read;
  };

  describe.each(["leader", "replica"] as const)("reading from the %s", (from) => {
    test("finds the last message of each subject in the order asked, and tells what is absent", async () => {
      const stream = await bed.stream();
      await bed.store(["a", "b", "a", "c"].map((name, index) => message(`${stream}.${name}`, { body: text(String(index)), headers: [["K", name]] })));
      const read = await settled({ stream, subjects: ["c", "missing", "a"].map((name) => `${stream}.${name}`), from });
      const seen = read.map((last) => (last.kind === "found" ? [last.message.sequence, Buffer.from(last.message.body).toString(), last.message.headers.get("K")] : last.kind));
      expect(seen).toEqual([[4, "3", "c"], "absent", [3, "2", "a"]]);
    });

    test("reads more subjects than one request may name", async () => {
      const stream = await bed.stream();
      const subjects = Array.from({ length: multiGetSizeMax + 50 }, (_, index) => `${stream}.${String(index)}`);
      await bed.store(subjects.map((subject) => message(subject)));
      const read = await settled({ stream, subjects: [...subjects, `${stream}.none`], from });
      expect(read.map((last) => (last.kind === "found" ? last.message.subject : last.kind))).toEqual([...subjects, "absent"]);
    });

    test("reads messages that together are larger than one reply may be", async () => {
      const stream = await bed.stream();
      const subjects = Array.from({ length: 12 }, (_, index) => `${stream}.${String(index)}`);
      await bed.store(subjects.map((subject, index) => message(subject, { body: new Uint8Array(900_000).fill(index) })));
      const read = await settled({ stream, subjects, from });
      expect(read.map((last) => (last.kind === "found" ? [last.message.body.length, last.message.body[0]] : last.kind))).toEqual(subjects.map((_, index) => [900_000, index]));
    });

    test("fails for a stream that does not exist", async () => {
      const [last] = await bed.jetStream.readLast({ stream: bed.unusedName(), subjects: ["x.a"], from });
      expect(last).toMatchObject({ kind: "failed", failure: { kind: "transient", code: from === "leader" ? "STREAM_MISSING" : "BROKER_NO_RESPONDERS" } });
    });

    test("of no subjects asks for nothing", async () => {
      expect(await bed.jetStream.readLast({ stream: bed.unusedName(), subjects: [], from })).toEqual([]);
    });
  });

  test("the leader reads its own writes, always", async () => {
    const stream = await bed.stream({ max_msgs_per_subject: 1 });
    for (let round = 0; round < 50; round += 1) {
      const [sequence] = await bed.store([message(`${stream}.a`)]);
      const [last] = await bed.jetStream.readLast({ stream, subjects: [`${stream}.a`], from: "leader" });
      expect(last?.kind === "found" && last.message.sequence).toBe(sequence);
    }
  });

  test("the leader finds the last of all messages under a wildcard", async () => {
    const stream = await bed.stream();
    await bed.store(["t.x.1", "t.x.2", "l.note"].map((name) => message(`${stream}.${name}`)));
    const read = await bed.jetStream.readLast({ stream, subjects: [`${stream}.t.>`, `${stream}.u.>`], from: "leader" });
    expect(read.map((last) => (last.kind === "found" ? last.message.subject : last.kind))).toEqual([`${stream}.t.x.2`, "absent"]);
  });

  test("timestamps are those of the stream, to the nanosecond and in its order", async () => {
    const stream = await bed.stream();
    const beforeNs = BigInt(Date.now()) * 1_000_000n;
    const subjects = [`${stream}.a`, `${stream}.b`];
    await bed.store(subjects.map((subject) => message(subject)));
    const stamps = await Promise.all((["leader", "replica"] as const).map(async (from) => (await settled({ stream, subjects, from })).map((last) => (last.kind === "found" ? last.message.timestampNs : 0n))));
    expect(stamps[0]).toEqual(stamps[1]);
    const [first = 0n, second = 0n] = stamps[0] ?? [];
    expect(first).toBeGreaterThan(beforeNs - 1_000_000_000n);
    expect(second).toBeGreaterThan(first);
  });

  describe("a purge", () => {
    test("removes what lies on a subject, and nothing else, as often as it is asked", async () => {
      const stream = await bed.stream();
      await bed.store(["a", "a", "b"].map((name) => message(`${stream}.${name}`)));
      expect(must(await bed.jetStream.purge({ stream, subject: `${stream}.a` }))).toEqual({ purged: 2 });
      expect(must(await bed.jetStream.purge({ stream, subject: `${stream}.a` }))).toEqual({ purged: 0 });
      expect((await bed.state(stream)).messages).toBe(1);
    });

    test("removes everything under a wildcard", async () => {
      const stream = await bed.stream();
      await bed.store(["x.a", "x.b", "y.a"].map((name) => message(`${stream}.${name}`)));
      expect(must(await bed.jetStream.purge({ stream, subject: `${stream}.x.>` }))).toEqual({ purged: 2 });
    });

    test("of a stream that does not exist fails", async () => {
      expect(await bed.jetStream.purge({ stream: bed.unusedName(), subject: "x" })).toMatchObject({ kind: "failed", failure: { code: "STREAM_MISSING" } });
    });
  });

  describe("a walk", () => {
    const collect = async (stream: string, options: { readonly filter: string; readonly batchSize: number; readonly onPart?: (part: readonly StoredMessage[]) => void }): Promise<readonly StoredMessage[]> => {
      const all: StoredMessage[] = [];
      for await (const part of bed.jetStream.scan({ stream, signal: never, ...options })) {
        options.onPart?.(part);
        all.push(...part);
      }
      return all;
    };

    test("meets every message under its filter once and in order, in parts of bounded size", async () => {
      const stream = await bed.stream();
      await bed.store(Array.from({ length: 250 }, (_, index) => message(`${stream}.${index % 2 === 0 ? "even" : "odd"}.${String(index)}`, { body: text(String(index)) })));
      const sizes: number[] = [];
      const walked = await collect(stream, { filter: `${stream}.odd.>`, batchSize: 40, onPart: (part) => sizes.push(part.length) });
      expect(walked.map(({ body }) => Buffer.from(body).toString())).toEqual(Array.from({ length: 125 }, (_, index) => String(2 * index + 1)));
      expect(Math.max(...sizes)).toBeLessThanOrEqual(40);
    });

    test("over headers alone leaves the bodies out, and only them", async () => {
      const stream = await bed.stream();
      await bed.store(["a", "b"].map((name) => message(`${stream}.${name}`, { body: text(name), headers: [["K", name]] })));
      const walked: StoredMessage[] = [];
      for await (const part of bed.jetStream.scan({ stream, filter: `${stream}.>`, batchSize: 10, headersOnly: true, signal: never })) walked.push(...part);
      expect(walked.map(({ sequence, body, headers }) => [sequence, body.length, headers.get("K")])).toEqual([[1, 0, "a"], [2, 0, "b"]]);
    });

    test("over nothing ends at once", async () => {
      const stream = await bed.stream();
      expect(await collect(stream, { filter: `${stream}.>`, batchSize: 10 })).toEqual([]);
      await bed.store([message(`${stream}.a`)]);
      expect(await collect(stream, { filter: `${stream}.b.>`, batchSize: 10 })).toEqual([]);
    });

    test("ends at the sequence that was last when it began, however much is written meanwhile", async () => {
      const stream = await bed.stream({ max_msgs_per_subject: 1 });
      const subjects = Array.from({ length: 60 }, (_, index) => `${stream}.${String(index)}`);
      await bed.store(subjects.map((subject) => message(subject)));
      const walked: StoredMessage[] = [];
      for await (const part of bed.jetStream.scan({ stream, filter: `${stream}.>`, batchSize: 10, signal: never })) {
        walked.push(...part);
        // What was not met yet moves behind the end, and new subjects appear.
        await bed.store([...subjects.slice(40).map((subject) => message(subject)), message(`${stream}.new${String(walked.length)}`)]);
      }
      expect(walked.map(({ subject }) => subject)).toEqual(subjects.slice(0, 40));
    });

    test("ends without a word when it is told to stop", async () => {
      const stream = await bed.stream();
      await bed.store(Array.from({ length: 30 }, (_, index) => message(`${stream}.${String(index)}`)));
      const stop = new AbortController();
      let count = 0;
      for await (const part of bed.jetStream.scan({ stream, filter: `${stream}.>`, batchSize: 10, signal: stop.signal })) {
        count += part.length;
        stop.abort();
      }
      expect(count).toBe(10);
    });

    test("of a stream that does not exist throws", async () => {
      await expect(collect(bed.unusedName(), { filter: "x.>", batchSize: 10 })).rejects.toMatchObject({ code: "STREAM_MISSING" });
    });
  });
}
