import { describe, expect, test } from "vitest";
import { readContext, failContextSchema, feedbackContextSchema, resumeContextSchema, startContextSchema, writeContext, type StartContext } from "../../src/protocol/context.ts";
import { hash } from "../timer/records.ts";
import { fc } from "./property.ts";

const start: StartContext = {
  v: 1, flow: { id: "orders", version: "12" }, execution: "ex-1", node: "wait-3d", edges: { start: "e1", elapsed: "e2", retry: "e3" },
  wait: { delayMs: 259_200_000 }, maxRetries: 3, retryWait: { delayMs: 60_000 }, payloadHash: hash("b"),
};
const { wait: _wait, maxRetries: _retries, retryWait: _retryWait, ...common } = start;
const feedback = { ...common, generation: 0, fence: 2, snapshotHash: hash("a") };

describe("a start context", () => {
  test("reads back as written", () => {
    expect(readContext(writeContext(start), startContextSchema)).toEqual({ ok: true, context: start });
  });

  test.each([
    ["an unknown key", { ...start, color: "red" }, "color", "not a field"],
    ["an unknown key inside", { ...start, flow: { ...start.flow, name: "x" } }, "flow.name", "not a field"],
    ["another version", { ...start, v: 2 }, "v", "must be 1"],
    ["an empty id", { ...start, node: "" }, "node", "empty"],
    ["an id beyond its bytes", { ...start, execution: "ü".repeat(129) }, "execution", "256 bytes"],
    ["a negative delay", { ...start, wait: { delayMs: -1 } }, "wait.delayMs", ">=0"],
    ["both kinds of wait", { ...start, wait: { delayMs: 1, dueAt: "2027-01-01T00:00:00.000Z" } }, "wait", "delayMs"],
    ["an instant without milliseconds", { ...start, wait: { dueAt: "2027-01-01T00:00:00Z" } }, "wait.dueAt", "must look like"],
    ["an instant that does not exist", { ...start, wait: { dueAt: "2027-02-30T00:00:00.000Z" } }, "wait.dueAt", "real instant"],
    ["an instant after 2262", { ...start, wait: { dueAt: "2262-06-01T00:00:00.000Z" } }, "wait.dueAt", "real instant"],
    ["an instant before 1970", { ...start, wait: { dueAt: "1969-12-31T23:59:59.999Z" } }, "wait.dueAt", "real instant"],
    ["retries without a retry edge", { ...start, edges: { start: "e1", elapsed: "e2" } }, "edges.retry", "required"],
    ["retries of an instant without a retry wait", { ...start, wait: { dueAt: "2027-01-01T00:00:00.000Z" }, retryWait: undefined }, "retryWait", "required"],
    ["a hash in capitals", { ...start, payloadHash: hash("B") }, "payloadHash", "hexadecimal"],
    ["a lineage that leaves no room for what follows", { ...start, execution: "\u0001".repeat(256), node: "\u0001".repeat(256), edges: { start: "\u0001".repeat(256), elapsed: "\u0001".repeat(256), retry: "e" } }, "flow", "together"],
  ])("with %s is refused by the field's name", (_name, context, field, problem) => {
    const result = readContext(writeContext(context as StartContext), startContextSchema);
    expect(result).toMatchObject({ ok: false, field });
    expect(result.ok ? "" : result.problem).toContain(problem);
  });

  test("beyond 8 KiB is refused before it is read", () => {
    expect(readContext(" ".repeat(8_193), startContextSchema)).toMatchObject({ ok: false, field: "context" });
  });
});

test("a fail context needs its failure, and the others refuse one", () => {
  const failure = { code: "gone", message: "" };
  expect(readContext(writeContext({ ...feedback, failure }), failContextSchema).ok).toBe(true);
  expect(readContext(writeContext(feedback as never), failContextSchema)).toMatchObject({ ok: false, field: "failure" });
  expect(readContext(writeContext({ ...feedback, failure }), feedbackContextSchema)).toMatchObject({ ok: false, field: "failure" });
});

test("no text makes a reader throw", () => {
  const schemas = [startContextSchema, feedbackContextSchema, failContextSchema, resumeContextSchema];
  fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), fc.constantFrom(...schemas), (text, schema) => {
    const result = readContext(text, schema as typeof startContextSchema);
    expect(result.ok || result.field.length > 0).toBe(true);
  }));
});
