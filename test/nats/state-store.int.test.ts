import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stateKey, stateSubject, streamNames } from "../../src/protocol/names.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { elapsed, terminal, waiting } from "../timer/records.ts";
import { message, must, text } from "../conformance/jetstream.ts";
import { freshKey, openBed } from "./bed.ts";
import type { Bed } from "./bed.ts";

let bed: Bed;
beforeAll(async () => {
  bed = await openBed();
});
afterAll(() => bed[Symbol.asyncDispose]());

const write = async (item: Parameters<Bed["ports"]["state"]["write"]>[0][number]) => (await bed.ports.state.write([item]))[0];
const revisionOf = (outcome: Awaited<ReturnType<typeof write>>): number => (outcome?.kind === "stored" ? outcome.revision : -1);

describe("a state record", () => {
  test("is created where nothing is, and comes back equal from leader and replica", async () => {
    const key = freshKey();
    const outcome = await write({ key, record: waiting() });
    expect(outcome?.kind).toBe("stored");
    for (const from of ["leader", "replica"] as const) {
      expect(await bed.ports.state.read([key, freshKey()], from)).toEqual([{ kind: "found", value: waiting(), revision: revisionOf(outcome) }, { kind: "absent" }]);
    }
    expect(await write({ key, record: waiting() })).toEqual({ kind: "exists" });
  });

  test("is replaced under its revision only", async () => {
    const key = freshKey(`~h${"a".repeat(32)}`);
    const created = revisionOf(await write({ key, record: waiting() }));
    const next = await write({ key, record: elapsed(), expected: created });
    expect(next?.kind).toBe("stored");
    expect(await write({ key, record: elapsed(), expected: created })).toEqual({ kind: "conflict" });
    expect(await bed.ports.state.read([key], "leader")).toMatchObject([{ kind: "found", value: elapsed() }]);
  });

  test("that is removed leaves a marker over which nothing is created, until it expires", async () => {
    const key = freshKey();
    const revision = revisionOf(await write({ key, record: terminal() }));
    expect(await bed.ports.state.remove([{ key, expected: revision + 1_000 }])).toEqual([{ kind: "conflict" }]);
    const [removed] = await bed.ports.state.remove([{ key, expected: revision }]);
    expect(removed?.kind).toBe("stored");
    expect(await bed.ports.state.read([key], "leader")).toEqual([{ kind: "marker", revision: removed?.kind === "stored" && removed.revision }]);
    expect(await write({ key, record: waiting() })).toEqual({ kind: "exists" });
    const [last] = await bed.connection.jetStream.readLast({ stream: streamNames.state, subjects: [stateSubject(stateKey(key))], from: "leader" });
    expect(last?.kind === "found" && last.message.headers.get("Nats-TTL")).toBe("300s");
  });

  test("is written and removed with many others, each with its own outcome", async () => {
    await bed.ports.topology.check();
    const keys = Array.from({ length: 60 }, () => freshKey());
    const [taken] = keys;
    if (taken === undefined) throw new Error("no key");
    await write({ key: taken, record: elapsed() });
    const outcomes = await bed.ports.state.write(keys.map((key) => ({ key, record: waiting() })));
    expect(outcomes.map(({ kind }) => kind)).toEqual(["exists", ...Array.from({ length: 59 }, () => "stored")]);
    const removed = await bed.ports.state.remove(outcomes.slice(1).map((outcome, index) => ({ key: keys[index + 1] ?? taken, expected: revisionOf(outcome) })));
    expect(new Set(removed.map(({ kind }) => kind))).toEqual(new Set(["stored"]));
    expect((await bed.ports.state.read(keys, "leader")).map(({ kind }) => kind)).toEqual(["found", ...Array.from({ length: 59 }, () => "marker")]);
  });

  test("that this version cannot read is set aside with its revision", async () => {
    const key = freshKey();
    const [outcome] = await bed.connection.jetStream.publish([message(stateSubject(stateKey(key)), { body: text('{"v":2}') })]);
    expect(await bed.ports.state.read([key], "leader")).toMatchObject([{ kind: "unreadable", revision: outcome?.kind === "stored" && outcome.sequence }]);
  });

  test("is stored as the codec writes it", async () => {
    const key = freshKey();
    await write({ key, record: elapsed() });
    const [last] = await bed.connection.jetStream.readLast({ stream: streamNames.state, subjects: [stateSubject(stateKey(key))], from: "leader" });
    expect(last?.kind === "found" && Buffer.compare(last.message.body, encodeRecord(elapsed()))).toBe(0);
    expect(must(await bed.connection.jetStream.streamState(streamNames.state)).config).toMatchObject({ allow_msg_ttl: true });
  });
});
