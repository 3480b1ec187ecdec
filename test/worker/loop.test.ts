import { afterEach, describe, expect, test } from "vitest";
import {
  ackExtendIntervalMs, doubtfulBytesMax, loopStallMsMax, newerInputRecheckMs, payloadBytesMax, redeliveryDelayMs, redeliveryDelayMsMax, rejectedTextCharsMax, wakeEarlyMsMax, workerBatchBytesMax,
  workerBatchesInFlightMax, workerBatchMsMax, workerBatchSizeMax, workerInHandBytesMax,
} from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { writeContext } from "../../src/protocol/context.ts";
import { commandSubjects, headerNames } from "../../src/protocol/names.ts";
import type { Gate } from "../../src/worker/admission.ts";
import { WorkLoop } from "../../src/worker/loop.ts";
import type { LoopOptions } from "../../src/worker/loop-options.ts";
import type { SourceName } from "../../src/worker/ports.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { FakeLog } from "../fakes/log.ts";
import { testTimer, type TestTimer } from "../fakes/timers.ts";
import { FakeWorkerMetrics } from "../fakes/worker-metrics.ts";
import { FakeBroker } from "../fakes/worker-ports.ts";
import { sha256 } from "../timer/records.ts";
import { payloadHash } from "../../src/timer/hashes.ts";

const loops: WorkLoop[] = [];
const running: Promise<void>[] = [];

afterEach(async () => {
  await Promise.all(loops.splice(0).map((loop) => loop.stop(0 as DurationMs)));
  await Promise.all(running.splice(0));
});

function setUp() {
  const clock = new SteppedClock();
  const broker = new FakeBroker(clock);
  const metrics = new FakeWorkerMetrics();
  const log = new FakeLog();
  const open = (name: SourceName, over: Partial<LoopOptions> = {}) => {
    const loop = new WorkLoop({
      name, ports: broker.ports, clock, sha256, log, metrics, lookahead: 100,
      limits: { payloadBytesMax, delayMsMax: 1e12 as DurationMs, retriesMax: 10, replyPrefix: "_INBOX.durable_timer" }, ...over,
    });
    loops.push(loop);
    running.push(loop.run());
    return loop;
  };
  const start = (timer: TestTimer, replyTo?: string) =>
    broker.send("start", { contextHeader: timer.snapshot.contextHeader, body: timer.snapshot.body, ...(replyTo === undefined ? {} : { replyTo }) });
  return { clock, broker, metrics, log, open, start };
}

