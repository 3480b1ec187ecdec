/**
 * Resumes that nobody answers, on a real broker. The time-outs are shorter than a resource may ask for; the sweep's own
 * settings take any.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import { feedbackTimeoutMsMin } from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { openBroker } from "../../src/nats/core/connection.ts";
import type { BrokerConnection } from "../../src/nats/core/jetstream.ts";
import { openWorkerPorts } from "../../src/nats/worker-ports.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { systemClock } from "../../src/system/clock.ts";
import { seededRandom, systemRandom } from "../../src/system/random.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import type { FeedbackPolicy } from "../../src/timer/decide-timeout.ts";
import { topologyRules } from "../../src/topology/requirements.ts";
import type { WorkerPorts, WriteOutcome } from "../../src/worker/ports.ts";
import { Sweeper } from "../../src/worker/sweep.ts";
import { FakeLog } from "../fakes/log.ts";
import { elapsedRecord, ms, testTimer, type TestTimer } from "../fakes/timers.ts";
import { FakeWorkerMetrics } from "../fakes/worker-metrics.ts";
import { openWorld, request, told, until, type World } from "./world.ts";

let world: World;
let broker: BrokerConnection;
let ports: WorkerPorts;

beforeEach(async () => {
  world = await openWorld();
  broker = openBroker({ servers: world.servers.urls, name: "sweep" }, { clock: systemClock, random: systemRandom });
  told(await broker.connected(15_000 as DurationMs));
  ports = openWorkerPorts(broker, { lookahead: 100, clock: systemClock, rules: topologyRules });
});

afterEach(async () => {
  await broker.close();
  await world[Symbol.asyncDispose]();
});

const policy = (onTimeout: FeedbackPolicy["onTimeout"], timeoutMs: DurationMs = feedbackTimeoutMsMin): FeedbackPolicy => ({ onTimeout, timeoutMs });

/** One worker's start-up sweep under a policy. */
async function sweep(workerId: string, feedback: FeedbackPolicy, over: Partial<WorkerPorts> = {}): Promise<FakeWorkerMetrics> {
  const metrics = new FakeWorkerMetrics();
  const sweeper = new Sweeper({
    ports: { ...ports, ...over }, clock: systemClock, random: seededRandom(1), sha256: systemSha256, log: new FakeLog(), metrics, workerId, feedback,
    settings: { intervalMs: ms(60_000), graceMs: ms(1_000) },
  });
  const stop = new AbortController();
  const running = sweeper.run(stop.signal);
  await until(`the sweep of ${workerId}`, () => metrics.sweeps.some((result) => result !== "held_by_another") || undefined);
  stop.abort();
  await running;
  return metrics;
}

/** Timers that elapsed ten minutes ago and were resumed, behind a sweep that found everything in order. */
async function putUnanswered(count: number): Promise<readonly TestTimer[]> {
  await sweep("before", policy("none"));
  const timers = Array.from({ length: count }, (_, index) => testTimer(index, { delayMs: 60_000, startedAtMs: Date.now() - 660_000 }));
  await ports.snapshots.create(timers.map(({ key, snapshot }) => ({ key, snapshot })));
  const stored = await ports.state.write(timers.map((timer) => ({ key: timer.key, record: elapsedRecord(timer) })));
  expect(stored.every(({ kind }) => kind === "stored")).toBe(true);
  await ports.resumes.publish(timers.map((timer) => ({ key: timer.key, record: elapsedRecord(timer), body: timer.snapshot.body })));
  return timers;
}

