import { describe, expect, test } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import { duplicateWindowMs, sweepBreakMarginMs, sweepLeaseMs, sweepObserveMs, sweepRetryMsMin, sweepTickMs } from "../../src/base/limits.ts";
import { later, type EpochMs } from "../../src/base/units.ts";
import { leaseKeys } from "../../src/protocol/names.ts";
import { encodeSummary } from "../../src/worker/sweep-summary.ts";
import { elapsedRecord, ms, testTimer, waitingRecord } from "../fakes/timers.ts";
import { SweepWorld, intervalMs, nextSweepMs, oneSweepMs } from "./sweep-world.ts";

describe("a break of SCHEDULES", () => {
  test("the first sweep of all publishes every owed resume, since nobody knows what was before", async () => {
    await using world = new SweepWorld();
    const timer = world.put(testTimer(1), elapsedRecord(testTimer(1)));
    await world.clock.advance(3_600_000);
    const metrics = await world.sweep();
    expect(world.broker.resumes).toMatchObject([{ key: timer.key, record: { fence: 2, generation: 0 } }]);
    expect(world.broker.resumes[0]?.body).toEqual(timer.snapshot.body);
    expect(metrics.count("sweep resumed")).toBe(1);
  });

  test("without one, an elapsed record is left alone", async () => {
    await using world = new SweepWorld();
    await world.settleFirst();
    world.put(testTimer(1), elapsedRecord(testTimer(1)));
    await world.clock.advance(60_000);
    await world.sweep();
    expect(world.broker.resumes).toEqual([]);
    expect(world.summary()).toMatchObject({ elapsed: 1 });
  });

  test("re-created: everything waiting is armed once and everything elapsed is resumed again, however long ago", async () => {
    await using world = new SweepWorld();
    const long = world.put(testTimer(1), elapsedRecord(testTimer(1)));
    const waiting = [2, 3].map((index) => world.put(testTimer(index, { delayMs: 7_200_000 + index }), waitingRecord(testTimer(index, { delayMs: 7_200_000 + index }))));
    await world.clock.advance(7_000_000);
    const { metrics } = world.start("w1");
    await world.clock.advance(oneSweepMs);
    expect(world.broker.resumes.map(({ key }) => key)).toEqual([long.key]);
    expect(world.broker.schedules.size).toBe(2);
    const recent = world.put(testTimer(4), elapsedRecord(testTimer(4), { elapsedAtMs: (world.clock.nowMs() - sweepBreakMarginMs / 2) as EpochMs }));
    await world.clock.advance(duplicateWindowMs);
    world.broker.recreateSchedules();
    await world.clock.advance(sweepObserveMs + sweepTickMs + oneSweepMs);
    expect(world.broker.schedules.size).toBe(2);
    for (const timer of waiting) expect(world.armed(timer)).toMatchObject({ fence: 1 });
    expect(world.broker.resumes.map(({ key }) => key)).toEqual([long.key, long.key, recent.key]);
    expect(metrics.count("sweep armed")).toBe(4);
    expect(world.log.messages("warn")).toContain("Found the schedules stream begun anew or gone back");
  });

  test("of a stream whose tail is lost reaches back by the margin, not further", async () => {
    await using world = new SweepWorld();
    const long = world.put(testTimer(1), elapsedRecord(testTimer(1)));
    await world.settleFirst();
    expect(world.broker.resumes.map(({ key }) => key)).toEqual([long.key]);
    await world.clock.advance(2 * sweepBreakMarginMs);
    await world.sweep();
    const recent = world.put(testTimer(4), elapsedRecord(testTimer(4), { elapsedAtMs: world.clock.nowMs() }));
    const { topology } = world.broker;
    if (topology.kind === "usable") world.broker.topology = { ...topology, schedules: { ...topology.schedules, serverId: "restarted" } };
    world.start("w2");
    await world.clock.advance(oneSweepMs);
    expect(world.broker.resumes.map(({ key }) => key)).toEqual([long.key, recent.key]);
  });

  test("a resume whose wake is still there is left to its wake", async () => {
    await using world = new SweepWorld();
    const timer = world.put(testTimer(1), elapsedRecord(testTimer(1)));
    world.broker.addWake({ key: timer.key, generation: 0, fence: 1, dueAtMs: elapsedRecord(timer).dueAtMs });
    await world.sweep();
    expect(world.broker.resumes).toEqual([]);
  });

  test("is looked for at once when the broker was reached again", async () => {
    await using world = new SweepWorld();
    const { sweeper, metrics } = world.start("w1");
    await world.clock.advance(oneSweepMs);
    const topology = world.broker.topology;
    if (topology.kind === "usable") world.broker.topology = { ...topology, schedules: { ...topology.schedules, serverId: "restarted" } };
    const timer = world.put(testTimer(1), elapsedRecord(testTimer(1), { elapsedAtMs: world.clock.nowMs() }));
    sweeper.request("reconnected");
    await world.clock.advance(1);
    expect(world.broker.resumes.map(({ key }) => key)).toEqual([timer.key]);
    expect(metrics.sweeps).toEqual(["completed", "completed"]);
  });

  test("a reconnect to the same broker sweeps nothing", async () => {
    await using world = new SweepWorld();
    const { sweeper, metrics } = world.start("w1");
    await world.clock.advance(oneSweepMs);
    sweeper.request("reconnected");
    await world.clock.advance(oneSweepMs);
    expect(metrics.sweeps).toEqual(["completed"]);
  });

  test("is not forgotten before all it owed was published", async () => {
    await using world = new SweepWorld();
    await world.settleFirst();
    const timer = world.put(testTimer(1), elapsedRecord(testTimer(1), { elapsedAtMs: world.clock.nowMs() }));
    world.broker.recreateSchedules();
    world.broker.faults.failAll("resumes.publish");
    const { metrics } = world.start("w1");
    await world.clock.advance(oneSweepMs);
    expect(world.summary()?.owedSinceMs).toBeDefined();
    expect(metrics.sweeps).toEqual(["incomplete"]);
    await world.clock.advance(3_600_000);
    expect(world.broker.resumes).toEqual([]);
    world.broker.faults.heal();
    await world.clock.advance(nextSweepMs);
    expect(world.broker.resumes.map(({ key }) => key)).toEqual([timer.key]);
    expect(world.summary()?.owedSinceMs).toBeUndefined();
  });
});