describe("the start loop", () => {
  test("creates timers, acknowledges, and answers whoever asked", async () => {
    const { clock, broker, metrics, open, start } = setUp();
    open("start");
    start(testTimer(1), "_INBOX.durable_timer.me.1");
    start(testTimer(2));
    await clock.advance(10);
    expect(broker.state.all()).toHaveLength(2);
    expect(broker.sources.start.messages).toEqual([]);
    expect(broker.outcomes).toMatchObject([{ replyTo: "_INBOX.durable_timer.me.1", outcome: { outcome: "accepted", fence: 1 } }]);
    expect(metrics.count("start accepted")).toBe(2);
  });

  test("takes two copies of a start one after the other", async () => {
    const { clock, broker, metrics, open, start } = setUp();
    start(testTimer(1));
    start(testTimer(1));
    open("start");
    await clock.advance(10);
    expect([metrics.count("start accepted"), metrics.count("start duplicate")]).toEqual([1, 1]);
    expect(broker.sources.start.messages).toEqual([]);
  });

  test("terminates what it cannot read, keeps its context and says why", async () => {
    const { clock, broker, metrics, open } = setUp();
    open("start");
    broker.send("start", { contextHeader: '{"v":2}', replyTo: "_INBOX.durable_timer.me.1" });
    await clock.advance(10);
    expect(broker.sources.start.settled).toMatchObject([{ how: "terminate", reason: "context_invalid" }]);
    expect(broker.rejected).toMatchObject([{ code: "context_invalid", contextHeader: '{"v":2}' }]);
    expect(broker.outcomes).toMatchObject([{ outcome: { outcome: "rejected", code: "context_invalid" } }]);
    expect(metrics.count("rejected context_invalid")).toBe(1);
  });

  test.each([
    { name: "unprintable characters", contextHeader: "\u0001\ufffd".repeat(30_000), because: "JSON spells each with six" },
    { name: "a key as long as the context", contextHeader: `{"${"\\u0001".repeat(1_300)}":{"a":1,"a":2}}`, because: "the problem names the key" },
  ])("keeps no more than an excerpt of a context of $name", async ({ contextHeader, because }) => {
    const { clock, broker, open } = setUp();
    open("start");
    broker.send("start", { contextHeader });
    await clock.advance(10);
    const [kept] = broker.rejected;
    expect(kept?.code).toBe("context_invalid");
    expect(JSON.stringify(kept).length, because).toBeLessThan(4 * rejectedTextCharsMax + 500);
  });

  test("waits at its gate, and takes again once it opens", async () => {
    const { clock, broker, open, start } = setUp();
    let isOpen = false;
    let openGate: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => { openGate = () => { isOpen = true; resolve(); }; });
    const admit: Gate["admit"] = (sizes) => Promise.resolve({ count: sizes.length, done: () => undefined });
    open("start", { gate: { admit, isOpen: () => isOpen, waitOpen: (signal) => Promise.race([opened, new Promise<void>((resolve) => { signal.addEventListener("abort", () => { resolve(); }); })]) } });
    start(testTimer(1));
    await clock.advance(1_000);
    expect(broker.state.all()).toHaveLength(0);
    expect(broker.sources.start.isPaused).toBe(true);
    openGate();
    await clock.advance(1_000);
    expect(broker.state.all()).toHaveLength(1);
  });

  test("takes no more than it can hold in bytes while the broker is slow, and goes on afterwards", async () => {
    const { clock, broker, open, start } = setUp();
    const create = broker.ports.snapshots.create.bind(broker.ports.snapshots);
    const slow = Promise.withResolvers<undefined>();
    const ports = { ...broker.ports, snapshots: { ...broker.ports.snapshots, create: async (items: Parameters<typeof create>[0]) => { await slow.promise; return await create(items); } } };
    // A source that gives a little at a time, as one does whose buffer is bounded in bytes.
    const { start: source } = broker.ports.sources;
    const sources = { ...broker.ports.sources, start: { take: (options: Parameters<typeof source.take>[0]) => source.take({ ...options, max: 1 }), pause: () => { source.pause(); }, resume: () => { source.resume(); }, close: () => source.close() } };
    const loop = open("start", { ports: { ...ports, sources }, lookahead: 2_000 });
    const bytes = payloadBytesMax;
    const count = Math.ceil((2 * workerInHandBytesMax) / bytes);
    for (let index = 0; index < count; index += 1) start(testTimer(index, { body: new Uint8Array(bytes) }));
    await clock.advance(1_000);
    expect(loop.inHandCount() * bytes).toBeLessThan(workerInHandBytesMax + bytes);
    expect(loop.inHandCount() * bytes).toBeGreaterThan(workerBatchesInFlightMax * workerBatchBytesMax);
    slow.resolve(undefined);
    await clock.advance(5_000);
    expect(broker.state.all()).toHaveLength(count);
  });

  test("counts headers that a sender added, although they mean nothing", async () => {
    const { clock, broker, open } = setUp();
    const { start: source } = broker.ports.sources;
    const slow = Promise.withResolvers<undefined>();
    const create = async (items: Parameters<typeof broker.ports.snapshots.create>[0]) => { await slow.promise; return await broker.ports.snapshots.create(items); };
    const sources = { ...broker.ports.sources, start: { take: (options: Parameters<typeof source.take>[0]) => source.take({ ...options, max: 1 }), pause: () => { source.pause(); }, resume: () => { source.resume(); }, close: () => source.close() } };
    const loop = open("start", { ports: { ...broker.ports, sources, snapshots: { ...broker.ports.snapshots, create } }, lookahead: 2_000 });
    const byteCount = 60_000;
    for (let index = 0; index < 2_000; index += 1) {
      const { contextHeader, body } = testTimer(index).snapshot;
      const get = (name: string) => (name === headerNames.context ? contextHeader : undefined);
      broker.sources.start.add({ subject: commandSubjects.start, sequence: index + 1, timestampNs: 1n, body, headers: { get, all: () => [], byteCount } });
    }
    await clock.advance(3_000);
    expect(loop.inHandCount() * byteCount).toBeLessThan(workerInHandBytesMax + byteCount);
    slow.resolve(undefined);
  });

  test("hands a message back when the broker refuses it, and tries again later", async () => {
    const { clock, broker, metrics, open, start } = setUp();
    open("start");
    broker.faults.nthWrite("state.write", 1, "refuse");
    start(testTimer(1));
    await clock.advance(10);
    expect(metrics.count("start handed_back")).toBe(1);
    await clock.advance(1_100);
    expect(broker.state.all()).toHaveLength(1);
  });
});

