/**
 * The sweep on a real broker: what was lost or left half done is carried on, once, whatever else goes on.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { atomicBatchSizeMax, sweepPortionSizeMax, sweepPullSizeMax } from "../../src/base/limits.ts";
import type { DurationMs, EpochMs } from "../../src/base/units.ts";
import { openBroker } from "../../src/nats/core/connection.ts";
import type { BrokerConnection, StreamState } from "../../src/nats/core/jetstream.ts";
import { openWorkerPorts } from "../../src/nats/worker-ports.ts";
import { headerNames, leaseKeys, stateKey, stateSubject, streamNames, subjectFilters, wakeSubject } from "../../src/protocol/names.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { systemClock } from "../../src/system/clock.ts";
import { seededRandom, systemRandom } from "../../src/system/random.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import { topologyRules } from "../../src/topology/requirements.ts";
import type { WorkerPorts } from "../../src/worker/ports.ts";
import { armItem } from "../../src/worker/stages.ts";
import { Sweeper } from "../../src/worker/sweep.ts";
import { decodeSummary, type SweepSummary } from "../../src/worker/sweep-summary.ts";
import { FakeLog } from "../fakes/log.ts";
import { elapsedRecord, ms, terminalRecord, testTimer, waitingRecord, type TestTimer } from "../fakes/timers.ts";
import { FakeWorkerMetrics } from "../fakes/worker-metrics.ts";
import { recreateSchedules, withoutServerKeys } from "./schedules-loss.ts";
import { openWorld, request, told, until, type World } from "./world.ts";

let world: World;
let broker: BrokerConnection;
let ports: WorkerPorts;

beforeEach(async () => {
  world = await openWorld({ spec: { sweep: { intervalSeconds: 10, graceSeconds: 1 } } });
  broker = openBroker({ servers: world.servers.urls, name: "sweep" }, { clock: systemClock, random: systemRandom });
  told(await broker.connected(15_000 as DurationMs));
  ports = openWorkerPorts(broker, { lookahead: 100, clock: systemClock, rules: topologyRules });
});

afterEach(async () => {
  await broker.close();
  await world[Symbol.asyncDispose]();
});

const intervalMs = 60_000;
const nowMs = () => Date.now();
const count = 300;

/** Timers of this moment, due after `delayMs`; another `from` gives others. */
const timersDueIn = (delayMs: number, size = count, from = 0) => Array.from({ length: size }, (_, index) => testTimer(from + index, { delayMs, startedAtMs: nowMs() }));

/** Stores a timer as its start and its transitions left it. */
async function put(timers: readonly TestTimer[], recordOf: (timer: TestTimer) => TimerRecord): Promise<void> {
  await ports.snapshots.create(timers.map(({ key, snapshot }) => ({ key, snapshot })));
  const stored = await ports.state.write(timers.map((timer) => ({ key: timer.key, record: recordOf(timer) })));
  expect(stored.every(({ kind }) => kind === "stored")).toBe(true);
}

const arm = (timers: readonly TestTimer[]) => ports.schedules.arm(timers.map((timer) => armItem(timer.key, waitingRecord(timer))));

/** One worker's start-up sweep. */
async function sweep(workerId: string): Promise<FakeWorkerMetrics> {
  const metrics = new FakeWorkerMetrics();
  const sweeper = new Sweeper({
    ports, clock: systemClock, random: seededRandom(1), sha256: systemSha256, log: new FakeLog(), metrics, workerId,
    settings: { intervalMs: ms(intervalMs), graceMs: ms(1_000) },
  });
  const stop = new AbortController();
  const running = sweeper.run(stop.signal);
  await until(`the sweep of ${workerId}`, () => metrics.sweeps.some((result) => result !== "held_by_another") || undefined);
  stop.abort();
  await running;
  return metrics;
}

async function summary(): Promise<SweepSummary | undefined> {
  const read = await ports.notes.read(leaseKeys.sweepSummary);
  return read.kind === "found" ? decodeSummary(read.value) : undefined;
}

const schedulesState = async (): Promise<StreamState> => told(await broker.jetStream.streamState(streamNames.schedules));

