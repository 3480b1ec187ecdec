import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { streamNames, terminalSubject } from "../../src/protocol/names.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { message } from "../conformance/jetstream.ts";
import { terminal, waiting } from "../timer/records.ts";
import { freshKey, openBed } from "./bed.ts";
import type { Bed } from "./bed.ts";

let bed: Bed;
beforeAll(async () => {
  bed = await openBed();
});
afterAll(() => bed[Symbol.asyncDispose]());

describe("an archived record", () => {
  test("has exactly the bytes that STATE had", async () => {
    const key = freshKey();
    expect((await bed.ports.archive.create([{ key, record: terminal() }]))[0]?.kind).toBe("stored");
    const [last] = await bed.connection.jetStream.readLast({ stream: streamNames.terminals, subjects: [terminalSubject(key)], from: "leader" });
    expect(last?.kind === "found" && Buffer.compare(last.message.body, encodeRecord(terminal()))).toBe(0);
    expect(await bed.ports.archive.read([key, freshKey()])).toMatchObject([{ kind: "found", value: terminal() }, { kind: "absent" }]);
  });

  test("is written once, whether the second comes within the duplicate window or long after", async () => {
    const key = freshKey();
    await bed.ports.archive.create([{ key, record: terminal() }]);
    expect(await bed.ports.archive.create([{ key, record: terminal({ outcome: "failed" }) }])).toEqual([{ kind: "exists" }]);
    const old = freshKey();
    await bed.connection.jetStream.publish([message(terminalSubject(old), { body: encodeRecord(terminal()) })]);
    expect(await bed.ports.archive.create([{ key: old, record: terminal() }])).toEqual([{ kind: "exists" }]);
    expect(await bed.ports.archive.read([key])).toMatchObject([{ kind: "found", value: { outcome: "completed" } }]);
  });

  test("that has not ended cannot be read", async () => {
    const key = freshKey();
    await bed.connection.jetStream.publish([message(terminalSubject(key), { body: encodeRecord(waiting()) })]);
    expect(await bed.ports.archive.read([key])).toMatchObject([{ kind: "unreadable", problem: "phase is waiting" }]);
  });
});