describe("the wake loop", () => {
  test("holds a wake until its due time on the broker's clock and resumes then", async () => {
    const { clock, broker, metrics, open, start } = setUp();
    open("start");
    open("wake");
    start(testTimer(1, { delayMs: 5_000 }));
    await clock.advance(4_900);
    expect(metrics.held).toBe(1);
    expect(broker.resumes).toHaveLength(0);
    await clock.advance(110);
    expect(broker.resumes).toHaveLength(1);
    const [resume] = broker.resumes;
    expect((resume?.atMs ?? 0) - (resume?.record.dueAtMs ?? 0)).toBeGreaterThanOrEqual(0);
    expect((resume?.atMs ?? 0) - (resume?.record.dueAtMs ?? 0)).toBeLessThan(5);
    expect(broker.sources.wake.messages).toEqual([]);
  });

  test("is never early when its bound lags behind", async () => {
    const { clock, broker, open, start } = setUp();
    broker.clockLagMs = 300;
    open("start");
    open("wake");
    start(testTimer(1, { delayMs: 5_000 }));
    await clock.advance(5_250);
    expect(broker.resumes).toHaveLength(0);
    await clock.advance(100);
    expect(broker.resumes).toHaveLength(1);
  });

  test("extends what it holds for long", async () => {
    const { clock, broker, open } = setUp();
    const timer = testTimer(1, { delayMs: 60_000 });
    broker.addWake({ key: timer.key, generation: 0, fence: 1, dueAtMs: (clock.nowMs() + wakeEarlyMsMax - 1) as never });
    open("wake");
    await clock.advance(wakeEarlyMsMax - 2);
    expect(broker.sources.wake.settled.filter(({ how }) => how === "extend").length).toBeGreaterThanOrEqual(Math.floor(wakeEarlyMsMax / ackExtendIntervalMs));
  });

  test("drops what it held when the connection was lost, and settles nothing of it", async () => {
    const { clock, broker, open } = setUp();
    const timer = testTimer(1, { delayMs: 60_000 });
    broker.addWake({ key: timer.key, generation: 0, fence: 1, dueAtMs: (clock.nowMs() + 9_000) as never });
    const loop = open("wake");
    await clock.advance(1_000);
    expect(loop.inHandCount()).toBe(1);
    broker.disconnect();
    await clock.advance(5_000);
    expect(loop.inHandCount()).toBe(0);
    expect(broker.sources.wake.settled).toEqual([]);
  });

  test("drops a message that is no wake", async () => {
    const { clock, broker, log, open } = setUp();
    broker.sources.wake.add({ subject: "durable_timer.wake.v1.x", sequence: 9, timestampNs: 0n, headers: { get: () => undefined, all: () => [] }, body: new Uint8Array() });
    open("wake");
    await clock.advance(10);
    expect(broker.sources.wake.settled).toMatchObject([{ how: "terminate", reason: "foreign" }]);
    expect(log.messages("warn")).toEqual(["Dropped a foreign message"]);
  });
});

test("feedback for an unknown timer is refused only after a second look", async () => {
  const { clock, broker, open } = setUp();
  open("feedback");
  const { lineage, snapshotHash } = testTimer(1).start;
  const context = { v: 1 as const, ...lineage, generation: 0, fence: 2, snapshotHash, payloadHash: payloadHash(new Uint8Array(), sha256) };
  broker.send("complete", { contextHeader: writeContext(context) });
  await clock.advance(newerInputRecheckMs - 100);
  expect(broker.sources.feedback.settled.filter(({ how }) => how === "terminate")).toEqual([]);
  await clock.advance(200);
  expect(broker.sources.feedback.settled).toMatchObject([{ how: "terminate", reason: "unknown_timer" }]);
});