describe("debts of a break", () => {
  test("are taken over by whichever worker comes first", async () => {
    await using world = new SweepWorld();
    world.put(testTimer(1), elapsedRecord(testTimer(1)));
    world.broker.faults.failAll("resumes.publish");
    const [first, second] = [world.start("w1"), world.start("w2")];
    await world.clock.advance(1_000);
    expect(first.metrics.sweeps).toEqual(["incomplete"]);
    world.broker.faults.heal();
    await world.clock.advance(sweepTickMs);
    expect(second.metrics.sweeps).toEqual(["held_by_another", "completed"]);
    expect(world.broker.resumes).toHaveLength(1);
  });
});

describe("a summary after failures", () => {
  test("owes nothing when only schedules could not be armed", async () => {
    await using world = new SweepWorld();
    world.put(testTimer(1), waitingRecord(testTimer(1)));
    world.broker.faults.failAll("schedules.arm");
    expect((await world.sweep()).sweeps).toEqual(["incomplete"]);
    expect(world.summary()).toMatchObject({ waiting: 1 });
    expect(world.summary()?.owedSinceMs).toBeUndefined();
  });

  test("of another life of SCHEDULES does not satisfy, however fresh it is", async () => {
    await using world = new SweepWorld();
    await world.settleFirst();
    const stored = world.broker.notes.get(leaseKeys.sweepSummary);
    const summary = world.summary();
    await world.clock.advance(60_000);
    if (stored === undefined || summary === undefined) throw new Error("no summary to change");
    const text = encodeSummary({ ...summary, beganAtMs: later(world.clock.nowMs(), ms(5_000)), schedules: { ...summary.schedules, incarnation: "another" } });
    world.broker.notes.set(leaseKeys.sweepSummary, { ...stored, text });
    expect((await world.sweep()).sweeps).toEqual(["completed"]);
  });
});

