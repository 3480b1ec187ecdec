import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { payloadHash } from "../../src/timer/hashes.ts";
import { timerKey } from "../../src/timer/identity.ts";
import { scheduleSubject } from "../../src/protocol/names.ts";
import { feedbackInput } from "../../src/protocol/command.ts";
import { writeContext } from "../../src/protocol/context.ts";
import { commandSubjects, headerNames } from "../../src/protocol/names.ts";
import { sha256 } from "../timer/records.ts";
import { openWorld, request, told, until, type StoredResume, type World } from "./world.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld({ ackWaitMs: 2_000 });
  await world.startWorker();
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const resumesOf = async (execution: string): Promise<readonly StoredResume[]> => (await world.resumes()).filter(({ lineage }) => lineage.execution === execution);
const resumeOf = (execution: string, generation = 0): Promise<StoredResume> =>
  until(`the resume of ${execution}`, async () => (await resumesOf(execution)).find((resume) => resume.generation === generation));
const outcome = { awaitOutcome: true } as const;

describe("a timer on a real broker", () => {
  test("waits, resumes not before it is due with the very bytes, retries, completes and is archived", async () => {
    const body = Buffer.from('{"b":9007199254740993,"a":1}');
    const started = await world.client.start(request("whole-life", { body }), outcome);
    expect(started.outcome).toMatchObject({ kind: "accepted", state: "waiting", generation: 0, fence: 1 });
    const first = await resumeOf("whole-life");
    expect(first.storedAtMs).toBeGreaterThanOrEqual(first.dueAtMs);
    expect(Buffer.from(first.body)).toEqual(body);
    expect((await world.client.retry(first)).outcome).toMatchObject({ kind: "accepted", state: "waiting", generation: 1, fence: 3 });
    const second = await resumeOf("whole-life", 1);
    expect(second).toMatchObject({ fence: 4, snapshotHash: first.snapshotHash });
    expect((await world.client.complete(second)).outcome).toMatchObject({ kind: "accepted", state: "completed", fence: 5 });
    expect((await world.archived()).find(({ lineage }) => lineage.execution === "whole-life")).toMatchObject({ outcome: "completed", generation: 1, fence: 5 });
    expect((await world.records()).some(({ lineage }) => lineage.execution === "whole-life")).toBe(false);
  });

  test("that is started twice waits once", async () => {
    const again = request("twice", { wait: { delayMs: 60_000 } });
    expect((await world.client.start(again, outcome)).outcome).toMatchObject({ kind: "accepted" });
    expect((await world.client.start(again, outcome)).outcome).toMatchObject({ kind: "duplicate", state: "waiting", fence: 1 });
    expect((await world.records()).filter(({ lineage }) => lineage.execution === "twice")).toHaveLength(1);
  });

  test("that is started again with another payload keeps the first", async () => {
    await world.client.start(request("conflict", { wait: { delayMs: 60_000 } }), outcome);
    const other = await world.client.start(request("conflict", { wait: { delayMs: 60_000 }, body: Buffer.from("other") }), outcome);
    expect(other.outcome).toMatchObject({ kind: "rejected", code: "start_conflict" });
    const [kept] = (await world.records()).filter(({ lineage }) => lineage.execution === "conflict");
    expect(kept?.payloadHash).toBe(payloadHash(Buffer.from('{"execution":"conflict"}'), sha256));
  });

  test("that is failed while waiting leaves no schedule behind", async () => {
    const started = await world.client.start(request("early-end", { wait: { delayMs: 60_000 } }), outcome);
    expect((await world.client.fail(started.waiting, { code: "cancelled", message: "not needed" })).outcome).toMatchObject({ kind: "accepted", state: "failed" });
    const subject = scheduleSubject(timerKey(started.waiting.lineage, sha256));
    expect(await world.broker.jetStream.readLast({ stream: "DURABLE_TIMER_SCHEDULES", subjects: [subject], from: "leader" })).toEqual([{ kind: "absent" }]);
    expect((await world.archived()).find(({ lineage }) => lineage.execution === "early-end")).toMatchObject({ outcome: "failed", failure: { code: "cancelled" } });
  });

  test("that is retried beyond its limit ends as failed", async () => {
    await world.client.start(request("limit", { maxRetries: 1, wait: { delayMs: 0 } }), outcome);
    await world.client.retry(await resumeOf("limit"));
    expect((await world.client.retry(await resumeOf("limit", 1))).outcome).toMatchObject({ kind: "accepted", code: "max_retries_exceeded", state: "failed" });
  });

  test("knows the second copy of a retry after its wake, and refuses older feedback", async () => {
    await world.client.start(request("receipts", { wait: { delayMs: 0 } }), outcome);
    const first = await resumeOf("receipts");
    await world.client.retry(first);
    await resumeOf("receipts", 1);
    // Around the message id, as a sender does after the duplicate window.
    const { lineage, generation, fence, snapshotHash } = first;
    const context = { v: 1 as const, ...lineage, generation, fence, snapshotHash, payloadHash: payloadHash(new Uint8Array(), sha256) };
    expect(feedbackInput(context, { verb: "retry", receivedAtNs: 0n }, sha256).fence).toBe(fence);
    const replyTo = "_INBOX.durable_timer.receipts";
    const answers: unknown[] = [];
    const { connect } = await import("@nats-io/transport-node");
    const listener = await connect({ servers: [...world.servers.urls] });
    listener.subscribe(replyTo, { callback: (_error, message) => { answers.push(message.json()); } });
    await listener.flush();
    await world.broker.jetStream.publish([{ subject: commandSubjects.retry, headers: [[headerNames.context, writeContext(context)], [headerNames.replyTo, replyTo]], body: new Uint8Array() }]);
    await until("an answer", () => (answers.length > 0 ? true : undefined));
    expect(answers).toMatchObject([{ outcome: "duplicate", generation: 1 }]);
    await listener.close();
    expect((await world.client.complete(first)).outcome).toMatchObject({ kind: "rejected", code: "stale" });
    expect((await resumesOf("receipts")).map(({ generation: at }) => at)).toEqual([0, 1]);
  });

  test("refuses feedback for a timer that never was", async () => {
    const { waiting } = await world.client.start(request("known", { wait: { delayMs: 60_000 } }), outcome);
    const unknown = { ...waiting, lineage: { ...waiting.lineage, execution: "never" } };
    expect((await world.client.complete(unknown)).outcome).toMatchObject({ kind: "rejected", code: "unknown_timer" });
  });

  test("is not resumed by a wake that comes before its time", async () => {
    const started = await world.client.start(request("not-yet", { wait: { delayMs: 2_500 } }), outcome);
    const key = timerKey(started.waiting.lineage, sha256);
    const subject = scheduleSubject(key);
    const [schedule] = await world.broker.jetStream.readLast({ stream: "DURABLE_TIMER_SCHEDULES", subjects: [subject], from: "leader" });
    if (schedule?.kind !== "found") throw new Error("a schedule");
    const { message } = schedule;
    // The same schedule, aimed at now: its wake carries a due time that has come, while the record's has not.
    await world.broker.jetStream.publish([{
      subject, headers: [[headerNames.fence, message.headers.get(headerNames.fence) ?? ""], [headerNames.dueAt, String(Date.now() - 1_000)]], body: new Uint8Array(),
      expectedLastSubjectSequence: message.sequence, schedule: { fireAtMs: Date.now() as never, target: subject.replace(".schedule.", ".wake.") },
    }]);
    const resume = await resumeOf("not-yet");
    expect(resume.storedAtMs).toBeGreaterThanOrEqual(resume.dueAtMs);
    expect(resume.dueAtMs - resume.startedAtMs).toBe(2_500);
  });
});