describe("SCHEDULES that were made anew", () => {
  test("every waiting timer is armed exactly once, with its own generation, fence and due time", async () => {
    const timers = timersDueIn(100_000);
    await put(timers, waitingRecord);
    await arm(timers);
    await sweep("before");
    await recreateSchedules(world);
    const metrics = await sweep("w1");
    expect(metrics.count("sweep armed")).toBe(count);
    const schedules = await world.messages("schedules", subjectFilters.schedules);
    expect(schedules).toHaveLength(count);
    const dueOf = new Map(timers.map((timer) => [timer.key.ref, waitingRecord(timer).dueAtMs]));
    for (const { subject, headers } of schedules) {
      expect(headers.get(headerNames.fence)).toBe("0:1");
      expect(headers.get(headerNames.dueAt)).toBe(String(dueOf.get(subject.slice(-32))));
    }
    const { lastSequence } = await schedulesState();
    await sweep("w2");
    expect((await schedulesState()).lastSequence).toBe(lastSequence);
    expect(await summary()).toMatchObject({ waiting: count, elapsed: 0, overdue: 0, unreadable: 0 });
  });

  test("under a running worker no timer is lost, early, or resumed under two fences", { timeout: 120_000 }, async () => {
    const { metrics } = await world.startWorker();
    await Promise.all(Array.from({ length: 60 }, (_, index) => world.client.start(request(`anew-${String(index)}`, { wait: { delayMs: 4_000 } }), { awaitOutcome: true })));
    await recreateSchedules(world);
    const resumes = await until("all resumes", async () => {
      const all = await world.resumes();
      return new Set(all.map(({ lineage }) => lineage.execution)).size === 60 ? all : undefined;
    }, 90_000);
    for (const resume of resumes) {
      expect(resume.storedAtMs).toBeGreaterThanOrEqual(resume.dueAtMs);
      expect(resume).toMatchObject({ generation: 0, fence: 2 });
    }
    expect(metrics.count("sweep armed")).toBeGreaterThan(0);
  });

  test("a resume whose only memory was the lost wake is published again, with the same fence and bytes", async () => {
    const timers = timersDueIn(0);
    await put(timers, (timer) => elapsedRecord(timer, { elapsedAtMs: nowMs() as EpochMs }));
    await sweep("before");
    expect(await world.resumes()).toHaveLength(count);
    const late = timersDueIn(0, 10, count);
    await put(late, (timer) => elapsedRecord(timer, { elapsedAtMs: nowMs() as EpochMs }));
    expect((await sweep("in between")).count("sweep resumed")).toBe(0);
    await recreateSchedules(world);
    await sweep("w1");
    const resumes = await world.resumes();
    // The message ids of the first ones are still known, so that no second copy of theirs is stored.
    expect(resumes).toHaveLength(count + 10);
    const bodies = new Map([...timers, ...late].map((timer) => [timer.start.lineage.execution, Buffer.from(timer.snapshot.body)]));
    for (const { lineage, fence, body } of resumes) {
      expect(fence).toBe(2);
      expect(Buffer.from(body)).toEqual(bodies.get(lineage.execution));
    }
  });
});

describe("a broker that was killed", () => {
  test("counts as a break: it may have lost what it had not yet written", { timeout: 120_000 }, async () => {
    const timers = timersDueIn(100_000, 20);
    await put(timers, waitingRecord);
    await arm(timers);
    await sweep("before");
    const owed = timersDueIn(0, 5, 1_000);
    await put(owed, (timer) => elapsedRecord(timer, { elapsedAtMs: nowMs() as EpochMs }));
    await world.servers.crash();
    await until("the broker", () => broker.isConnected() || undefined);
    const metrics = await sweep("w1");
    expect(metrics.count("sweep resumed")).toBe(5);
    const armed = new Set((await world.messages("schedules", subjectFilters.schedules)).map(({ subject }) => subject));
    expect(armed.size).toBe(20);
  });
});