describe("who sweeps, and when", () => {
  test("one of several workers sweeps at start-up and at each interval, and between two sweeps nobody writes", async () => {
    await using world = new SweepWorld();
    const workers = ["w1", "w2", "w3"].map((id) => world.start(id));
    await world.clock.advance(oneSweepMs + 2 * sweepTickMs);
    const writesOfOneSweep = 3;
    const startUp = world.noteWriteCount();
    expect(workers.flatMap(({ metrics }) => metrics.sweeps).filter((result) => result === "completed")).toHaveLength(1);
    expect(startUp).toBe(writesOfOneSweep);
    await world.clock.advance(intervalMs - 2 * oneSweepMs - 4 * sweepTickMs);
    expect(world.noteWriteCount()).toBe(startUp);
    await world.clock.advance(10 * nextSweepMs);
    const sweepCount = workers.flatMap(({ metrics }) => metrics.sweeps).filter((result) => result === "completed").length;
    expect(sweepCount).toBeGreaterThanOrEqual(10);
    expect(sweepCount).toBeLessThanOrEqual(12);
    expect(world.noteWriteCount()).toBe(sweepCount * writesOfOneSweep);
    expect(new Set(world.broker.faults.attempts)).toEqual(new Set(["notes.write"]));
    for (const { metrics } of workers) expect(metrics.found).toBeDefined();
  });

  test("a worker that died in its sweep is replaced after the lease", async () => {
    await using world = new SweepWorld();
    world.broker.notes.set(leaseKeys.sweep, { text: JSON.stringify({ v: 1, holder: "dead", state: "held", writeCount: 1 }), revision: 1 });
    const timer = world.put(testTimer(1, { delayMs: 300_000 }), waitingRecord(testTimer(1, { delayMs: 300_000 })));
    const { metrics } = world.start("w1");
    await world.clock.advance(sweepLeaseMs - sweepTickMs);
    expect(metrics.sweeps).toEqual(["held_by_another"]);
    await world.clock.advance(3 * sweepTickMs);
    expect(metrics.sweeps).toEqual(["held_by_another", "completed"]);
    expect(world.armed(timer)).toBeDefined();
  });

  test("a worker whose lease is taken over in the middle stops", async () => {
    await using world = new SweepWorld();
    const walk = world.broker.ports.walk.walk.bind(world.broker.ports.walk);
    world.broker.ports.walk.walk = async function* slow(signal) {
      for await (const batch of walk(signal)) {
        await world.clock.sleep(ms(sweepLeaseMs / 2), signal);
        world.broker.notes.set(leaseKeys.sweep, { text: "{\"v\":1,\"holder\":\"other\",\"state\":\"held\"}", revision: 99 });
        yield batch;
      }
    };
    const timer = world.put(testTimer(1), waitingRecord(testTimer(1)));
    const { metrics } = world.start("w1");
    await world.clock.advance(sweepLeaseMs / 2 + 1);
    expect(metrics.sweeps).toEqual(["interrupted"]);
    expect(world.armed(timer)).toBeUndefined();
    expect(world.summary()).toBeUndefined();
    // The other's sweep began before ours was interrupted, and after it was wanted: it will do.
    world.broker.ports.walk.walk = walk;
    await world.sweep("other");
    await world.clock.advance(60_000);
    expect(metrics.sweeps).toEqual(["interrupted"]);
    expect(world.armed(timer)).toBeDefined();
  });

  test("a sweep that another worker finished just before the lease was free is not repeated", async () => {
    await using world = new SweepWorld();
    await world.settleFirst();
    const stored = world.broker.notes.get(leaseKeys.sweepSummary);
    const summary = world.summary();
    const read = world.broker.ports.notes.read.bind(world.broker.ports.notes);
    let readCount = 0;
    world.broker.ports.notes.read = async (name) => {
      const outcome = await read(name);
      readCount += Number(name === leaseKeys.sweepSummary);
      if (readCount === 1 && stored !== undefined && summary !== undefined) {
        world.broker.notes.set(leaseKeys.sweepSummary, { ...stored, text: encodeSummary({ ...summary, beganAtMs: world.clock.nowMs() }) });
      }
      return outcome;
    };
    await world.clock.advance(10_000);
    const metrics = await world.sweep("w1");
    expect(metrics.sweeps).toEqual([]);
    expect(metrics.found).toMatchObject({ waiting: 0 });
  });

  test("a walk that the broker cut short leaves no summary, and is repeated", async () => {
    await using world = new SweepWorld();
    const walk = world.broker.ports.walk.walk.bind(world.broker.ports.walk);
    const broken = async function* (signal: AbortSignal) {
      for await (const batch of walk(signal)) yield batch;
      throw new Failure("transient", "BROKER_TIMEOUT", "read the next part");
    };
    world.broker.ports.walk.walk = broken;
    const { metrics } = world.start("w1");
    await world.clock.advance(oneSweepMs);
    expect(metrics.sweeps).toEqual(["failed"]);
    expect(world.summary()).toBeUndefined();
    world.broker.ports.walk.walk = walk;
    await world.clock.advance(2 * sweepRetryMsMin + sweepTickMs);
    expect(metrics.sweeps).toEqual(["failed", "completed"]);
  });

  test("a bug is not swallowed", async () => {
    await using world = new SweepWorld();
    world.broker.ports.walk.walk = () => { throw new TypeError("a bug"); };
    const { running } = world.start("w1");
    await expect(running).rejects.toThrow("a bug");
  });

  test("without broker, topology or clock nothing is swept, and it begins when they are there", async () => {
    await using world = new SweepWorld();
    const usable = world.broker.topology;
    world.broker.topology = { kind: "unusable", problems: ["stream DURABLE_TIMER_SCHEDULES is missing"] };
    world.broker.clockLagMs = undefined;
    const { metrics } = world.start("w1");
    await world.clock.advance(60_000);
    world.broker.topology = usable;
    await world.clock.advance(sweepObserveMs + sweepTickMs);
    expect(metrics.sweeps).toEqual([]);
    expect(world.broker.faults.attempts).toEqual([]);
    world.broker.clockLagMs = 0;
    await world.clock.advance(sweepTickMs + oneSweepMs);
    expect(metrics.sweeps).toEqual(["completed"]);
  });

  test("a stop in the middle frees the lease and leaves no summary", async () => {
    await using world = new SweepWorld();
    const walk = world.broker.ports.walk.walk.bind(world.broker.ports.walk);
    world.broker.ports.walk.walk = async function* slow(signal) {
      await world.clock.sleep(ms(10_000), signal);
      for await (const batch of walk(signal)) yield batch;
    };
    const { stop, metrics } = world.start("w1");
    await world.clock.advance(100);
    stop();
    await world.clock.advance(1);
    expect(metrics.sweeps).toEqual(["interrupted"]);
    expect(world.summary()).toBeUndefined();
    expect(JSON.parse(world.broker.notes.get(leaseKeys.sweep)?.text ?? "{}")).toMatchObject({ state: "free" });
  });
});