test.each(["durable_timer.commands.start.v1", "durable_timer.commands.fail.v1"])("a sender on %s cannot remove what others sent before it", async (subject) => {
  for (const rollup of ["sub", "all"]) {
    const outcome = await world.broker.jetStream.publish([{ subject, headers: [["Nats-Rollup", rollup]], body: new Uint8Array() }]);
    expect(outcome).toMatchObject([{ kind: "refused" }]);
  }
});

describe("payloads", () => {
  const limit = 1_000_000;
  test.each([
    ["JSON with 64-bit integers and its own key order", Buffer.from('{"z":18446744073709551615,"a":{"b":1.50}}')],
    ["bytes that are no UTF-8", Buffer.from([0xff, 0xfe, 0, 0xc3, 0x28, 10, 13])],
    ["nothing", Buffer.alloc(0)],
    ["the largest accepted size", Buffer.alloc(limit, 0xa5)],
  ])("of %s come back identical", async (name, body) => {
    await world.client.start(request(name, { wait: { delayMs: 0 }, body }), outcome);
    const resume = await resumeOf(name);
    expect(Buffer.compare(Buffer.from(resume.body), body)).toBe(0);
  });

  test("of one byte more are refused before anything is written", async () => {
    const before = told(await world.broker.jetStream.streamState("DURABLE_TIMER_SNAPSHOTS")).lastSequence;
    const too = Buffer.alloc(limit + 1);
    const sent = await world.client.start(request("too-large", { body: too }), outcome).catch((error: unknown) => error);
    expect(sent).toSatisfy((result: { code?: string; outcome?: { code?: string } }) => result.code === "MESSAGE_TOO_LARGE" || result.outcome?.code === "payload_too_large");
    expect(told(await world.broker.jetStream.streamState("DURABLE_TIMER_SNAPSHOTS")).lastSequence).toBe(before);
  });
});