describe("messages that wait for a second look", () => {
  const unknown = (index: number) => {
    const { lineage, snapshotHash } = testTimer(index).start;
    return writeContext({ v: 1 as const, ...lineage, generation: 0, fence: 2, snapshotHash, payloadHash: payloadHash(new Uint8Array(), sha256) });
  };

  test("do not take the place of others: feedback behind a flood of them is worked on at once", async () => {
    const { clock, broker, open, start } = setUp();
    const timer = testTimer(1, { delayMs: 0 });
    open("start");
    open("wake");
    start(timer);
    await clock.advance(1_000);
    for (let index = 0; index < 300; index += 1) broker.send("complete", { contextHeader: unknown(1_000 + index) });
    broker.send("complete", { contextHeader: writeContext({ v: 1, ...timer.start.lineage, generation: 0, fence: 2, snapshotHash: timer.start.snapshotHash, payloadHash: payloadHash(new Uint8Array(), sha256) }) });
    open("feedback", { lookahead: 100 });
    await clock.advance(newerInputRecheckMs / 2);
    expect(broker.recordOf(timer.key)).toBeUndefined();
    expect(broker.sources.feedback.settled.map(({ how }) => how)).toEqual(["ack"]);
    await clock.advance(newerInputRecheckMs);
    expect(broker.sources.feedback.settled.filter(({ reason }) => reason === "unknown_timer")).toHaveLength(300);
  });

  test("are handed back beyond their share, and refused at the second look when they come again", async () => {
    const { clock, broker, open } = setUp();
    const body = new Uint8Array(payloadBytesMax);
    const count = Math.ceil((3 * doubtfulBytesMax) / body.length);
    for (let index = 0; index < count; index += 1) {
      const { lineage, snapshotHash } = testTimer(index).start;
      broker.send("complete", { body, contextHeader: writeContext({ v: 1, ...lineage, generation: 0, fence: 2, snapshotHash, payloadHash: payloadHash(body, sha256) }) });
    }
    const loop = open("feedback", { lookahead: 1_000 });
    await clock.advance(newerInputRecheckMs / 2);
    expect(loop.inHandCount() * body.length).toBeLessThanOrEqual(doubtfulBytesMax);
    expect(broker.sources.feedback.settled.every(({ how }) => how === "nak")).toBe(true);
    await clock.advance(2 * newerInputRecheckMs);
    expect(broker.sources.feedback.settled.filter(({ reason }) => reason === "unknown_timer")).toHaveLength(count);
    // One look more than a held message has would show as a second hand-back.
    expect(broker.sources.feedback.settled.filter(({ how }) => how === "nak").length).toBeLessThan(count);
  });
});

describe("a flood of one flow", () => {
  const inHandFairly = async (loop: SourceName) => {
    const { clock, broker, open, start } = setUp();
    const timers = Array.from({ length: 1_010 }, (_, index) => testTimer(index, { delayMs: 0, ...(index < 1_000 ? { flow: "flood" } : { flow: "quiet" }) }));
    const order: string[] = [];
    const write = broker.ports.state.write.bind(broker.ports.state);
    const slow = async (items: Parameters<typeof write>[0]) => { order.push(...items.map(({ record }) => record.lineage.flow.id)); await clock.sleep(100 as DurationMs); return await write(items); };
    const ports = { ...broker.ports, state: { ...broker.ports.state, read: broker.ports.state.read.bind(broker.ports.state), remove: broker.ports.state.remove.bind(broker.ports.state), write: slow } };
    if (loop !== "start") {
      open("start", { lookahead: 2_000 });
      if (loop === "feedback") open("wake", { lookahead: 2_000 });
      for (const timer of timers) start(timer);
      await clock.advance(20_000);
      for (const { start: { lineage, snapshotHash } } of loop === "feedback" ? timers : []) broker.send("complete", { contextHeader: writeContext({ v: 1, ...lineage, generation: 0, fence: 2, snapshotHash, payloadHash: payloadHash(new Uint8Array(), sha256) }) });
    } else for (const timer of timers) start(timer);
    open(loop, { ports, lookahead: 2_000 });
    await clock.advance(20_000);
    return order;
  };

  test.each(["start", "wake", "feedback"] as const)("leaves the quiet one's place in the next batches: %s", async (loop) => {
    const order = await inHandFairly(loop);
    expect(order.filter((flow) => flow === "quiet")).toHaveLength(10);
    // Two batches may be under way when the last of the look-ahead arrives; the next one holds all of the quiet flow.
    expect(order.lastIndexOf("quiet")).toBeLessThan((workerBatchesInFlightMax + 1) * workerBatchSizeMax);
    expect(order).toHaveLength(1_010);
  }, 60_000);
});

test("a start that comes a thousand times is answered as often, and holds up no other", async () => {
  const { clock, broker, metrics, open, start } = setUp();
  const create = broker.ports.snapshots.create.bind(broker.ports.snapshots);
  let createCount = 0;
  const slow = async (items: Parameters<typeof create>[0]) => { createCount += 1; await clock.sleep(50 as DurationMs); return await create(items); };
  for (let index = 0; index < 1_000; index += 1) start(testTimer(1));
  for (let index = 0; index < 20; index += 1) start(testTimer(1, { maxRetries: 2 }));
  start(testTimer(2));
  open("start", { ports: { ...broker.ports, snapshots: { ...broker.ports.snapshots, create: slow } }, lookahead: 100 });
  await clock.advance(5_000);
  expect(broker.state.all()).toHaveLength(2);
  expect(broker.sources.start.messages).toEqual([]);
  expect([metrics.count("start accepted"), metrics.count("start duplicate"), metrics.count("rejected start_conflict")]).toEqual([2, 999, 20]);
  expect(createCount).toBeLessThan(100);
}, 60_000);

