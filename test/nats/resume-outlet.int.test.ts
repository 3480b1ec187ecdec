import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { resumeSubject, streamNames } from "../../src/protocol/names.ts";
import { readResume } from "../../src/protocol/resume.ts";
import { payloadHash } from "../../src/timer/hashes.ts";
import { must, text } from "../conformance/jetstream.ts";
import { elapsed, sha256 } from "../timer/records.ts";
import { freshKey, openBed } from "./bed.ts";
import type { Bed } from "./bed.ts";

let bed: Bed;
beforeAll(async () => {
  bed = await openBed();
});
afterAll(() => bed[Symbol.asyncDispose]());

const body = text("saved bytes");
const record = elapsed({ payloadHash: payloadHash(body, sha256), payloadBytes: body.length });

describe("a resume", () => {
  test("carries the record's generation and fence, and the saved bytes", async () => {
    const [outcome] = await bed.ports.resumes.publish([{ key: freshKey(), record, body }]);
    expect(outcome?.kind).toBe("stored");
    const [last] = await bed.connection.jetStream.readLast({ stream: streamNames.resumes, subjects: [resumeSubject], from: "leader" });
    const read = last?.kind === "found" ? readResume(last.message, sha256) : undefined;
    expect(read).toMatchObject({ ok: true, resume: { generation: 0, fence: 2, lineage: record.lineage, snapshotHash: record.snapshotHash, dueAtMs: record.dueAtMs, elapsedAtMs: record.elapsedAtMs } });
    expect(last?.kind === "found" && Buffer.from(last.message.body).equals(Buffer.from(body))).toBe(true);
  });

  test("that was published before counts as stored and is not stored twice", async () => {
    const item = { key: freshKey(), record, body };
    const before = must(await bed.connection.jetStream.streamState(streamNames.resumes)).messages;
    const outcomes = [...(await bed.ports.resumes.publish([item])), ...(await bed.ports.resumes.publish([item]))];
    expect(outcomes.map(({ kind }) => kind)).toEqual(["stored", "stored"]);
    expect(must(await bed.connection.jetStream.streamState(streamNames.resumes)).messages).toBe(before + 1);
  });

  test("goes out with many others, among them some that went out before", async () => {
    await bed.ports.topology.check();
    const items = Array.from({ length: 60 }, () => ({ key: freshKey(), record, body }));
    await bed.ports.resumes.publish(items.slice(0, 10));
    const before = must(await bed.connection.jetStream.streamState(streamNames.resumes)).messages;
    expect(new Set((await bed.ports.resumes.publish(items)).map(({ kind }) => kind))).toEqual(new Set(["stored"]));
    expect(must(await bed.connection.jetStream.streamState(streamNames.resumes)).messages).toBe(before + 50);
  });
});
