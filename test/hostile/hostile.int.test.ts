/**
 * Hostile messages on real servers, beside timers that go their way: each hostile one is refused by the broker or rejected
 * with its code, no worker dies, and nothing of it stays but a bounded number of beginnings of contexts.
 */
import { connect, type MsgHdrs, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { utf8 } from "../../src/base/bytes.ts";
import { contextBytesMax, rejectedSlotCount } from "../../src/base/limits.ts";
import { writeContext, type StartContext } from "../../src/protocol/context.ts";
import { commandSubjects, headerNames, scheduleSubject, stateKey, stateSubject, wakeSubject } from "../../src/protocol/names.ts";
import { decodeOutcome, type Outcome } from "../../src/protocol/outcome.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { payloadHash } from "../../src/timer/hashes.ts";
import { timerKey } from "../../src/timer/identity.ts";
import { openWorld, request, told, until, type World, type WorkerProcess } from "../worker/world.ts";
import { hostileTexts } from "./corpus.ts";

let world: World;
let sender: NatsConnection;
let worker: WorkerProcess;
const outcomes = new Map<string, Outcome>();
const replyPrefix = "_INBOX.durable_timer.hostile";

beforeAll(async () => {
  world = await openWorld();
  worker = await world.spawnWorker();
  sender = await connect({ servers: [...world.servers.urls] });
  sender.subscribe(`${replyPrefix}.>`, { callback: (_error, message) => {
    const outcome = decodeOutcome(message.data);
    if (outcome !== undefined) outcomes.set(message.subject, outcome);
  } });
});
afterAll(async () => {
  await sender.close();
  await world[Symbol.asyncDispose]();
});

type Sent = { readonly subject?: string; readonly head?: string; readonly body?: Uint8Array; readonly status?: string };

/** Raw header lines, one byte per character: a library would refuse what a hostile sender writes. */
const headers = (head: string, status = ""): MsgHdrs => ({ encode: () => Buffer.from(`NATS/1.0${status}\r\n${head}\r\n`, "latin1") }) as unknown as MsgHdrs;

async function publish({ subject = commandSubjects.start, head = "", body = new Uint8Array(), status }: Sent): Promise<{ readonly seq?: number; readonly error?: { readonly err_code: number } }> {
  const answer = await sender.request(subject, body, { headers: headers(head, status), timeout: 30_000 });
  return answer.json();
}

const body = utf8("event");
const edges = { start: "e1", elapsed: "e2" };
const valid = (execution: string, over: Partial<StartContext> = {}): StartContext => ({
  v: 1, flow: { id: "hostile", version: "1" }, execution, node: "n", edges, wait: { delayMs: 3_600_000 }, maxRetries: 0, payloadHash: payloadHash(body, systemSha256), ...over,
});
const contextLine = (context: string): string => `${headerNames.context}: ${context}\r\n`;
const started = (execution: string): string => contextLine(writeContext(valid(execution)));

describe("a hostile command", () => {
  // Line breaks of the text would end its header: the rest of it are headers of their own, or none.
  const texts = hostileTexts.map(([name, text]) => ({ name: `a context of ${name}`, code: "context_invalid", sent: { head: contextLine(text.slice(0, 20_000).replace(/[\r\n]/g, " ")) } }));
  const feedback = { v: 1, flow: { id: "hostile", version: "1" }, execution: "nobody", node: "n", edges: { start: "e1", elapsed: "e2" }, generation: 0, fence: 2, snapshotHash: `sha256:${"0".repeat(64)}`, payloadHash: payloadHash(body, systemSha256) };
  const rows: readonly { readonly name: string; readonly code: string; readonly sent: Sent }[] = [
    ...texts,
    { name: "no context", code: "context_missing", sent: {} },
    { name: "a context under a name in small letters", code: "context_missing", sent: { head: started("small").toLowerCase() } },
    { name: "two contexts", code: "context_invalid", sent: { head: started("one") + started("two"), body } },
    { name: "a context beyond its size", code: "context_invalid", sent: { head: contextLine(`{"v":1,"x":"${"x".repeat(contextBytesMax)}"}`), body } },
    { name: "bytes that are no UTF-8 in its context", code: "context_invalid", sent: { head: `${headerNames.context}: {"v":1,"node":"\u00ff\u00fe"}\r\n` } },
    { name: "the hash of another body", code: "payload_hash_mismatch", sent: { head: started("hash"), body: utf8("other") } },
    { name: "the status line of a server", code: "payload_hash_mismatch", sent: { head: started("status"), status: " 409 Consumer Deleted", body: utf8("other") } },
    { name: "an absurd delay", code: "delay_too_long", sent: { head: contextLine(writeContext(valid("absurd", { wait: { delayMs: Number.MAX_SAFE_INTEGER } }))), body } },
    { name: "the operation of a KV client", code: "context_missing", sent: { head: "KV-Operation: PURGE\r\n" } },
    { name: "the marker of a server", code: "context_missing", sent: { head: "Nats-Marker-Reason: MaxAge\r\n" } },
    { name: "a stamp that looks like a wake's", code: "context_missing", sent: { head: `${headerNames.fence}: 0:1\r\n${headerNames.dueAt}: 1\r\n` } },
    { name: "sixty thousand bytes of headers", code: "context_missing", sent: { head: `Junk: ${"x".repeat(60_000)}\r\n` } },
    { name: "a thousand headers", code: "context_missing", sent: { head: "A: b\r\n".repeat(1_000) } },
    { name: "feedback for a timer that nobody knows", code: "unknown_timer", sent: { subject: commandSubjects.complete, head: contextLine(JSON.stringify(feedback)), body } },
    { name: "feedback with the context of a start", code: "context_invalid", sent: { subject: commandSubjects.retry, head: started("feedback"), body } },
    { name: "a fail without its failure", code: "context_invalid", sent: { subject: commandSubjects.fail, head: contextLine(JSON.stringify(feedback)), body } },
  ];

  test.each(rows)("with $name is rejected: $code", async ({ name, code, sent }) => {
    const replyTo = `${replyPrefix}.${Buffer.from(name).toString("hex").slice(0, 100)}`;
    const ack = await publish({ ...sent, head: `${sent.head ?? ""}${headerNames.replyTo}: ${replyTo}\r\n` });
    expect(ack.error).toBeUndefined();
    expect(await until(`an outcome of ${name}`, () => outcomes.get(replyTo))).toMatchObject({ outcome: "rejected", code });
  });

  test.each([
    ["rolls up its subject", "Nats-Rollup: sub\r\n"], ["rolls up its stream", "Nats-Rollup: all\r\n"], ["expires", "Nats-TTL: 1s\r\n"],
    ["is a schedule", "Nats-Schedule: @at 2026-01-01T00:00:00Z\r\nNats-Schedule-Target: durable_timer.commands.fail.v1\r\n"],
    ["says that it was one", "Nats-Scheduler: x\r\nNats-Schedule-Next: purge\r\n"], ["counts", "Nats-Incr: +1\r\n"], ["expects another stream", "Nats-Expected-Stream: KV_DURABLE_TIMER_STATE\r\n"],
    ["expects another sequence", "Nats-Expected-Last-Sequence: 999999999\r\n"], ["expects no sequence", "Nats-Expected-Last-Sequence: -1\r\n"],
    ["expects another message id", "Nats-Expected-Last-Msg-Id: nobody\r\n"],
  ])("that %s is refused by the broker and not stored", async (_name, head) => {
    for (const subject of [commandSubjects.start, commandSubjects.complete]) expect((await publish({ subject, head: head + started("refused"), body })).error?.err_code).toBeGreaterThan(10_000);
  });

  test("that names a subject of the product for its answer is not answered there", async () => {
    const key = timerKey({ ...valid("evil"), edges }, systemSha256);
    for (const target of [stateSubject(stateKey(key)), wakeSubject(key), "$JS.API.STREAM.DELETE.DURABLE_TIMER_RESUMES", "_INBOX.durable_timer.*", "_INBOX.durable_timer.>"]) {
      await publish({ head: `${headerNames.replyTo}: ${target}\r\n` });
    }
    await quiet();
    expect((await world.messages("state", stateSubject(stateKey(key)))).length).toBe(0);
    expect(told(await world.broker.jetStream.streamState("DURABLE_TIMER_RESUMES")).name).toBe("DURABLE_TIMER_RESUMES");
  });

  test("whose acknowledgement the broker is told to put into a stream of ours harms nobody", async () => {
    const future = valid("future");
    const key = timerKey({ ...future, edges }, systemSha256);
    const targets = [commandSubjects.start, commandSubjects.fail, wakeSubject(key), scheduleSubject(key), "$JS.API.STREAM.PURGE.DURABLE_TIMER_COMMANDS", "$JS.API.CONSUMER.DELETE.DURABLE_TIMER_COMMANDS.DURABLE_TIMER_COMMAND_SERVICE"];
    for (const target of targets) sender.publish(commandSubjects.start, utf8("{}"), { reply: target, headers: headers("") });
    await sender.flush();
    await quiet();
    // The stray message on its schedule's subject is replaced: the timer itself is none the worse.
    expect((await world.client.start({ ...request("future"), flow: future.flow, node: future.node, edges, maxRetries: 0, wait: { delayMs: 500 }, body }, { awaitOutcome: true })).outcome).toMatchObject({ kind: "accepted" });
    await until("its resume", async () => (await world.resumes()).find(({ lineage }) => lineage.execution === "future"));
  });
});

test("feedback with the context of another lineage changes nothing", async () => {
  const { waiting } = await world.client.start(request("lineage", { wait: { delayMs: 3_600_000 } }), { awaitOutcome: true });
  const failWith = (over: Partial<typeof waiting>) => world.client.fail({ ...waiting, ...over }, { code: "gone", message: "" });
  const { lineage } = waiting;
  expect((await failWith({ lineage: { ...lineage, edges: { ...lineage.edges, elapsed: "other" } } })).outcome).toMatchObject({ kind: "rejected", code: "lineage_mismatch" });
  expect((await failWith({ snapshotHash: `sha256:${"0".repeat(64)}` })).outcome).toMatchObject({ kind: "rejected", code: "lineage_mismatch" });
  expect((await failWith({ lineage: { ...lineage, node: "other" } })).outcome).toMatchObject({ kind: "rejected", code: "unknown_timer" });
  expect((await failWith({ fence: 7 })).outcome).toMatchObject({ kind: "rejected", code: "unknown_fence" });
  expect((await failWith({})).outcome).toMatchObject({ kind: "accepted" });
});

test("a flood of invalid commands leaves a bounded number of beginnings, and every timer beside it ends", async () => {
  const names = Array.from({ length: 20 }, (_, index) => `beside-${String(index)}`);
  const flood = (async () => {
    const junk = "\u0001".repeat(3_000);
    for (let index = 0; index < 6 * rejectedSlotCount; index += 1) {
      sender.publish(index % 2 === 0 ? commandSubjects.start : commandSubjects.complete, utf8(String(index)), { headers: headers(contextLine(`{"v":"${junk}"}`)) });
      if (index % 200 === 199) await sender.flush();
    }
  })();
  await Promise.all(names.map((name) => world.client.start(request(name, { wait: { delayMs: 200 } }), { awaitOutcome: true, outcomeTimeoutMs: 60_000 })));
  await flood;
  await Promise.all(names.map(async (name) => {
    const resume = await until(`the resume of ${name}`, async () => (await world.resumes()).find(({ lineage }) => lineage.execution === name), 60_000);
    expect((await world.client.complete(resume)).outcome).toMatchObject({ kind: "accepted" });
  }));
  await quiet();
  expect((await world.archived()).filter((record) => names.includes(record.lineage.execution))).toHaveLength(names.length);
  const kept = await world.messages("terminals", "durable_timer.terminal.v1.~rejected.context_invalid.*");
  expect(kept.length).toBeGreaterThan(0);
  expect(kept.length).toBeLessThanOrEqual(rejectedSlotCount);
  expect(Math.max(...kept.map(({ body: bytes }) => bytes.length))).toBeLessThan(16_384);
  expect(worker.child.exitCode).toBeNull();
  expect(worker.lines.filter((line) => line.includes("for a bug"))).toEqual([]);
});

/** Nothing waits in the streams that senders write to. */
async function quiet(): Promise<void> {
  await until("empty queues", async () => {
    const [commands, feedback] = await Promise.all(["DURABLE_TIMER_COMMANDS", "DURABLE_TIMER_FEEDBACK"].map(async (stream) => told(await world.broker.jetStream.streamState(stream)).messages));
    return commands === 0 && feedback === 0 ? true : undefined;
  }, 60_000);
}
