/**
 * Collection on real brokers of both lines: the whole way of an ended timer, what starts and feedback meet on it, and what
 * a stream does with a tombstone whose time is over.
 */
import { afterEach, describe, expect, test } from "vitest";
import type { CommandOutcome } from "../../src/client/outcome.ts";
import type { BrokerConnection } from "../../src/nats/core/jetstream.ts";
import { openBroker } from "../../src/nats/core/connection.ts";
import { openWorkerPorts } from "../../src/nats/worker-ports.ts";
import { decodeGrave } from "../../src/protocol/tombstone.ts";
import { headerNames, leaseKeys, snapshotSubject, stateKey, stateSubject, streamNames, terminalSubject, timerKeyFromSubject } from "../../src/protocol/names.ts";
import { systemClock } from "../../src/system/clock.ts";
import { seededRandom, systemRandom } from "../../src/system/random.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { topologyRules } from "../../src/topology/requirements.ts";
import type { WorkerPorts } from "../../src/worker/ports.ts";
import { Collector } from "../../src/worker/retention.ts";
import type { RetentionSettings } from "../../src/worker/settings.ts";
import { FakeLog } from "../fakes/log.ts";
import { ms, terminalRecord, testTimer, type TestTimer } from "../fakes/timers.ts";
import { FakeWorkerMetrics } from "../fakes/worker-metrics.ts";
import { openWorld, request, told, until, type World, type WorldOptions } from "./world.ts";

type Bed = { readonly world: World; readonly broker: BrokerConnection; readonly ports: WorkerPorts };
const beds: Bed[] = [];

async function open(options: WorldOptions): Promise<Bed> {
  const world = await openWorld(options);
  const broker = openBroker({ servers: world.servers.urls, name: "collection" }, { clock: systemClock, random: systemRandom });
  told(await broker.connected(ms(15_000)));
  const bed = { world, broker, ports: openWorkerPorts(broker, { lookahead: 100, clock: systemClock, rules: topologyRules }) };
  beds.push(bed);
  return bed;
}

afterEach(async () => {
  for (const { world, broker } of beds.splice(0)) {
    await broker.close();
    await world[Symbol.asyncDispose]();
  }
});

/** Everything that has ended is old enough. */
const eager: RetentionSettings = { archiveAgeMs: ms(1), dedupeMs: ms(3_600_000), intervalMs: ms(500), orphanAgeMs: ms(3_600_000_000) };

/** Collects until `isDone`. */
async function collect({ ports }: Bed, settings: RetentionSettings, isDone: (metrics: FakeWorkerMetrics) => boolean): Promise<FakeWorkerMetrics> {
  const metrics = new FakeWorkerMetrics();
  const log = new FakeLog();
  const collector = new Collector({ ports, clock: systemClock, random: seededRandom(1), sha256: systemSha256, log, metrics, workerId: systemRandom.token(8), isDataWhole: () => true, settings });
  const stop = new AbortController();
  const running = collector.run(stop.signal);
  await until(`the collection, which has done ${JSON.stringify([...metrics.counts])}`, () => isDone(metrics) || undefined, 60_000);
  stop.abort();
  await running;
  return metrics;
}

const passedOnce = (metrics: FakeWorkerMetrics): boolean => metrics.collections.includes("completed");

/** Ended timers as their transitions left them, markers and all forgotten. */
async function putEnded({ ports }: Bed, timers: readonly TestTimer[]): Promise<void> {
  const snapshots = await ports.snapshots.create(timers.map(({ key, snapshot }) => ({ key, snapshot })));
  const archived = await ports.archive.create(timers.map((timer) => ({ key: timer.key, record: terminalRecord(timer) })));
  expect([...snapshots, ...archived].every(({ kind }) => kind === "stored")).toBe(true);
}

/** As if five minutes had passed since the record was removed. */
async function forgetMarkers({ broker }: Bed): Promise<void> {
  told(await broker.jetStream.purge({ stream: streamNames.state, subject: stateSubject("t.>") }));
}

async function startAgain({ client }: World, what: Parameters<typeof client.start>[0]): Promise<CommandOutcome | undefined> {
  return (await client.start(what, { awaitOutcome: true, outcomeTimeoutMs: 30_000 })).outcome;
}