describe("single schedules", () => {
  test("one that is missing is armed, one of an older generation is replaced, a good one is left", async () => {
    const [missing, older, good] = timersDueIn(100_000, 3) as [TestTimer, TestTimer, TestTimer];
    await put([missing, good], waitingRecord);
    await put([older], (timer) => waitingRecord(timer, { generation: 1, fence: 3 }));
    await arm([older, good]);
    const before = await ports.schedules.look([good.key]);
    const metrics = await sweep("w1");
    expect(Object.fromEntries([...metrics.counts].filter(([name]) => name.startsWith("sweep ")))).toEqual({ "sweep armed": 1, "sweep rearmed": 1 });
    const looks = await ports.schedules.look([missing.key, older.key, good.key]);
    expect(looks).toMatchObject([
      { schedule: { generation: 0, fence: 1, dueAtMs: waitingRecord(missing).dueAtMs } },
      { schedule: { generation: 1, fence: 3 } },
      before[0],
    ]);
  });

  test("an overdue timer without one is woken at once", async () => {
    const [timer] = timersDueIn(0, 1) as [TestTimer];
    await put([timer], (one) => waitingRecord(one, { dueAtMs: (nowMs() - 60_000) as EpochMs }));
    const metrics = await sweep("w1");
    expect(metrics.found).toMatchObject({ waiting: 1, overdue: 1 });
    await until("its wake", async () => {
      const [look] = await ports.schedules.look([timer.key]);
      return look?.kind === "seen" ? look.wake : undefined;
    }, 5_000);
  });

  test("one whose wake the broker could not store never fires by itself, and is published again", { timeout: 120_000 }, async () => {
    const timers = timersDueIn(1_500, 3);
    await put(timers, waitingRecord);
    await arm(timers);
    const { config } = await schedulesState();
    const clean = { ...config, metadata: withoutServerKeys(config["metadata"]) };
    // Every wake is larger than this: the broker tries once, is refused, and does not try again.
    told(await broker.admin.updateStream({ ...clean, max_msg_size: 10 }));
    await systemClock.sleep(ms(3_000));
    told(await broker.admin.updateStream(clean));
    await systemClock.sleep(ms(1_500));
    const wakesNow = async () => (await world.messages("schedules", subjectFilters.wakes)).length;
    expect(await wakesNow()).toBe(0);
    expect(await world.messages("schedules", subjectFilters.schedules)).toHaveLength(3);
    const metrics = await sweep("w1");
    expect(metrics.count("sweep republished")).toBe(3);
    await until("their wakes", async () => (await wakesNow()) === 3 || undefined, 5_000);
  });

  test("a burst that is being worked off is left alone", { timeout: 120_000 }, async () => {
    const timers = timersDueIn(0, 2_000);
    for (let from = 0; from < timers.length; from += 250) {
      const part = timers.slice(from, from + 250);
      await put(part, (timer) => waitingRecord(timer, { dueAtMs: (nowMs() - 30_000) as EpochMs }));
      await ports.schedules.arm(part.map((timer) => armItem(timer.key, waitingRecord(timer, { dueAtMs: (nowMs() - 30_000) as EpochMs }))));
    }
    const metrics = await sweep("w1");
    expect(metrics.count("sweep republished")).toBe(0);
    const wakes = await world.messages("schedules", subjectFilters.wakes);
    expect(new Set(wakes.map(({ subject }) => subject)).size).toBe(2_000);
    expect(wakes).toHaveLength(2_000);
  });
});

describe("ends", () => {
  test("a terminal record that was left is archived with exactly its bytes and removed under its revision", async () => {
    const timers = timersDueIn(0, 20);
    await put(timers, (timer) => terminalRecord(timer, { endedAtMs: (nowMs() - 5_000) as EpochMs }));
    const metrics = await sweep("w1");
    expect(metrics.count("sweep finished")).toBe(20);
    expect(await world.records()).toEqual([]);
    const stored = await world.messages("terminals");
    expect(stored).toHaveLength(20);
    const bytesOf = new Map(stored.map(({ subject, body }) => [subject.slice(-32), Buffer.from(body)]));
    for (const timer of timers) {
      const archived = await ports.archive.read([timer.key]);
      expect(archived[0]).toMatchObject({ kind: "found" });
      if (archived[0]?.kind === "found") expect(bytesOf.get(timer.key.ref)).toEqual(Buffer.from(encodeRecord(archived[0].value)));
    }
  });

  test("a record that revived an archived timer is removed, and its leftover schedule wakes nobody", { timeout: 120_000 }, async () => {
    const timer = testTimer(1, { delayMs: 600_000 + 4_000, startedAtMs: nowMs() - 600_000 });
    await ports.archive.create([{ key: timer.key, record: terminalRecord(timer) }]);
    await put([timer], waitingRecord);
    await arm([timer]);
    const metrics = await sweep("w1");
    expect(metrics.count("sweep removed")).toBe(1);
    await world.startWorker();
    await until("its wake to be taken and gone", async () => {
      const [look] = await ports.schedules.look([timer.key]);
      return (look?.kind === "seen" && look.schedule === undefined && look.wake === undefined) || undefined;
    });
    expect(await world.resumes()).toEqual([]);
    expect(await world.records()).toEqual([]);
  });
});

