import { describe, expect, test } from "vitest";
import { stateMarkerTtlMs, sweepLeaseMs, sweepPauseMs, sweepProbeSizeMax, sweepRepublishCountMax, sweepStuckRecheckMs, sweepSuspectCountMax, wakeLeadMs } from "../../src/base/limits.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { elapsedRecord, terminalRecord, testTimer, waitingRecord } from "../fakes/timers.ts";
import { nameOf } from "../fakes/worker-ports.ts";
import { SweepWorld, graceMs, intervalMs, many, nextSweepMs, oneSweepMs } from "./sweep-world.ts";

describe("a sweep over waiting records", () => {
  test("arms what has neither schedule nor wake, once, with generation, fence and due time of the record", async () => {
    await using world = new SweepWorld();
    const timers = many(7).map((timer) => world.put(timer, waitingRecord(timer)));
    const metrics = await world.sweep();
    for (const timer of timers) expect(world.armed(timer)).toMatchObject({ generation: 0, fence: 1, dueAtMs: waitingRecord(timer).dueAtMs, fireAtMs: waitingRecord(timer).dueAtMs - wakeLeadMs });
    expect(metrics.count("sweep armed")).toBe(7);
    const again = await world.sweep("w2");
    expect(again.count("sweep armed")).toBe(0);
    expect(world.broker.scheduleSequence).toBe(7);
  });

  test("arms what is overdue, so that it is woken at once", async () => {
    await using world = new SweepWorld();
    const timer = world.put(testTimer(1), waitingRecord(testTimer(1)));
    await world.clock.advance(3_600_000);
    const metrics = await world.sweep();
    await world.clock.advance(1);
    world.broker.fireSchedules();
    expect(world.broker.wakes.get(nameOf(timer.key))).toMatchObject({ generation: 0, fence: 1 });
    expect(metrics.found).toMatchObject({ waiting: 1, overdue: 1, oldestOverdueMs: 3_540_000 });
  });

  test("leaves those due after the next two sweeps to them", async () => {
    await using world = new SweepWorld();
    const soon = world.put(testTimer(1, { delayMs: 2 * intervalMs - 1_000 }), waitingRecord(testTimer(1, { delayMs: 2 * intervalMs - 1_000 })));
    const late = world.put(testTimer(2, { delayMs: 2 * intervalMs + 60_000 }), waitingRecord(testTimer(2, { delayMs: 2 * intervalMs + 60_000 })));
    const { metrics } = world.start("w1");
    await world.clock.advance(oneSweepMs);
    expect(world.armed(soon)).toBeDefined();
    expect(world.armed(late)).toBeUndefined();
    await world.clock.advance(nextSweepMs);
    expect(world.armed(late)).toBeDefined();
    expect(metrics.sweeps).toEqual(["completed", "completed"]);
  });

  test("leaves schedules and wakes that are in order, and writes nothing about them", async () => {
    await using world = new SweepWorld();
    const armed = world.put(testTimer(1), waitingRecord(testTimer(1)));
    await world.arm(armed, waitingRecord(armed));
    const waking = world.put(testTimer(2), waitingRecord(testTimer(2)));
    world.broker.addWake({ key: waking.key, generation: 0, fence: 1, dueAtMs: waitingRecord(waking).dueAtMs });
    const before = world.broker.scheduleSequence;
    const metrics = await world.sweep();
    expect(world.broker.scheduleSequence).toBe(before);
    expect([...metrics.counts.keys()].filter((name) => name.startsWith("sweep "))).toEqual([]);
  });

  test("puts the record's schedule over one of an older generation", async () => {
    await using world = new SweepWorld();
    const timer = testTimer(1);
    const retried = waitingRecord(timer, { generation: 1, fence: 3 });
    world.put(timer, retried);
    await world.arm(timer, waitingRecord(timer));
    const metrics = await world.sweep();
    expect(world.armed(timer)).toMatchObject({ generation: 1, fence: 3 });
    expect(metrics.count("sweep rearmed")).toBe(1);
  });

  test("leaves a record that its writer changed while it was looked at", async () => {
    await using world = new SweepWorld();
    const timer = world.put(testTimer(1), waitingRecord(testTimer(1)));
    const look = world.broker.ports.schedules.look.bind(world.broker.ports.schedules);
    world.broker.ports.schedules.look = async (keys, from) => {
      const looks = await look(keys, from);
      world.put(timer, elapsedRecord(timer));
      return looks;
    };
    const metrics = await world.sweep();
    expect(world.armed(timer)).toBeUndefined();
    expect(metrics.count("sweep superseded")).toBe(1);
  });

  test("asks the leader only about what a replica does not show", async () => {
    await using world = new SweepWorld();
    const timers = many(3).map((timer) => world.put(timer, waitingRecord(timer)));
    for (const timer of timers) await world.arm(timer, waitingRecord(timer));
    world.broker.staleReads.replica = 1;
    const asked: string[] = [];
    const look = world.broker.ports.schedules.look.bind(world.broker.ports.schedules);
    world.broker.ports.schedules.look = (keys, from) => {
      asked.push(`${from ?? "leader"} ${String(keys.length)}`);
      return look(keys, from);
    };
    const metrics = await world.sweep();
    expect(asked).toEqual(["replica 3", "leader 1"]);
    expect([...metrics.counts.keys()].filter((name) => name.startsWith("sweep "))).toEqual([]);
  });

  test("looks at the few of many parts of the walk together", async () => {
    await using world = new SweepWorld();
    many(9).forEach((timer) => world.put(timer, waitingRecord(timer)));
    expect(world.broker.walkBatchSize).toBeLessThan(9);
    const asked: string[] = [];
    const look = world.broker.ports.schedules.look.bind(world.broker.ports.schedules);
    world.broker.ports.schedules.look = (keys, from) => {
      asked.push(`${from ?? "leader"} ${String(keys.length)}`);
      return look(keys, from);
    };
    await world.sweep();
    expect(asked).toEqual(["replica 9", "leader 9"]);
    expect(world.broker.schedules.size).toBe(9);
  });

  test("asks the leader's archive only about what a replica shows", async () => {
    await using world = new SweepWorld();
    const [alive, ended] = [testTimer(1), testTimer(2)];
    for (const timer of [alive, ended]) world.put(timer, waitingRecord(timer));
    world.broker.archive.set(ended.key, encodeRecord(terminalRecord(ended)));
    await world.clock.advance(stateMarkerTtlMs);
    const asked: string[] = [];
    const read = world.broker.ports.archive.read.bind(world.broker.ports.archive);
    world.broker.ports.archive.read = (keys, from) => {
      asked.push(`${from ?? "leader"} ${String(keys.length)}`);
      return read(keys, from);
    };
    const metrics = await world.sweep();
    expect(asked).toEqual(["replica 2", "leader 1"]);
    expect(metrics.count("sweep removed")).toBe(1);
    expect(world.broker.state.last(alive.key)?.value).toEqual(encodeRecord(waitingRecord(alive)));
  });

  test("keeps its lease while it meets nothing that needs a closer look", async () => {
    await using world = new SweepWorld();
    const far = { delayMs: 100 * intervalMs };
    many(10, far).forEach((timer) => world.put(timer, waitingRecord(timer)));
    world.broker.walkBatchSize = 1;
    const walk = world.broker.ports.walk.walk.bind(world.broker.ports.walk);
    world.broker.ports.walk.walk = async function* slow(signal) {
      for await (const batch of walk(signal)) {
        await world.clock.sleep((sweepLeaseMs / 2) as never, signal);
        yield batch;
      }
    };
    const { metrics } = world.start("w1");
    const other = world.start("w2");
    await world.clock.advance(5 * sweepLeaseMs + oneSweepMs);
    expect(metrics.sweeps).toEqual(["completed"]);
    expect(other.metrics.sweeps).toEqual(["held_by_another"]);
  });

  test("sweeps more records than one portion holds", async () => {
    await using world = new SweepWorld();
    const timers = many(sweepProbeSizeMax + 5).map((timer) => world.put(timer, waitingRecord(timer)));
    world.broker.walkBatchSize = timers.length;
    await world.sweep();
    expect(world.broker.schedules.size).toBe(timers.length);
    expect(world.summary()?.waiting).toBe(timers.length);
  });
});