/** The tombstone of the only timer is given one more second, and that second passes. */
async function letTombstoneExpire({ world, ports }: Bed): Promise<void> {
  const [tombstone] = await world.messages("snapshots");
  const key = timerKeyFromSubject(tombstone?.subject ?? "");
  if (tombstone === undefined || key === undefined) throw new Error("no tombstone");
  expect(tombstone.headers.get("Nats-TTL")).toBe("3600s");
  const grave = decodeGrave(tombstone.headers.get(headerNames.tombstone) ?? "") ?? {};
  expect(await ports.snapshots.bury([{ key, grave: { ...grave, expiresInMs: ms(1_000) }, expected: tombstone.sequence }])).toMatchObject([{ kind: "stored" }]);
  await until("the tombstone to expire", async () => (await world.messages("snapshots")).length === 0 || undefined);
}

/** Ends a timer, from its start on. */
async function liveThrough({ world }: Bed, execution: string): Promise<void> {
  await world.client.start(request(execution));
  const resume = await until("its resume", async () => (await world.resumes()).at(0));
  await world.client.complete(resume);
  await until("its archive", async () => (await world.archived()).length > 0 || undefined);
  await until("its record to be gone", async () => (await world.records()).length === 0 || undefined);
}

describe.each(["recommended", "floor"] as const)("on a %s server", (version) => {
  test("a timer lives, ends and is collected; its start is recognised until the tombstone is gone, and then is new", { timeout: 240_000 }, async () => {
    const bed = await open({ version });
    const { world } = bed;
    const running = await world.startWorker();
    await liveThrough(bed, "ex-1");
    await forgetMarkers(bed);
    const first = await startAgain(world, request("ex-1"));
    expect(first).toMatchObject({ kind: "duplicate", state: "completed" });
    const metrics = await collect(bed, eager, (seen) => seen.count("collection collected") === 1);
    expect(metrics.collections).not.toContain("failed");
    expect(await world.archived()).toEqual([]);
    // The same answer as from the archive, and another start is told apart.
    expect(await startAgain(world, request("ex-1"))).toEqual(first);
    expect(await startAgain(world, request("ex-1", { body: Buffer.from("another") }))).toMatchObject({ kind: "rejected", code: "start_conflict", state: "completed" });
    const [resume] = await world.resumes();
    if (resume === undefined) throw new Error("no resume");
    const late = await world.client.complete(resume, { body: Buffer.from("late"), awaitOutcome: true, outcomeTimeoutMs: 30_000 });
    expect(late.outcome).toMatchObject({ kind: "rejected", code: "unknown_timer" });
    expect(await world.records()).toEqual([]);
    await letTombstoneExpire(bed);
    expect(await startAgain(world, request("ex-1", { wait: { delayMs: 3_600_000 } }))).toMatchObject({ kind: "accepted", generation: 0, fence: 1, state: "waiting" });
    expect(await world.records()).toMatchObject([{ phase: "waiting", generation: 0, fence: 1 }]);
    await running.stop();
  });

  test("expired tombstones and archive markers leave nothing behind", { timeout: 120_000 }, async () => {
    const bed = await open({ version });
    const { broker } = bed;
    const timers = Array.from({ length: 30 }, (_, index) => testTimer(index));
    await putEnded(bed, timers);
    await collect(bed, { ...eager, dedupeMs: ms(2_000) }, (seen) => seen.count("collection collected") === 30);
    const counts = async () => await Promise.all([streamNames.snapshots, streamNames.terminals].map(async (stream) => told(await broker.jetStream.streamState(stream)).messages));
    await until("both streams to be empty", async () => (await counts()).every((messages) => messages === 0) || undefined, 60_000);
  });

  test("what an interrupted collection left is carried on from where it stopped", { timeout: 120_000 }, async () => {
    const bed = await open({ version });
    const { ports, broker } = bed;
    const [buried, unarchived] = [testTimer(1), testTimer(2)];
    await putEnded(bed, [buried, unarchived]);
    const tombstone = { phase: "collected", snapshotHash: buried.start.snapshotHash, outcome: "completed", generation: 0, fence: 3, dueAtMs: 1 as never, endedAtMs: 2 as never } as const;
    const read = async (timer: TestTimer) => { const [one] = await ports.snapshots.read([timer.key], "leader"); return one; };
    for (const timer of [buried, unarchived]) {
      const before = await read(timer);
      const expected = before?.kind === "found" ? before.revision : -1;
      expect(await ports.snapshots.bury([{ key: timer.key, grave: { tombstone: { ...tombstone, snapshotHash: timer.start.snapshotHash } }, expected }])).toMatchObject([{ kind: "stored" }]);
    }
    const [archive] = await ports.archive.read([unarchived.key]);
    expect(await ports.archive.remove([{ key: unarchived.key, expected: archive?.kind === "found" ? archive.revision : -1 }])).toMatchObject([{ kind: "stored" }]);
    await collect(bed, eager, (seen) => seen.count("collection collected") === 1 && seen.count("collection tombstone_finished") === 1);
    for (const timer of [buried, unarchived]) expect(await read(timer)).toMatchObject({ kind: "collected", grave: { expiresInMs: 3_600_000 } });
    const [last] = await broker.jetStream.readLast({ stream: streamNames.terminals, subjects: [terminalSubject(buried.key)], from: "leader" });
    expect(last?.kind === "found" && last.message.body.length > 0).toBe(false);
  });

  test("an orphan goes under a claim that keeps its start waiting", { timeout: 120_000 }, async () => {
    const bed = await open({ version });
    const { ports } = bed;
    const [orphan, live] = [testTimer(1), testTimer(2)];
    await ports.snapshots.create([orphan, live].map(({ key, snapshot }) => ({ key, snapshot })));
    await ports.state.write([{ key: live.key, record: terminalRecord(live) }]);
    await collect(bed, { ...eager, orphanAgeMs: ms(1) }, (seen) => seen.count("collection orphan_collected") === 1);
    expect(await ports.snapshots.read([orphan.key, live.key], "leader")).toMatchObject([{ kind: "collected", grave: { expiresInMs: 300_000 } }, { kind: "found" }]);
    expect(await ports.state.read([orphan.key, live.key], "leader")).toMatchObject([{ kind: "marker" }, { kind: "found" }]);
    expect(await ports.state.write([{ key: orphan.key, record: terminalRecord(orphan) }])).toEqual([{ kind: "exists" }]);
  });
});