describe("who sweeps", () => {
  test("three workers write one lease and one summary per sweep, and nothing between two sweeps", { timeout: 120_000 }, async () => {
    const metrics = ["w1", "w2", "w3"].map(() => new FakeWorkerMetrics());
    const stop = new AbortController();
    const running = metrics.map((own, index) => new Sweeper({
      ports, clock: systemClock, random: systemRandom, sha256: systemSha256, log: new FakeLog(), metrics: own, workerId: `w${String(index)}`,
      settings: { intervalMs: ms(15_000), graceMs: ms(1_000) },
    }).run(stop.signal));
    const completed = () => metrics.flatMap(({ sweeps }) => sweeps).filter((result) => result === "completed").length;
    const lastSequence = async () => told(await broker.jetStream.streamState(streamNames.state)).lastSequence;
    await until("the start-up sweeps to be done", () => metrics.every(({ found }) => found !== undefined) || undefined);
    const sweepsBefore = completed();
    const before = await lastSequence();
    await systemClock.sleep(ms(5_000));
    expect(await lastSequence()).toBe(before);
    expect(completed()).toBe(sweepsBefore);
    await until("the next sweep", () => completed() > sweepsBefore || undefined, 40_000);
    await until("the next sweep's lease to be free", async () => {
      const read = await ports.notes.read(leaseKeys.sweep);
      return (read.kind === "found" && read.value.includes("\"free\"")) || undefined;
    });
    expect(await lastSequence() - before).toBe(3 * (completed() - sweepsBefore));
    stop.abort();
    await Promise.all(running);
  });

  test("more records than one pull holds are each met once, whatever is written meanwhile", async () => {
    const size = sweepPullSizeMax + 100;
    const timers = timersDueIn(9_000_000, size);
    const records = timers.map((timer) => ({ subject: stateSubject(stateKey(timer.key)), headers: [], body: encodeRecord(waitingRecord(timer)) }));
    for (let from = 0; from < size; from += atomicBatchSizeMax) {
      expect(await broker.jetStream.publishAtomically(records.slice(from, from + atomicBatchSizeMax))).toMatchObject({ kind: "stored" });
    }
    const met = new Set<string>();
    for await (const batch of ports.walk.walk(new AbortController().signal)) {
      expect(batch.length).toBeLessThanOrEqual(sweepPortionSizeMax);
      for (const { key } of batch) {
        expect(met.has(key.ref)).toBe(false);
        met.add(key.ref);
      }
      // New revisions behind the end of the walk: draining to the end would never finish.
      if (met.size < size / 2) await broker.jetStream.publish(records.slice(-1));
    }
    expect(met.size).toBe(size - 1);
  });

  test("what nobody can read is counted and left alone, and so is what is no timer's", async () => {
    await broker.jetStream.publish([
      { subject: stateSubject("t.orders.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), headers: [], body: Buffer.from("{\"v\":99}") },
      { subject: stateSubject("t.orders.short"), headers: [], body: Buffer.from("?") },
    ]);
    const before = told(await broker.jetStream.streamState(streamNames.state)).messages;
    const metrics = await sweep("w1");
    expect(metrics.found).toMatchObject({ unreadable: 1, waiting: 0 });
    // The lease and the summary are new.
    expect(told(await broker.jetStream.streamState(streamNames.state)).messages).toBe(before + 2);
  });

  test("a wake that waits for its worker is no reason to arm again", async () => {
    const timers = timersDueIn(0, 50);
    await put(timers, waitingRecord);
    await arm(timers);
    await until("all wakes", async () => (await world.messages("schedules", wakeSubject({ flow: "orders", ref: "*" }))).length === 50 || undefined);
    await systemClock.sleep(ms(1_500));
    const metrics = await sweep("w1");
    expect(metrics.count("sweep armed")).toBe(0);
    expect((await schedulesState()).messages).toBe(50);
  });
});
