import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { leaseKeys, stateSubject, streamNames } from "../../src/protocol/names.ts";
import type { WalkedRecord } from "../../src/worker/ports.ts";
import { message, never, text } from "../conformance/jetstream.ts";
import { terminal, waiting } from "../timer/records.ts";
import { freshKey, openBed } from "./bed.ts";
import type { Bed } from "./bed.ts";

let bed: Bed;
beforeAll(async () => {
  bed = await openBed();
});
afterAll(() => bed[Symbol.asyncDispose]());

async function walked(): Promise<readonly WalkedRecord[]> {
  const all: WalkedRecord[] = [];
  for await (const part of bed.ports.walk.walk(never)) all.push(...part);
  return all;
}

describe("a walk over STATE", () => {
  test("meets each record with its revision, and neither notes nor markers nor strange keys", async () => {
    const [plain, hashed, removed] = [freshKey(), { flow: `~h${"a".repeat(32)}`, ref: freshKey().ref }, freshKey()];
    const outcomes = await bed.ports.state.write([plain, hashed, removed].map((key) => ({ key, record: key === removed ? terminal() : waiting() })));
    const revisions = outcomes.map((outcome) => (outcome.kind === "stored" ? outcome.revision : 0));
    await bed.ports.state.remove([{ key: removed, expected: revisions[2] ?? 0 }]);
    await bed.ports.notes.write({ name: leaseKeys.sweep, text: "note", expected: 0 });
    await bed.connection.jetStream.publish([message(stateSubject("t.strange"))]);
    expect(await walked()).toEqual([
      { key: plain, revision: revisions[0], record: { kind: "found", value: waiting(), revision: revisions[0] } },
      { key: hashed, revision: revisions[1], record: { kind: "found", value: waiting(), revision: revisions[1] } },
    ]);
  });

  test("shows a record that cannot be read, so that it is not overlooked", async () => {
    const key = freshKey();
    await bed.connection.jetStream.publish([message(stateSubject(`t.${key.flow}.${key.ref}`), { body: text("?") })]);
    expect((await walked()).filter(({ record }) => record.kind === "unreadable").map((one) => one.key)).toEqual([key]);
  });

  test("throws when STATE is gone", async () => {
    await bed.connection.admin.deleteStream(streamNames.state);
    await expect(walked()).rejects.toMatchObject({ code: "STREAM_MISSING" });
  });
});