describe("a message handed back", () => {
  test("waits by how often it failed, not by how often it was delivered", async () => {
    const { clock, broker, open, start } = setUp();
    start(testTimer(1));
    const first = open("start");
    for (let round = 0; round < 8; round += 1) {
      broker.sources.start.redeliverAll();
      const taken = await broker.ports.sources.start.take({ max: 1, expiresMs: 1 as DurationMs, signal: new AbortController().signal });
      taken[0]?.nak(0 as DurationMs);
    }
    broker.faults.nthWrite("state.write", 1, "refuse");
    await clock.advance(redeliveryDelayMs + 100);
    expect(broker.state.all()).toHaveLength(1);
    expect(first.inHandCount()).toBe(0);
  });

  test("is tried again within the longest delay, however often it failed", async () => {
    const { clock, broker, open, start } = setUp();
    open("start");
    for (let nth = 1; nth <= 12; nth += 1) broker.faults.nthWrite("state.write", nth, "refuse");
    start(testTimer(1));
    await clock.advance(60_000);
    const failed = broker.sources.start.settled.filter(({ how }) => how === "nak").length;
    // 1, 2, 4, 8, 10, 10 …
    expect(failed).toBeGreaterThanOrEqual(8);
    await clock.advance(12 * redeliveryDelayMsMax);
    expect(broker.state.all()).toHaveLength(1);
  });
});

describe("progress", () => {
  const stuckFor = async (name: SourceName, over: (broker: FakeBroker, released: Promise<undefined>) => Partial<LoopOptions["ports"]>) => {
    const { clock, broker, open, start } = setUp();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    start(testTimer(1));
    const loop = open(name, { ports: { ...broker.ports, ...over(broker, promise) } });
    for (const partMs of [workerBatchMsMax, loopStallMsMax]) await clock.advance(partMs);
    const stuckMs = clock.monotonicMs() - loop.progressAtMs();
    resolve(undefined);
    return stuckMs;
  };

  test("is made by a loop that has nothing to do", async () => {
    expect(await stuckFor("wake", () => ({}))).toBeLessThan(loopStallMsMax);
  });

  test("is not made by a loop whose batch never ends", async () => {
    const stuckMs = await stuckFor("start", ({ ports: { snapshots } }, released) => ({ snapshots: { ...snapshots, create: (items) => released.then(() => snapshots.create(items)) } }));
    expect(stuckMs).toBeGreaterThan(loopStallMsMax);
  });

  test("is not made by a loop whose source never answers", async () => {
    const silent = (released: Promise<undefined>) => ({ take: () => released.then(() => []), pause: () => undefined, resume: () => undefined, close: () => Promise.resolve() });
    expect(await stuckFor("start", ({ ports: { sources } }, released) => ({ sources: { ...sources, start: silent(released) } }))).toBeGreaterThan(loopStallMsMax);
  });
});

test("a wake that claims to be far too early is judged by its record, and held for nobody", async () => {
  const { clock, broker, open } = setUp();
  open("wake", { lookahead: 5 });
  for (let index = 0; index < 20; index += 1) broker.addWake({ key: testTimer(index).key, generation: 0, fence: 1, dueAtMs: (clock.nowMs() + 1e9) as never });
  await clock.advance(4 * newerInputRecheckMs);
  expect(broker.sources.wake.messages).toEqual([]);
});

test("stopping hands back what is held and waits for what is being written", async () => {
  const { clock, broker, open, start, metrics } = setUp();
  start(testTimer(1, { delayMs: 20_000 }));
  open("start");
  const wakes = open("wake");
  await clock.advance(19_700);
  expect(wakes.inHandCount()).toBe(1);
  expect(metrics.held).toBe(1);
  await Promise.all([wakes.stop(1_000 as DurationMs), clock.advance(1_000)]);
  expect(wakes.inHandCount()).toBe(0);
  expect(broker.sources.wake.settled.at(-1)).toMatchObject({ how: "nak" });
  expect(metrics.held).toBe(0);
});
