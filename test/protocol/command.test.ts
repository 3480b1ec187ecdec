import { describe, expect, test } from "vitest";
import { payloadBytesMax } from "../../src/base/limits.ts";
import { utf8 } from "../../src/base/bytes.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { readCommand, type CommandLimits } from "../../src/protocol/command.ts";
import { writeContext, type StartContext } from "../../src/protocol/context.ts";
import { commandSubjects } from "../../src/protocol/names.ts";
import { payloadHash } from "../../src/timer/hashes.ts";
import { hash, sha256 } from "../timer/records.ts";
import { message } from "./messages.ts";
import { fc } from "./property.ts";

const limits: CommandLimits = { payloadBytesMax: 100, delayMsMax: 86_400_000 as DurationMs, retriesMax: 10, replyPrefix: "_INBOX.durable_timer" };
const body = utf8('{"amount":9007199254740993}');
const start: StartContext = {
  v: 1, flow: { id: "orders", version: "12" }, execution: "ex-1", node: "n", edges: { start: "e1", elapsed: "e2" },
  wait: { delayMs: 1_000 }, maxRetries: 0, payloadHash: payloadHash(body, sha256),
};

const read = (context: unknown, over: { readonly body?: Uint8Array; readonly subject?: string; readonly replyTo?: string; readonly timestampNs?: bigint } = {}) =>
  readCommand(message({
    subject: over.subject ?? commandSubjects.start, body: over.body ?? body, timestampNs: over.timestampNs ?? 1_800_000_000_000_000_001n,
    headers: {
      ...(context === undefined ? {} : { "Durable-Timer-Context": typeof context === "string" ? context : writeContext(context as StartContext) }),
      ...(over.replyTo === undefined ? {} : { "Durable-Timer-Reply-To": over.replyTo }),
    },
  }), limits, sha256);

describe("a start", () => {
  test("keeps its body byte for byte and rounds its timestamp up to a millisecond", () => {
    const command = read(start);
    expect(command).toMatchObject({ ok: true, input: { kind: "start", receivedAtMs: 1_800_000_000_001, payloadBytes: body.length } });
    expect(command.ok && command.body).toBe(body);
  });

  test("defaults its retry wait to its delay, in meaning and so in hash", () => {
    const retrying = { ...start, maxRetries: 2, edges: { ...start.edges, retry: "e3" } };
    const [implied, spelled] = [read(retrying), read({ ...retrying, retryWait: { delayMs: 1_000 } })];
    expect(implied.ok && implied.input.kind === "start" && implied.input.retryDelayMs).toBe(1_000);
    expect(implied.ok && spelled.ok && implied.input.snapshotHash === spelled.input.snapshotHash).toBe(true);
  });

  test.each([
    ["without a context", undefined, {}, "context_missing", "Durable-Timer-Context"],
    ["with a malformed context", "{", {}, "context_invalid", "context"],
    ["whose body is not what it hashed", start, { body: utf8("other") }, "payload_hash_mismatch", "payloadHash"],
    ["one byte too large", start, { body: new Uint8Array(101) }, "payload_too_large", "101"],
    ["with a delay beyond the limit", { ...start, wait: { delayMs: 86_400_001 } }, {}, "delay_too_long", "86400001"],
    ["due beyond the limit", { ...start, wait: { dueAt: "2030-01-01T00:00:00.000Z" } }, {}, "delay_too_long", "ahead"],
    ["with too many retries", { ...start, maxRetries: 11, edges: { ...start.edges, retry: "e3" } }, {}, "retries_too_many", "11"],
    ["on a subject that is no command's", start, { subject: "durable_timer.commands.cancel.v1" }, "verb_unknown", "subject"],
  ])("%s is rejected with a code and a remedy", (_name, context, over, code, problem) => {
    const command = read(context, over);
    expect(command).toMatchObject({ ok: false, code });
    expect(command.ok ? "" : command.problem).toContain(problem);
  });

  test("of exactly the largest size is read", () => {
    const largest = new Uint8Array(100).fill(255);
    expect(read({ ...start, payloadHash: payloadHash(largest, sha256) }, { body: largest }).ok).toBe(true);
    expect(payloadBytesMax).toBe(1_000_000);
  });

  test.each([
    ["below the prefix is followed", "_INBOX.durable_timer.abc.1", "_INBOX.durable_timer.abc.1"],
    ["elsewhere is dropped", "$KV.DURABLE_TIMER_STATE.t.x.y", undefined],
    ["that only begins like the prefix is dropped", "_INBOX.durable_timerX.a", undefined],
    ["with a wildcard is dropped", "_INBOX.durable_timer.*", undefined],
    ["that is the prefix itself is dropped", "_INBOX.durable_timer", undefined],
    ["beyond its length is dropped", `_INBOX.durable_timer.${"a".repeat(300)}`, undefined],
  ])("reply subject %s", (_name, replyTo, want) => {
    const command = read(start, { replyTo });
    expect(command.replyTo).toBe(want);
  });
});

describe("feedback", () => {
  const { wait: _wait, maxRetries: _retries, ...common } = start;
  const context = { ...common, generation: 0, fence: 2, snapshotHash: hash("a"), payloadHash: payloadHash(new Uint8Array(), sha256) };

  test("without a body hashes the empty one", () => {
    const command = read(context, { subject: commandSubjects.complete, body: new Uint8Array() });
    expect(command).toMatchObject({ ok: true, input: { kind: "feedback", verb: "complete", generation: 0, fence: 2 } });
  });

  test("has another receipt for another verb, fence, body or failure", () => {
    const receiptOf = (over: object, subject: string, ofBody = new Uint8Array()) => {
      const command = read({ ...context, payloadHash: payloadHash(ofBody, sha256), ...over }, { subject, body: ofBody });
      return command.ok && command.input.kind === "feedback" ? command.input.receiptHash : "unread";
    };
    const receipts = [
      receiptOf({}, commandSubjects.complete), receiptOf({}, commandSubjects.retry), receiptOf({ fence: 4 }, commandSubjects.complete),
      receiptOf({}, commandSubjects.complete, utf8("x")), receiptOf({ failure: { code: "a", message: "bc" } }, commandSubjects.fail),
      receiptOf({ failure: { code: "ab", message: "c" } }, commandSubjects.fail),
    ];
    expect(new Set(receipts).size).toBe(receipts.length);
    expect(receipts).not.toContain("unread");
  });
});

test("no message makes the reader throw", () => {
  const subject = fc.constantFrom(...Object.values(commandSubjects));
  const header = fc.oneof(fc.string(), fc.json(), fc.constant(writeContext(start)));
  fc.assert(fc.property(subject, header, fc.uint8Array({ maxLength: 200 }), (on, context, bytes) => {
    const command = read(context, { subject: on, body: bytes });
    expect(command.ok || command.problem.length > 0).toBe(true);
  }));
});
