import { afterEach, describe, expect, test } from "vitest";
import { ackExtendIntervalMs, newerInputRecheckMs, payloadBytesMax, rejectedTextCharsMax, workerBatchBytesMax, workerBatchesInFlightMax, workerInHandBytesMax } from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { writeContext } from "../../src/protocol/context.ts";
import { commandSubjects, headerNames } from "../../src/protocol/names.ts";
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
    open("start", { gate: { isOpen: () => isOpen, waitOpen: (signal) => Promise.race([opened, new Promise<void>((resolve) => { signal.addEventListener("abort", () => { resolve(); }); })]) } });
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
    broker.addWake({ key: timer.key, generation: 0, fence: 1, dueAtMs: (clock.nowMs() + 60_000) as never });
    open("wake");
    await clock.advance(ackExtendIntervalMs * 3);
    expect(broker.sources.wake.settled.filter(({ how }) => how === "extend").length).toBeGreaterThanOrEqual(2);
  });

  test("drops what it held when the connection was lost, and settles nothing of it", async () => {
    const { clock, broker, open } = setUp();
    const timer = testTimer(1, { delayMs: 60_000 });
    broker.addWake({ key: timer.key, generation: 0, fence: 1, dueAtMs: (clock.nowMs() + 20_000) as never });
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

test("stopping hands back what is held and waits for what is being written", async () => {
  const { clock, broker, open, start } = setUp();
  start(testTimer(1, { delayMs: 20_000 }));
  open("start");
  const wakes = open("wake");
  await clock.advance(19_700);
  expect(wakes.inHandCount()).toBe(1);
  await Promise.all([wakes.stop(1_000 as DurationMs), clock.advance(1_000)]);
  expect(wakes.inHandCount()).toBe(0);
  expect(broker.sources.wake.settled.at(-1)).toMatchObject({ how: "nak" });
});