test("on three servers everything that is old enough goes, and what lives or is young stays", { timeout: 240_000 }, async () => {
  const bed = await open({ count: 3 });
  const { world, ports, broker } = bed;
  const timers = Array.from({ length: 700 }, (_, index) => testTimer(index));
  await putEnded(bed, timers);
  const [live] = timers;
  if (live === undefined) throw new Error("no timer");
  await ports.state.write([{ key: live.key, record: terminalRecord(live) }]);
  const before = told(await broker.jetStream.streamState(streamNames.state)).lastSequence;
  const young = await collect(bed, { ...eager, archiveAgeMs: ms(3_600_000), snapshotWalkIntervalMs: ms(3_600_000) }, passedOnce);
  expect([...young.counts]).toEqual([]);
  // The walk over the snapshots takes the lease once, and says when it was.
  expect(told(await broker.jetStream.streamState(streamNames.state)).lastSequence - before).toBe(3);
  const metrics = await collect(bed, eager, (seen) => seen.count("collection collected") === 699);
  expect(metrics.count("collection kept_live")).toBeGreaterThanOrEqual(1);
  expect(metrics.count("collection failed")).toBe(0);
  expect(await ports.snapshots.read([live.key], "leader")).toMatchObject([{ kind: "found" }]);
  expect((await world.archived()).length).toBe(1);
});

test("without retention nothing is looked at, and nothing is written", { timeout: 120_000 }, async () => {
  const bed = await open({});
  const { world, ports, broker } = bed;
  await putEnded(bed, [testTimer(1)]);
  const running = await world.startWorker();
  await until("the first sweep", () => running.metrics.sweeps.includes("completed") || undefined);
  await systemClock.sleep(ms(2_500));
  expect(running.metrics.collections).toEqual([]);
  expect((await ports.notes.read(leaseKeys.collection)).kind).toBe("absent");
  expect(told(await broker.jetStream.streamState(streamNames.terminals)).messages).toBe(1);
});

test("a worker that is told to collects by itself", { timeout: 120_000 }, async () => {
  const bed = await open({});
  const { world } = bed;
  const timer = testTimer(1);
  await putEnded(bed, [timer]);
  const process = await world.spawnWorker({ env: { DURABLE_TIMER_WORKER_CONFIG: JSON.stringify({ ...world.config, retention: { archiveAgeMs: 1, dedupeMs: 3_600_000 } }) } });
  await until("its tombstone", async () => (await world.messages("snapshots")).some(({ subject, headers }) => subject === snapshotSubject(timer.key) && headers.get("Nats-TTL") !== undefined) || undefined, 60_000);
  expect((await world.messages("state", stateSubject(stateKey(timer.key)))).length).toBe(0);
  await process.kill("SIGTERM");
});
