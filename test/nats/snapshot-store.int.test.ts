import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { snapshotSubject } from "../../src/protocol/names.ts";
import type { Snapshot } from "../../src/worker/ports.ts";
import { message, text } from "../conformance/jetstream.ts";
import { freshKey, openBed } from "./bed.ts";
import type { Bed } from "./bed.ts";

let bed: Bed;
beforeAll(async () => {
  bed = await openBed();
});
afterAll(() => bed[Symbol.asyncDispose]());

const snapshot = (body: Uint8Array): Snapshot => ({ contextHeader: '{"v":1,"flow":{"id":"\\u00fc"}}', body });

describe("a snapshot", () => {
  test("keeps context and bytes as they came", async () => {
    const bodies = [text(""), new Uint8Array([0, 1, 255, 13, 10]), text('{"a":9007199254740993}')];
    const keys = bodies.map(() => freshKey());
    const outcomes = await bed.ports.snapshots.create(bodies.map((body, index) => ({ key: keys[index] ?? freshKey(), snapshot: snapshot(body) })));
    expect(outcomes.map(({ kind }) => kind)).toEqual(["stored", "stored", "stored"]);
    for (const from of ["leader", "replica"] as const) {
      const read = await bed.ports.snapshots.read(keys, from);
      expect(read.map((one) => (one.kind === "found" ? [one.value.contextHeader, [...one.value.body]] : one.kind))).toEqual(bodies.map((body) => [snapshot(body).contextHeader, [...body]]));
    }
  });

  test("is never replaced", async () => {
    const key = freshKey();
    await bed.ports.snapshots.create([{ key, snapshot: snapshot(text("first")) }]);
    expect(await bed.ports.snapshots.create([{ key, snapshot: snapshot(text("second")) }])).toEqual([{ kind: "exists" }]);
    const [read] = await bed.ports.snapshots.read([key], "leader");
    expect(read?.kind === "found" && Buffer.from(read.value.body).toString()).toBe("first");
  });

  test("that somebody else wrote without a context cannot be read", async () => {
    const key = freshKey();
    await bed.connection.jetStream.publish([message(snapshotSubject(key))]);
    expect(await bed.ports.snapshots.read([key], "leader")).toMatchObject([{ kind: "unreadable" }]);
  });
});