describe("resumes that nobody answers", () => {
  test("end their timers when they are to fail: archived once, with exactly the bytes of the last record", async () => {
    const timers = await putUnanswered(40);
    const metrics = await sweep("w1", policy("fail"));
    expect(metrics.count("sweep timed_out")).toBe(40);
    expect(await world.records()).toEqual([]);
    const archived = await world.messages("terminals");
    expect(archived).toHaveLength(40);
    const ended = await world.archived();
    ended.forEach((record, index) => { expect(Buffer.from(archived[index]?.body ?? [])).toEqual(Buffer.from(encodeRecord(record))); });
    for (const record of ended) expect(record).toMatchObject({ phase: "terminal", outcome: "failed", generation: 0, fence: 3, failure: { code: "feedback_timeout" } });
    expect(new Set(ended.map(({ lineage }) => lineage.execution))).toEqual(new Set(timers.map(({ start }) => start.lineage.execution)));
  });

  test("are published once more under their fence, though the id of the first is still known, and not again", async () => {
    const timers = await putUnanswered(40);
    expect((await sweep("w1", policy("resume_again"))).count("sweep resumed_again")).toBe(40);
    const again = await sweep("w2", policy("resume_again"));
    expect([again.count("sweep resumed_again"), again.count("sweep resumed")]).toEqual([0, 0]);
    expect(again.found).toMatchObject({ elapsed: 40, unanswered: 40 });
    const resumes = await world.resumes();
    expect(resumes).toHaveLength(80);
    for (const { start, snapshot } of timers) {
      const copies = resumes.filter(({ lineage }) => lineage.execution === start.lineage.execution);
      expect(copies.map(({ generation, fence }) => [generation, fence])).toEqual([[0, 2], [0, 2]]);
      expect(copies.every(({ body }) => Buffer.compare(body, snapshot.body) === 0)).toBe(true);
      expect(copies[0]?.elapsedAtMs).toBe(copies[1]?.elapsedAtMs);
    }
  });

  test("that were noted by a sweep which died before it published are published by the next", async () => {
    await putUnanswered(5);
    const metrics = new FakeWorkerMetrics();
    const stop = new AbortController();
    const silence = new Promise<void>((resolve) => { stop.signal.addEventListener("abort", () => { resolve(); }); });
    const unknown: WriteOutcome = { kind: "unknown", failure: new Failure("transient", "BROKER_TIMEOUT", "publish a resume") };
    const silent: WorkerPorts["resumes"] = { publish: async (items) => { await silence; return items.map(() => unknown); } };
    const dying = new Sweeper({
      ports: { ...ports, resumes: silent }, clock: systemClock, random: seededRandom(1), sha256: systemSha256, log: new FakeLog(), metrics, workerId: "w1",
      feedback: policy("resume_again"), settings: { intervalMs: ms(60_000), graceMs: ms(1_000) },
    });
    const dyingRun = dying.run(stop.signal);
    await until("the notes", async () => (await world.records()).every((record) => record.phase === "elapsed" && record.resumedAgainAtMs !== undefined) || undefined);
    expect(await world.resumes()).toHaveLength(5);
    // Its lease would end by itself after a minute; another process of its name takes it at once.
    const next = await sweep("w1", policy("resume_again"));
    expect(next.count("sweep resumed")).toBe(5);
    expect(await world.resumes()).toHaveLength(10);
    expect((await sweep("w2", policy("resume_again"))).count("sweep resumed")).toBe(0);
    stop.abort();
    await dyingRun;
  });
});

test("from start to end in a running worker: feedback after the time-out is stale, and its timer is archived as timed out", { timeout: 120_000 }, async () => {
  const timeoutMs = 1_000;
  await world.startWorker();
  await world.client.start(request("silent", { wait: { delayMs: 100 } }), { awaitOutcome: true });
  const resume = await until("its resume", async () => (await world.resumes())[0]);
  await until("its time to be up", () => (Date.now() > resume.elapsedAtMs + 2 * timeoutMs ? true : undefined));
  await until("its wake to be gone", async () => {
    const { messages } = told(await broker.jetStream.streamState("DURABLE_TIMER_SCHEDULES"));
    return messages === 0 || undefined;
  });
  await until("an end", async () => ((await sweep(`w-${String(Date.now())}`, policy("fail", timeoutMs as DurationMs))).count("sweep timed_out") === 1 ? true : undefined), 90_000);
  const [ended] = await world.archived();
  expect(ended).toMatchObject({ outcome: "failed", failure: { code: "feedback_timeout" } });
  expect(ended?.phase === "terminal" && ended.endedAtMs).toBeGreaterThanOrEqual(resume.elapsedAtMs + timeoutMs);
  const { outcome } = await world.client.complete(resume, { awaitOutcome: true });
  expect(outcome).toMatchObject({ kind: "rejected", code: "stale", state: "failed" });
});
