// The client against a real server. There is no worker here: the tests read what was stored, and play the worker's answers.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connectTimers, type InvalidResume, type ResumeDelivery, type StartRequest, type TimerClient } from "../../src/client/index.ts";
import type { DurationMs } from "../../src/base/units.ts";
import type { Delivered } from "../../src/nats/core/jetstream.ts";
import { readCommand, type Command } from "../../src/protocol/command.ts";
import { consumerNames, headerNames, replyPrefixDefault, resumeSubject, streamNames } from "../../src/protocol/names.ts";
import { resumeContextHeader } from "../../src/protocol/resume.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { payloadHash } from "../../src/timer/hashes.ts";
import type { ElapsedRecord } from "../../src/timer/record.ts";
import { must, provision, type Provisioned } from "./provisioned.ts";

let bed: Provisioned;
let timers: TimerClient;
let execution = 0;

const body = new Uint8Array([0, 255, 1, 254]);
const request = (changed: Partial<StartRequest> = {}): StartRequest => ({
  flow: { id: "orders", version: "1" }, execution: `ex-${String(execution)}`, node: "n", edges: { start: "a", elapsed: "b", retry: "c" },
  wait: { delayMs: 60_000 }, maxRetries: 1, body, ...changed,
});

beforeAll(async () => {
  bed = await provision();
  timers = await bed.connect();
});
afterAll(async () => bed[Symbol.asyncDispose]());
beforeEach(() => { execution += 1; });

describe("a client on a real server", () => {
  it("stores a start as the contract says: context in the header, the body untouched, no reply subject unless awaited", async () => {
    const receipt = await timers.start(request());
    const [delivered] = await takeCommands("start", 1);
    const command = commandIn(delivered);
    delivered?.settle({ kind: "ack" });
    expect(receipt).toMatchObject({ ref: command.key.ref, sequence: delivered?.message.sequence, duplicate: false });
    expect(receipt).not.toHaveProperty("outcome");
    expect(command.input).toMatchObject({ kind: "start", snapshotHash: receipt.snapshotHash, maxRetries: 1, retryDelayMs: 60_000 });
    expect([...command.body]).toEqual([...body]);
    expect(command.replyTo).toBeUndefined();
  });

  it("is told the outcome that a worker sends to its reply subject", async () => {
    const [receipt] = await Promise.all([timers.start(request(), { awaitOutcome: true }), answerNext("start", '{"v":1,"outcome":"accepted","generation":0,"fence":1}')]);
    expect(receipt).toMatchObject({ duplicate: false, outcome: { kind: "accepted", generation: 0, fence: 1 } });
  });

  it("has the second copy of a start swallowed by the broker, and sends it once more when its outcome is awaited", async () => {
    const first = await timers.start(request());
    const second = await timers.start(request());
    expect(second).toMatchObject({ duplicate: true, sequence: first.sequence, ref: first.ref });
    const third = timers.start(request(), { awaitOutcome: true });
    const commands = await takeCommands("start", 2);
    for (const delivered of commands) {
      const { replyTo } = commandIn(delivered);
      if (replyTo !== undefined) answer(replyTo, '{"v":1,"outcome":"duplicate"}');
      delivered.settle({ kind: "ack" });
    }
    await expect(third).resolves.toMatchObject({ duplicate: true, sequence: first.sequence, outcome: { kind: "duplicate" } });
  });

  it("says unknown when nobody answers in time", async () => {
    const { waiting } = await timers.start(request());
    const receipt = await timers.complete(waiting, { outcomeTimeoutMs: 50 });
    expect(receipt.outcome).toEqual({ kind: "unknown" });
  });

  it("sends feedback that a worker reads, and is told why it was rejected", async () => {
    await drain("feedback");
    const { waiting, ref } = await timers.start(request());
    const failing = timers.fail(waiting, { code: "cancelled", message: "by the customer" });
    const [delivered] = await takeCommands("feedback", 1);
    const command = commandIn(delivered);
    expect(command).toMatchObject({ key: { ref }, input: { kind: "feedback", verb: "fail", generation: 0, fence: 1, failure: { code: "cancelled", message: "by the customer" } } });
    answer(command.replyTo ?? "", '{"v":1,"outcome":"rejected","code":"unknown_timer"}');
    delivered?.settle({ kind: "ack" });
    await expect(failing).resolves.toMatchObject({ outcome: { kind: "rejected", code: "unknown_timer" } });
  });

  it("iterates resumes with the bytes that were published, and acknowledges them for good", async () => {
    await publishResume(body, 1);
    const [delivery] = await takeResumes(1);
    expect([...(delivery?.resume.body ?? [])]).toEqual([...body]);
    expect(delivery?.resume).toMatchObject({ generation: 1, fence: 3 });
    expect(delivery?.publishedAtMs).toBeGreaterThan(Date.UTC(2020, 0, 1));
    expect(delivery?.ack()).toBe(true);
    await expectResumesLeft(0);
  });

  it("gets a resume again that it handed back", async () => {
    await publishResume(body, 2);
    const [first] = await takeResumes(1);
    expect(first?.nak(0)).toBe(true);
    const [second] = await takeResumes(1);
    expect(second?.deliveryCount).toBe(2);
    expect(second?.ack()).toBe(true);
    await expectResumesLeft(0);
  });

  it("removes an invalid resume, reports it, and goes on", async () => {
    const invalid: InvalidResume[] = [];
    await bed.broker.jetStream.publish([{ subject: resumeSubject, headers: [[headerNames.context, "{}"]], body }]);
    await publishResume(body, 3);
    const [delivery] = await takeResumes(1, (report) => { invalid.push(report); });
    expect(invalid).toEqual([expect.objectContaining({ subject: resumeSubject, contextHeader: "{}" })]);
    delivery?.ack();
    await expectResumesLeft(0);
  });

  it("ends its iterations when it closes, and rejects commands from then on", async () => {
    const client = await bed.connect();
    const ended = collect(client.resumes());
    await client.close();
    await expect(ended).resolves.toEqual([]);
    await expect(client.start(request())).rejects.toMatchObject({ code: "STOPPED" });
  });
});

