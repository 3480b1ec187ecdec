import { describe, expect, it } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import { prepareStart, type StartRequest } from "../../src/client/start.ts";
import { readCommand } from "../../src/protocol/command.ts";
import { commandSubjects, headerNames, replyPrefixDefault } from "../../src/protocol/names.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import type { DurationMs } from "../../src/base/units.ts";

const request: StartRequest = {
  flow: { id: "orders", version: "12" },
  execution: "ex-1",
  node: "wait-3d",
  edges: { start: "e1", elapsed: "e2", retry: "e3" },
  wait: { delayMs: 259_200_000 },
  maxRetries: 3,
  body: new Uint8Array([0, 255, 10]),
};

const prepare = (changed: object = {}, brokerPayloadBytesMax?: number) =>
  prepareStart({ ...request, ...changed }, { brokerPayloadBytesMax }, systemSha256);

const limits = { payloadBytesMax: 1_000_000, delayMsMax: 315_360_000_000 as DurationMs, retriesMax: 1_000, replyPrefix: replyPrefixDefault };

const asRead = ({ message }: ReturnType<typeof prepare>) => {
  const headers = new Map<string, string>([[headerNames.context, message.contextHeader]]);
  return readCommand(
    {
      subject: commandSubjects.start, sequence: 1, timestampNs: BigInt(Date.UTC(2029, 0, 1)) * 1_000_000n, body: message.body,
      headers: { get: (name) => headers.get(name), all: () => [] },
    },
    limits,
    systemSha256,
  );
};

describe("prepareStart", () => {
  const accepted = [
    { name: "a delay with retries", changed: {} },
    { name: "an instant without retries", changed: { wait: { dueAt: new Date("2030-01-01T00:00:00.000Z") }, maxRetries: 0 } },
    { name: "an instant with retries and their wait", changed: { wait: { dueAt: new Date(0) }, retryWait: { delayMs: 5 } } },
    { name: "no retries at all", changed: { maxRetries: undefined, edges: { start: "e1", elapsed: "e2" } } },
    { name: "ids beyond ASCII", changed: { flow: { id: "bestellung ü", version: "1" }, execution: "🙂" } },
    { name: "an empty body", changed: { body: new Uint8Array(0) } },
  ];
  it.each(accepted)("what it makes of $name is a command that workers read with the same hash", ({ changed }) => {
    const prepared = prepare(changed);
    const read = asRead(prepared);
    expect(read).toMatchObject({ ok: true, key: { ref: prepared.message.ref }, input: { snapshotHash: prepared.waiting.snapshotHash, lineage: prepared.waiting.lineage } });
  });

  it("names the point at which the timer waits for the first time", () => {
    expect(prepare().waiting).toMatchObject({ generation: 0, fence: 1, lineage: { execution: "ex-1", edges: { retry: "e3" } } });
  });

  it("gives equal starts one message id, and another to a start with another body", () => {
    expect(prepare().message.messageId).toBe(prepare().message.messageId);
    expect(prepare({ body: new Uint8Array([1]) }).message.messageId).not.toBe(prepare().message.messageId);
  });

  const refused = [
    { name: "a missing node", changed: { node: undefined }, field: "node" },
    { name: "an empty execution", changed: { execution: "" }, field: "execution" },
    { name: "a flow without version", changed: { flow: { id: "orders" } }, field: "flow.version" },
    { name: "retries without their edge", changed: { edges: { start: "e1", elapsed: "e2" } }, field: "edges.retry" },
    { name: "retries after an instant without their wait", changed: { wait: { dueAt: new Date(0) } }, field: "retryWait" },
    { name: "a misspelt field", changed: { maxRetrys: 3 }, field: "maxRetrys" },
    { name: "a delay that is no integer", changed: { wait: { delayMs: 1.5 } }, field: "wait.delayMs" },
    { name: "both kinds of wait", changed: { wait: { delayMs: 1, dueAt: new Date(0) } }, field: "wait" },
    { name: "an invalid date", changed: { wait: { dueAt: new Date(Number.NaN) } }, field: "wait.dueAt" },
    { name: "an instant after 2262", changed: { wait: { dueAt: new Date("2300-01-01T00:00:00.000Z") }, maxRetries: 0 }, field: "wait.dueAt" },
    { name: "half a surrogate pair", changed: { node: "\ud800" }, field: "node" },
    { name: "a body that is text", changed: { body: "{}" }, field: "body" },
  ];
  it.each(refused)("refuses $name before anything is sent and names $field", ({ changed, field }) => {
    const failure = failureOf(() => prepare(changed));
    expect(failure).toMatchObject({ kind: "invalid", code: "REQUEST_INVALID" });
    expect(failure.message.startsWith(`start: ${field} `)).toBe(true);
  });

  it("accepts a body of the limit and refuses one byte more", () => {
    expect(prepare({ body: new Uint8Array(1_000_000) }).message.body.length).toBe(1_000_000);
    expect(failureOf(() => prepare({ body: new Uint8Array(1_000_001) }))).toMatchObject({ kind: "invalid", code: "MESSAGE_TOO_LARGE" });
  });

  it("lowers the limit for a broker that takes less", () => {
    expect(prepare({ body: new Uint8Array(65_536 - 32_768) }, 65_536).message.body.length).toBe(32_768);
    expect(failureOf(() => prepare({ body: new Uint8Array(32_769) }, 65_536))).toMatchObject({ code: "MESSAGE_TOO_LARGE" });
  });
});

function failureOf(action: () => unknown): Failure {
  try {
    action();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}
