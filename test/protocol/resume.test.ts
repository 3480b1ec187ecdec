import { expect, test } from "vitest";
import { utf8 } from "../../src/base/bytes.ts";
import { readResume, resumeContextHeader } from "../../src/protocol/resume.ts";
import { payloadHash } from "../../src/timer/hashes.ts";
import { elapsed, lineage, sha256 } from "../timer/records.ts";
import { message } from "./messages.ts";

const body = utf8("event");
const record = elapsed({ payloadHash: payloadHash(body, sha256) });
const resume = (over: { context?: string; body?: Uint8Array } = {}) =>
  readResume(message({ subject: "triggers.v2.durable_timer.resume.v1", headers: { "Durable-Timer-Context": over.context ?? resumeContextHeader(record) }, body: over.body ?? body }), sha256);

test("a resume reads back with its record's fence and the very bytes", () => {
  expect(resume()).toMatchObject({ ok: true, resume: { generation: 0, fence: 2, dueAtMs: record.dueAtMs, elapsedAtMs: record.elapsedAtMs, body } });
});

test.each([
  ["with another body", { body: utf8("other") }, "payloadHash"],
  ["with a malformed context", { context: "{" }, "context"],
  ["without its own fields", { context: resumeContextHeader(record).replace(/,"elapsedAt":"[^"]*"/, "") }, "elapsedAt"],
])("a resume %s is refused by the field's name", (_name, over, problem) => {
  const read = resume(over);
  expect(read.ok ? "" : read.problem).toContain(problem);
});

test("a lineage as long as a start may have still fits a resume", () => {
  const long = "\u0001".repeat(256);
  const largest = { ...lineage, execution: long, node: long, edges: { start: long.slice(0, 150), elapsed: "e", retry: "r" } };
  expect(resume({ context: resumeContextHeader({ ...record, lineage: largest }) }).ok).toBe(true);
});