describe("a client whose broker", () => {
  it("is full is refused with a capacity failure, and nothing is stored", async () => {
    await using full = await provision({ spec: "{topology: {streams: {commands: {maxBytes: 2Mi}}}}" });
    const client = await full.connect();
    const big = new Uint8Array(900_000);
    const starts = Array.from({ length: 4 }, (_, index) => client.start(request({ execution: `full-${String(index)}`, body: big })));
    const results = await Promise.allSettled(starts);
    const stored = results.filter(({ status }) => status === "fulfilled").length;
    expect(stored).toBe(2);
    for (const result of results.filter(({ status }) => status === "rejected")) {
      expect(result).toMatchObject({ reason: { kind: "capacity", code: "STREAM_FULL" } });
    }
    expect(must(await full.broker.jetStream.streamState(streamNames.commands)).messages).toBe(stored);
  });

  it("takes smaller messages than the default refuses larger ones before they are sent", async () => {
    await using small = await provision({ maxPayload: 128 * 1024 });
    const client = await small.connect();
    await expect(client.start(request({ body: new Uint8Array(96 * 1024) }))).resolves.toMatchObject({ duplicate: false });
    await expect(client.start(request({ execution: "other", body: new Uint8Array(96 * 1024 + 1) }))).rejects.toMatchObject({ kind: "invalid", code: "MESSAGE_TOO_LARGE" });
  });

  it("crashes and comes back goes on by itself: commands in flight are stored once, iterations continue", async () => {
    await using crashing = await provision({ syncInterval: "always" });
    const client = await crashing.connect();
    await client.start(request({ execution: "before" }));
    const next = client.resumes()[Symbol.asyncIterator]().next();
    const [server] = crashing.servers.servers;
    await server?.kill();
    const during = client.start(request({ execution: "during" }));
    await server?.start();
    await expect(during).resolves.toMatchObject({ ref: expect.any(String) as string });
    expect(must(await untilConnected(crashing)).messages).toBe(2);
    await crashing.broker.jetStream.publish([resumeMessage(body, 9)]);
    await expect(next).resolves.toMatchObject({ done: false, value: { resume: { fence: 3 } } });
  });

  it("is not there is told as a failure to connect, in time", async () => {
    const connecting = connectTimers({ servers: ["nats://127.0.0.1:1"], connectTimeoutMs: 300 });
    await expect(connecting).rejects.toMatchObject({ kind: "transient", message: "connect timers to nats://127.0.0.1:1" });
  });
});

