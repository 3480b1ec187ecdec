/** Hostile contexts, commands and resumes: what any sender on the command subjects can write. */
import { describe, expect, test, vi } from "vitest";
import { contextBytesMax, flowVersionBytesMax, idBytesMax } from "../../src/base/limits.ts";
import { utf8 } from "../../src/base/bytes.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { readCommand, type CommandLimits } from "../../src/protocol/command.ts";
import { failContextSchema, feedbackContextSchema, readContext, resumeContextSchema, startContextSchema } from "../../src/protocol/context.ts";
import { commandSubjects, headerNames, scheduleSubject, snapshotSubject, stateKey, timerKeyFromSubject } from "../../src/protocol/names.ts";
import { decodeOutcome } from "../../src/protocol/outcome.ts";
import { readResume } from "../../src/protocol/resume.ts";
import { payloadHash } from "../../src/timer/hashes.ts";
import { message } from "../protocol/messages.ts";
import { fc } from "../protocol/property.ts";
import { hash, sha256 } from "../timer/records.ts";
import { forbiddenIds, hostileBytes, hostileIds, hostileText, hostileTexts, hostileValues, mutated, replacedLeaves } from "./corpus.ts";

// Thousands of cases each: a busy machine takes its time.
vi.setConfig({ testTimeout: 60_000 });

const limits: CommandLimits = { payloadBytesMax: 1_000, delayMsMax: 86_400_000 as DurationMs, retriesMax: 10, replyPrefix: "_INBOX.durable_timer" };
const body = utf8("event");
const common = { v: 1, flow: { id: "orders", version: "12" }, execution: "ex-1", node: "n", edges: { start: "e1", elapsed: "e2", retry: "e3" } } as const;
const start = { ...common, wait: { delayMs: 1_000 }, maxRetries: 3, retryWait: { delayMs: 60_000 }, payloadHash: payloadHash(body, sha256) } as const;
const feedback = { ...common, generation: 0, fence: 2, snapshotHash: hash("a"), payloadHash: payloadHash(body, sha256) } as const;
const fail = { ...feedback, failure: { code: "gone", message: "over" } } as const;
const resume = { ...feedback, startedAt: "2027-01-01T00:00:00.000Z", dueAt: "2027-01-01T00:00:01.000Z", elapsedAt: "2027-01-01T00:00:01.001Z" } as const;

type Schema = Parameters<typeof readContext>[1];
const shapes = [
  ["start", start, startContextSchema], ["feedback", feedback, feedbackContextSchema], ["fail", fail, failContextSchema], ["resume", resume, resumeContextSchema],
] as const;

const command = (context: string, over: { readonly subject?: string; readonly body?: Uint8Array; readonly headers?: Readonly<Record<string, string>> } = {}) =>
  readCommand(message({ subject: over.subject ?? commandSubjects.start, body: over.body ?? body, headers: { [headerNames.context]: context, ...over.headers } }), limits, sha256);

/** Written as a careless client would: any value, also those that a context has no words for. */
const written = (context: unknown): string => JSON.stringify(context).replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