test("between the portions of a walk everything else gets its turn", async () => {
  await using world = new SweepWorld();
  many(9).forEach((timer) => world.put(timer, waitingRecord(timer)));
  await world.sweep();
  expect(world.summary()?.durationMs).toBe((9 / world.broker.walkBatchSize) * sweepPauseMs);
});

describe("a schedule that does not fire", () => {
  test("is published again after two looks, over its sequence", async () => {
    await using world = new SweepWorld();
    const timer = world.put(testTimer(1), waitingRecord(testTimer(1)));
    await world.armStuck([timer]);
    await world.clock.advance(60_000 + graceMs + 1);
    const sequence = world.armed(timer)?.sequence ?? 0;
    const { metrics } = world.start("w1");
    await world.clock.advance(sweepStuckRecheckMs - 1);
    expect(world.armed(timer)?.sequence).toBe(sequence);
    await world.clock.advance(1_000);
    expect(metrics.count("sweep republished")).toBe(1);
    world.broker.fireSchedules();
    expect(world.broker.wakes.get(nameOf(timer.key))).toMatchObject({ fence: 1 });
  });

  test("is left while a burst is being worked off in order", async () => {
    await using world = new SweepWorld();
    const timers = many(6).map((timer) => world.put(timer, waitingRecord(timer)));
    await world.armStuck(timers);
    await world.clock.advance(60_000 + graceMs + 1);
    const { metrics } = world.start("w1");
    // The first look is over by then, the second one is not.
    await world.clock.advance(sweepStuckRecheckMs / 2);
    for (const timer of timers.slice(0, 3)) world.broker.stuck.delete(nameOf(timer.key));
    await world.clock.advance(oneSweepMs);
    expect(metrics.count("sweep republished")).toBe(0);
  });

  test("is recognised when a later one has fired", async () => {
    await using world = new SweepWorld();
    const timers = many(4).map((timer) => world.put(timer, waitingRecord(timer)));
    await world.armStuck(timers);
    await world.clock.advance(60_000 + graceMs + 1);
    const { metrics } = world.start("w1");
    // The first look is over by then, the second one is not.
    await world.clock.advance(sweepStuckRecheckMs / 2);
    for (const index of [0, 2]) world.broker.stuck.delete(nameOf(timers[index]?.key ?? { flow: "", ref: "" }));
    await world.clock.advance(oneSweepMs);
    expect(metrics.count("sweep republished")).toBe(1);
    expect(world.broker.stuck.has(nameOf(timers[1]?.key ?? { flow: "", ref: "" }))).toBe(false);
  });

  test("is left when its wake is there after all", async () => {
    await using world = new SweepWorld();
    const timer = world.put(testTimer(1), waitingRecord(testTimer(1)));
    await world.armStuck([timer]);
    await world.clock.advance(60_000 + graceMs + 1);
    const { metrics } = world.start("w1");
    await world.clock.advance(sweepStuckRecheckMs - 1);
    world.broker.addWake({ key: timer.key, generation: 0, fence: 1, dueAtMs: waitingRecord(timer).dueAtMs });
    await world.clock.advance(oneSweepMs);
    expect(metrics.count("sweep republished")).toBe(0);
    expect(metrics.sweeps).toEqual(["completed"]);
  });

  test("is published again in bounded numbers", async () => {
    await using world = new SweepWorld();
    const timers = many(sweepRepublishCountMax + 20).map((timer) => world.put(timer, waitingRecord(timer)));
    expect(timers.length).toBeLessThan(sweepSuspectCountMax);
    world.broker.walkBatchSize = timers.length;
    await world.armStuck(timers);
    await world.clock.advance(60_000 + graceMs + 1);
    const metrics = await world.sweep();
    expect(metrics.count("sweep republished")).toBe(sweepRepublishCountMax);
  });
});

describe("records that cannot be read", () => {
  test("are counted and left alone", async () => {
    await using world = new SweepWorld();
    const damaged = testTimer(1);
    world.broker.state.set(damaged.key, new Uint8Array([0xff]));
    const fine = world.put(testTimer(2), waitingRecord(testTimer(2)));
    const metrics = await world.sweep();
    expect(metrics.found).toMatchObject({ unreadable: 1, waiting: 1 });
    expect(world.broker.state.last(damaged.key)?.value).toEqual(new Uint8Array([0xff]));
    expect(world.armed(fine)).toBeDefined();
  });

  test("a resume whose snapshot is not the record's is set aside", async () => {
    await using world = new SweepWorld();
    const timer = world.put(testTimer(1), elapsedRecord(testTimer(1)));
    world.broker.snapshots.set(timer.key, { ...timer.snapshot, body: new Uint8Array([1]) });
    const metrics = await world.sweep();
    expect(world.broker.resumes).toEqual([]);
    expect(metrics.count("sweep set_aside")).toBe(1);
    expect(world.log.lines.find(({ level }) => level === "error")?.fields).toMatchObject({ ref: timer.key.ref, phase: "elapsed" });
  });
});