async function collect<T>(iterable: AsyncIterable<T>): Promise<readonly T[]> {
  const items: T[] = [];
  for await (const item of iterable) items.push(item);
  return items;
}

async function untilConnected(on: Provisioned) {
  must(await on.broker.connected(10_000 as DurationMs));
  return on.broker.jetStream.streamState(streamNames.commands);
}

function commandIn(delivered: Delivered | undefined): Command {
  if (delivered === undefined) throw new Error("no command was delivered");
  const limits = { payloadBytesMax: 1_000_000, delayMsMax: 1e9 as DurationMs, retriesMax: 10, replyPrefix: replyPrefixDefault };
  const read = readCommand(delivered.message, limits, systemSha256);
  if (!read.ok) throw new Error(read.problem);
  return read;
}

async function takeCommands(from: "start" | "feedback", count: number): Promise<readonly Delivered[]> {
  const stream = from === "start" ? streamNames.commands : streamNames.feedback;
  const source = bed.broker.jetStream.openSource({ stream, consumer: consumerNames[from], lookahead: 10 });
  const taken: Delivered[] = [];
  const signal = AbortSignal.timeout(10_000);
  while (taken.length < count && !signal.aborted) taken.push(...(await source.take({ max: count - taken.length, expiresMs: 5_000 as DurationMs, signal })));
  await source.close();
  return taken;
}

async function drain(from: "start" | "feedback"): Promise<void> {
  const stream = from === "start" ? streamNames.commands : streamNames.feedback;
  must(await bed.broker.jetStream.purge({ stream, subject: ">" }));
}

async function answerNext(from: "start" | "feedback", outcome: string): Promise<void> {
  const [delivered] = await takeCommands(from, 1);
  answer(commandIn(delivered).replyTo ?? "", outcome);
  delivered?.settle({ kind: "ack" });
}

function answer(subject: string, outcome: string): void {
  bed.broker.jetStream.send({ subject, body: new TextEncoder().encode(outcome) });
}

function resumeMessage(bytes: Uint8Array, marker: number) {
  const record = {
    phase: "elapsed", lineage: { flow: { id: "orders", version: "1" }, execution: `resume-${String(marker)}`, node: "n", edges: { start: "a", elapsed: "b" } },
    snapshotHash: `sha256:${"a".repeat(64)}`, payloadHash: payloadHash(bytes, systemSha256), payloadBytes: bytes.length, maxRetries: 0,
    startedAtMs: 1_000, dueAtMs: 2_000, elapsedAtMs: 2_001, generation: 1, fence: 3, armedFence: 2,
  } as unknown as ElapsedRecord;
  return { subject: resumeSubject, headers: [[headerNames.context, resumeContextHeader(record)]] as const, body: bytes };
}

async function publishResume(bytes: Uint8Array, marker: number): Promise<void> {
  const [outcome] = await bed.broker.jetStream.publish([resumeMessage(bytes, marker)]);
  expect(outcome?.kind).toBe("stored");
}

async function takeResumes(count: number, onInvalid?: (report: InvalidResume) => void): Promise<readonly ResumeDelivery[]> {
  const taken: ResumeDelivery[] = [];
  for await (const delivery of timers.resumes({ signal: AbortSignal.timeout(10_000), ...(onInvalid === undefined ? {} : { onInvalid }) })) {
    taken.push(delivery);
    if (taken.length === count) break;
  }
  return taken;
}

async function expectResumesLeft(count: number): Promise<void> {
  await expect.poll(async () => must(await bed.broker.jetStream.streamState(streamNames.resumes)).messages, { timeout: 30_000 }).toBe(count);
}