describe("a context", () => {
  test.each(shapes)("of a %s names the field, for every field and every hostile value", (_kind, valid, schema) => {
    expect(readContext(written(valid), schema as Schema).ok).toBe(true);
    const wrong = replacedLeaves(valid, hostileValues).filter(([path, , put]) => !isRight(path, put));
    expect(wrong.length).toBeGreaterThan(200);
    for (const [path, context, put] of wrong) {
      const read = readContext(written(context), schema as Schema);
      const said = `${path} = ${JSON.stringify(put)}`;
      expect([said, read.ok]).toEqual([said, false]);
      if (!read.ok) expect([said, isNamed(read.field, path)]).toEqual([said, true]);
    }
  });

  test.each(shapes)("of a %s without one of its fields names it", (_kind, valid, schema) => {
    for (const key of Object.keys(valid)) {
      if (key === "retryWait") continue;
      const { [key]: _left, ...rest } = valid as Record<string, unknown>;
      const read = readContext(written(rest), schema as Schema);
      expect(read.ok ? "accepted" : read.field).toBe(key);
    }
  });

  test.each(hostileTexts)("of %s is refused in few words", (_name, text) => {
    for (const [, , schema] of shapes) {
      const read = readContext(text, schema as Schema);
      expect(read.ok).toBe(false);
      if (!read.ok) expect(read.field.length + read.problem.length).toBeLessThan(contextBytesMax + 500);
    }
  });

  test("mutated anywhere is read or refused by name, and never throws", () => {
    const cases = fc.constantFrom(...shapes).chain(([, valid, schema]) => mutated(written(valid)).map((text) => [text, schema as Schema] as const));
    fc.assert(fc.property(cases, ([text, schema]) => {
      const read = readContext(text, schema);
      expect(read.ok || (read.field.length > 0 && read.problem.length > 0)).toBe(true);
    }), { numRuns: 3_000 });
  });

  test("leaves nothing behind in the prototype of all objects", () => {
    for (const [, text] of hostileTexts) readContext(text, startContextSchema);
    readContext(written(start).replace("{", '{"__proto__":{"isAdmin":true},'), startContextSchema);
    expect(({} as Record<string, unknown>)["isAdmin"]).toBeUndefined();
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});

describe("an id", () => {
  test.each(hostileIds)("%j is text like any other, and its timer's subjects hold no character of it", (id) => {
    const read = command(written({ ...start, flow: { id, version: id.slice(0, 32) }, execution: id, node: id, edges: { start: id.slice(0, 40), elapsed: id.slice(0, 40), retry: "r" } }));
    expect(read.ok ? "" : read.problem).toBe("");
    if (!read.ok) return;
    for (const subject of [snapshotSubject(read.key), scheduleSubject(read.key), `$KV.DURABLE_TIMER_STATE.${stateKey(read.key)}`]) {
      expect(subject).toMatch(/^[A-Za-z0-9_$.~=-]+$/);
      expect(timerKeyFromSubject(subject)).toEqual(read.key);
    }
  });

  test.each(forbiddenIds.map((id) => [`${String(id.length)} characters`, id]))("of %s is refused by its field", (_name, id) => {
    for (const field of ["execution", "node"] as const) expect(problemOf(command(written({ ...start, [field]: id })))).toMatch(id.length > contextBytesMax ? /^context / : new RegExp(`^${field} `));
    expect([idBytesMax, flowVersionBytesMax]).toEqual([256, 128]);
  });

  test("is one of two timers when a dot could have made them one", () => {
    const keys = [["a.b", "c"], ["a", "b.c"], ["a\u0000b", "c"], ["a", "\u0000bc"]].map(([execution, node]) => {
      const read = command(written({ ...start, execution, node }));
      return read.ok ? read.key.ref : problemOf(read);
    });
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe("a delay", () => {
  test.each([
    ["negative", { delayMs: -1 }, "wait"], ["fractional", { delayMs: 0.5 }, "wait"], ["minus zero", '{"delayMs":-0}', "wait"], ["beyond 2^53", '{"delayMs":9007199254740992}', "wait"],
    ["as an exponent", '{"delayMs":1e3}', "wait"], ["as text", { delayMs: "1000" }, "wait"], ["without end", '{"delayMs":Infinity}', "wait"],
    ["beyond the limit", { delayMs: Number.MAX_SAFE_INTEGER }, "wait"],
    ["before 1970", { dueAt: "1969-12-31T23:59:59.999Z" }, "wait"], ["after 2262", { dueAt: "2262-04-12T00:00:00.000Z" }, "wait"], ["in the year 275760", { dueAt: "+275760-09-13T00:00:00.000Z" }, "wait"],
    ["on a leap second", { dueAt: "2027-06-30T23:59:60.000Z" }, "wait"], ["on the 24th hour", { dueAt: "2027-06-30T24:00:00.000Z" }, "wait"],
    ["in another zone", { dueAt: "2027-06-30T23:00:00.000+01:00" }, "wait"], ["of both kinds", { delayMs: 1, dueAt: "2027-01-01T00:00:00.000Z" }, "wait"],
  ])("%s is refused by its field", (_name, wait, field) => {
    const text = typeof wait === "string" ? written(start).replace('{"delayMs":1000}', wait) : written({ ...start, wait });
    expect(problemOf(command(text))).toContain(field);
  });

  test("of the epoch's first instant is in the past and taken", () => {
    expect(command(written({ ...start, wait: { dueAt: "1970-01-01T00:00:00.000Z" } })).ok).toBe(true);
  });
});

describe("a command", () => {
  test("with its context twice is refused: two readers could take one each", () => {
    const [first, second] = [written(start), written({ ...start, node: "other" })];
    const headers = { get: (name: string) => (name === headerNames.context ? first : undefined), all: (name: string) => (name === headerNames.context ? [first, second] : []) };
    expect(readCommand({ ...message({ subject: commandSubjects.start, body }), headers }, limits, sha256)).toMatchObject({ ok: false, code: "context_invalid", problem: expect.stringContaining(headerNames.context) as string });
  });

  test.each([
    ["the hash of other bytes", { ...start, payloadHash: hash("0") }, "payload_hash_mismatch"],
    ["a hash in capitals", { ...start, payloadHash: start.payloadHash.toUpperCase() }, "context_invalid"],
    ["a hash of another kind", { ...start, payloadHash: `sha512:${"0".repeat(128)}` }, "context_invalid"],
    ["a truncated hash", { ...start, payloadHash: start.payloadHash.slice(0, -1) }, "context_invalid"],
    ["no hash", { ...start, payloadHash: undefined }, "context_invalid"],
  ])("with %s is refused", (_name, context, code) => {
    expect(command(written(context))).toMatchObject({ ok: false, code });
  });

  test("beyond its size is refused before its body is hashed", () => {
    const hashed: number[] = [];
    const counting = (bytes: Uint8Array) => { hashed.push(bytes.length); return sha256(bytes); };
    const large = new Uint8Array(limits.payloadBytesMax + 1);
    const read = readCommand(message({ subject: commandSubjects.start, body: large, headers: { [headerNames.context]: written(start) } }), limits, counting);
    expect(read).toMatchObject({ ok: false, code: "payload_too_large" });
    expect(Math.max(0, ...hashed)).toBeLessThan(large.length);
  });

  test.each(["durable_timer.commands.start.v1 ", "durable_timer.commands.START.v1", "durable_timer.commands.>", "", "$JS.API.STREAM.DELETE.KV_DURABLE_TIMER_STATE"])("on subject %j has no verb", (subject) => {
    expect(command(written(start), { subject })).toMatchObject({ ok: false, code: "verb_unknown" });
  });

  test("is answered below the prefix or not at all, whatever subject it names", () => {
    const parts = fc.array(fc.constantFrom("_INBOX", "durable_timer", "*", ">", "", " ", "$JS", "API", "$KV", "x", "\r\n", "ü", "~h"), { maxLength: 8 });
    fc.assert(fc.property(parts.map((tokens) => tokens.join(".")), (replyTo) => {
      const { replyTo: followed } = command(written(start), { headers: { [headerNames.replyTo]: replyTo } });
      expect(followed === undefined || /^_INBOX\.durable_timer(\.[A-Za-z0-9_$~=-]+)+$/.test(followed)).toBe(true);
    }));
  });

  test("of any bytes is taken or rejected with a code", () => {
    const subject = fc.constantFrom(...Object.values(commandSubjects));
    const context = fc.oneof(hostileText, mutated(written(start)), mutated(written(fail)));
    fc.assert(fc.property(subject, context, hostileBytes, (on, text, bytes) => {
      const read = command(text, { subject: on, body: bytes });
      expect(read.ok || (read.code.length > 0 && read.problem.length > 0)).toBe(true);
    }), { numRuns: 2_000 });
  });
});

test("a resume of any header and any bytes is read or refused, and never throws", () => {
  fc.assert(fc.property(fc.oneof(hostileText, mutated(written(resume))), hostileBytes, (context, bytes) => {
    const read = readResume(message({ subject: "s", headers: { [headerNames.context]: context }, body: bytes }), sha256);
    expect(read.ok || read.problem.length > 0).toBe(true);
  }), { numRuns: 1_000 });
});

test("an outcome of any bytes is read or none, and never throws", () => {
  fc.assert(fc.property(fc.oneof(hostileBytes, hostileText.map(utf8), mutated('{"v":1,"outcome":"rejected","code":"stale"}').map(utf8)), (bytes) => {
    const outcome = decodeOutcome(bytes);
    expect(outcome === undefined || outcome.v === 1).toBe(true);
  }), { numRuns: 1_000 });
});

test("a subject of any tokens names a timer that is spelled like it, or none", () => {
  fc.assert(fc.property(fc.oneof(hostileText, mutated(`durable_timer.wake.v1.orders.${"a".repeat(32)}`)), (subject) => {
    const key = timerKeyFromSubject(subject);
    expect(key === undefined || subject.endsWith(`.${key.ref}`)).toBe(true);
  }), { numRuns: 1_000 });
});

const problemOf = (read: ReturnType<typeof readCommand>): string => (read.ok ? "accepted" : `${read.problem}`);

/** Some hostile values are right in some fields. */
function isRight(path: string, put: unknown): boolean {
  if (path === "failure.message") return typeof put === "string";
  const isText = /^(flow\.|execution|node|edges\.|failure\.code)/.test(path);
  if (isText) return typeof put === "string" && put.length <= (path === "flow.version" || path === "failure.code" ? 128 : 256);
  // JSON has one zero.
  return Object.is(put, -0) && /^(wait\.delayMs|retryWait\.delayMs|maxRetries|generation|fence)$/.test(path);
}

/** The field itself, or the one that holds it: a choice is named as a whole. */
function isNamed(field: string, path: string): boolean {
  return field === path || path.startsWith(`${field}.`) || field.startsWith(`${path}.`);
}
