import { describe, expect, it } from "vitest";
import { resumeLookaheadDefault, resumeLookaheadMax, resumePullMs } from "../../src/base/limits.ts";
import { payloadHash } from "../../src/timer/hashes.ts";
import type { ElapsedRecord } from "../../src/timer/record.ts";
import { resumeContextHeader } from "../../src/protocol/resume.ts";
import { ResumeIterations, type InvalidResume, type ResumeDelivery } from "../../src/client/resumes.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { deliveredMessage, ScriptedJetStream } from "./scripted-jet-stream.ts";

const body = new Uint8Array([0, 1, 254, 255]);
const record = {
  phase: "elapsed", lineage: { flow: { id: "orders", version: "1" }, execution: "ex", node: "n", edges: { start: "a", elapsed: "b" } },
  snapshotHash: `sha256:${"a".repeat(64)}`, payloadHash: payloadHash(body, systemSha256), payloadBytes: body.length, maxRetries: 0,
  startedAtMs: 1_000, dueAtMs: 2_000, elapsedAtMs: 2_001, generation: 0, fence: 2, armedFence: 1,
} as unknown as ElapsedRecord;

const headersOf = (context?: string) => ({ get: (name: string) => (name === "Durable-Timer-Context" ? context : undefined), all: () => [] });
const resumeMessage = (sequence: number) => deliveredMessage({ sequence, body, headers: headersOf(resumeContextHeader(record)) });

function setUp() {
  const broker = new ScriptedJetStream();
  const stopping = new AbortController();
  return { broker, stopping, iterations: new ResumeIterations({ jetStream: broker.asJetStream(), sha256: systemSha256, stopped: stopping.signal }) };
}

async function firstOf(iteration: AsyncIterable<ResumeDelivery>): Promise<ResumeDelivery | undefined> {
  for await (const delivery of iteration) return delivery;
  return undefined;
}

describe("resumes", () => {
  it("come with their body, the time at which they were stored, and ways to settle them", async () => {
    const { broker, iterations } = setUp();
    const message = resumeMessage(1);
    broker.batches.push([message]);
    for await (const delivery of iterations.open({})) {
      expect(delivery.resume).toMatchObject({ lineage: record.lineage, generation: 0, fence: 2, dueAtMs: 2_000, body });
      expect(delivery.publishedAtMs).toBe(1_000_000_000_000);
      expect(delivery.extend()).toBe(true);
      expect(delivery.nak(250)).toBe(true);
      expect(delivery.ack()).toBe(true);
      break;
    }
    expect(message.settlements).toEqual([{ kind: "extend" }, { kind: "nak", delayMs: 250 }, { kind: "ack" }]);
  });

  const invalid = [
    { name: "a body that is not the one that was hashed", headers: headersOf(resumeContextHeader(record)), changed: new Uint8Array([1]), problem: "payloadHash" },
    { name: "no context", headers: headersOf(), changed: body, problem: "header Durable-Timer-Context is missing" },
    { name: "an unknown field", headers: headersOf(resumeContextHeader(record).replace('"v":1', '"v":1,"w":2')), changed: body, problem: "w is not a field" },
  ];
  it.each(invalid)("are removed and reported, not handed over, with $name", async ({ headers, changed, problem }) => {
    const { broker, iterations } = setUp();
    const reports: InvalidResume[] = [];
    const bad = deliveredMessage({ sequence: 5, body: changed, headers });
    const good = resumeMessage(6);
    broker.batches.push([bad, good]);
    const iteration = iterations.open({ onInvalid: (report) => { reports.push(report); } });
    const next = await iteration.next();
    await iteration.return();
    expect(next.value?.resume.fence).toBe(2);
    expect(bad.settlements).toEqual([{ kind: "terminate", reason: "invalid resume" }]);
    expect(reports).toEqual([expect.objectContaining({ sequence: 5, problem: expect.stringContaining(problem) as string })]);
  });

  it("that were not handed over are handed back when the iteration ends, and only those", async () => {
    const { broker, iterations } = setUp();
    const messages = [resumeMessage(1), resumeMessage(2), resumeMessage(3)];
    broker.batches.push(messages);
    await firstOf(iterations.open({}));
    expect(messages.map(({ settlements }) => settlements)).toEqual([[], [{ kind: "nak", delayMs: 0 }], [{ kind: "nak", delayMs: 0 }]]);
    expect(broker.sourceState).toBe("closed");
  });

  it("end when the client stops, also where somebody waits for the next one", async () => {
    const { broker, iterations, stopping } = setUp();
    const waiting = iterations.open({}).next();
    await new Promise((resolve) => { setImmediate(resolve); });
    stopping.abort();
    await iterations.end();
    await expect(waiting).resolves.toEqual({ done: true, value: undefined });
    expect(broker.sourceState).toBe("closed");
  });

  it("end when their own signal aborts, while others go on", async () => {
    const { broker, iterations } = setUp();
    const stop = new AbortController();
    const ending = iterations.open({ signal: stop.signal }).next();
    const going = iterations.open({});
    stop.abort();
    await expect(ending).resolves.toMatchObject({ done: true });
    broker.batches.push([resumeMessage(1)]);
    await expect(going.next()).resolves.toMatchObject({ done: false });
    await going.return();
  });

  it("are held ahead as many as asked for, within the limit", async () => {
    const { broker, iterations } = setUp();
    broker.batches.push([resumeMessage(1)]);
    await firstOf(iterations.open({ lookahead: 9 }));
    broker.batches.push([resumeMessage(2)]);
    await firstOf(iterations.open({}));
    expect(broker.lookaheads).toEqual([9, resumeLookaheadDefault]);
    expect(broker.pulls).toEqual([{ max: 9, expiresMs: resumePullMs }, { max: resumeLookaheadDefault, expiresMs: resumePullMs }]);
    for (const lookahead of [0, resumeLookaheadMax + 1, 1.5]) {
      expect(() => iterations.open({ lookahead })).toThrow(expect.objectContaining({ code: "REQUEST_INVALID" }));
    }
  });
});
