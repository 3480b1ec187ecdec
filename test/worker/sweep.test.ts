import { describe, expect, test } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import {
  duplicateWindowMs, sweepBreakMarginMs, sweepLeaseMs, sweepObserveMs, sweepPauseMs, sweepReportCountMax, sweepRepublishCountMax, sweepRetryMsMin, sweepStuckRecheckMs,
  sweepSuspectCountMax, sweepTickMs, stateMarkerTtlMs, sweepProbeSizeMax, wakeLeadMs,
} from "../../src/base/limits.ts";
import { later, type EpochMs } from "../../src/base/units.ts";
import { leaseKeys } from "../../src/protocol/names.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { seededRandom } from "../../src/system/random.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import { Sweeper } from "../../src/worker/sweep.ts";
import { decodeSummary, encodeSummary } from "../../src/worker/sweep-summary.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { FakeLog } from "../fakes/log.ts";
import { elapsedRecord, ms, terminalRecord, testTimer, waitingRecord, type TestTimer } from "../fakes/timers.ts";
import { FakeWorkerMetrics } from "../fakes/worker-metrics.ts";
import { FakeBroker, nameOf } from "../fakes/worker-ports.ts";

const intervalMs = 300_000;
const graceMs = 5_000;
/** Long enough for a turn and the second look at stuck schedules. */
const oneSweepMs = sweepStuckRecheckMs + 1_000;
/** Until the next regular sweep has certainly ended. */
const nextSweepMs = intervalMs + 2 * sweepTickMs + oneSweepMs;

class World implements AsyncDisposable {
  readonly clock = new SteppedClock();
  readonly broker = new FakeBroker(this.clock);
  readonly log = new FakeLog();
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];

  /** Starts a worker's sweeper; its start-up sweep runs as soon as time is stepped. */
  start(workerId: string) {
    const metrics = new FakeWorkerMetrics();
    const { clock, log } = this;
    const sweeper = new Sweeper({
      ports: this.broker.ports, clock, random: seededRandom(1), sha256: systemSha256, log, metrics, workerId,
      settings: { intervalMs: ms(intervalMs), graceMs: ms(graceMs) },
    });
    const own = new AbortController();
    const running = sweeper.run(AbortSignal.any([this.#stop.signal, own.signal]));
    this.#running.push(running);
    return { metrics, sweeper, running, stop: () => { own.abort(); } };
  }

  /** One worker's start-up sweep. */
  async sweep(workerId = "w1") {
    const { metrics, stop } = this.start(workerId);
    await this.clock.advance(oneSweepMs);
    stop();
    await this.clock.advance(0);
    return metrics;
  }

  /** A timer as its start and its transitions left it. */
  put(timer: TestTimer, record: TimerRecord): TestTimer {
    this.broker.snapshots.set(timer.key, timer.snapshot);
    this.broker.state.set(timer.key, encodeRecord(record));
    return timer;
  }

  async arm(timer: TestTimer, record: TimerRecord): Promise<void> {
    await this.broker.ports.schedules.arm([armItemOf(timer, record)]);
  }

  /** Armed timers whose schedules the broker does not fire. */
  async armStuck(timers: readonly TestTimer[]): Promise<void> {
    await this.broker.ports.schedules.arm(timers.map((timer) => armItemOf(timer, waitingRecord(timer))));
    for (const { key } of timers) this.broker.stuck.add(nameOf(key));
  }

  summary() {
    return decodeSummary(this.broker.notes.get(leaseKeys.sweepSummary)?.text ?? "");
  }

  /** Notes that were stored; attempts that lost their race do not count. */
  noteWriteCount(): number {
    return Math.max(...[...this.broker.notes.values()].map(({ revision }) => revision));
  }

  /** A sweep that finds everything in order, so that the next one knows what was before. */
  async settleFirst(): Promise<void> {
    await this.sweep("first");
    expect(this.summary()).toBeDefined();
  }

  armed(timer: TestTimer) {
    return this.broker.schedules.get(nameOf(timer.key));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.clock.advance(oneSweepMs);
    await Promise.allSettled(this.#running);
    expect(this.clock.sleeperCount).toBe(0);
  }
}

const armItemOf = ({ key }: TestTimer, { generation, fence, dueAtMs }: TimerRecord) => ({ key, generation, fence, dueAtMs, fireAtMs: (dueAtMs - wakeLeadMs) as EpochMs });

const many = (count: number, options: Parameters<typeof testTimer>[1] = {}) => Array.from({ length: count }, (_, index) => testTimer(index, options));

describe("a sweep over waiting records", () => {
  test("arms what has neither schedule nor wake, once, with generation, fence and due time of the record", async () => {
    await using world = new World();
    const timers = many(7).map((timer) => world.put(timer, waitingRecord(timer)));
    const metrics = await world.sweep();
    for (const timer of timers) expect(world.armed(timer)).toMatchObject({ generation: 0, fence: 1, dueAtMs: waitingRecord(timer).dueAtMs, fireAtMs: waitingRecord(timer).dueAtMs - wakeLeadMs });
    expect(metrics.count("sweep armed")).toBe(7);
    const again = await world.sweep("w2");
    expect(again.count("sweep armed")).toBe(0);
    expect(world.broker.scheduleSequence).toBe(7);
  });

  test("arms what is overdue, so that it is woken at once", async () => {
    await using world = new World();
    const timer = world.put(testTimer(1), waitingRecord(testTimer(1)));
    await world.clock.advance(3_600_000);
    const metrics = await world.sweep();
    await world.clock.advance(1);
    world.broker.fireSchedules();
    expect(world.broker.wakes.get(nameOf(timer.key))).toMatchObject({ generation: 0, fence: 1 });
    expect(metrics.found).toMatchObject({ waiting: 1, overdue: 1, oldestOverdueMs: 3_540_000 });
  });

  test("leaves those due after the next two sweeps to them", async () => {
    await using world = new World();
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
    await using world = new World();
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
    await using world = new World();
    const timer = testTimer(1);
    const retried = waitingRecord(timer, { generation: 1, fence: 3 });
    world.put(timer, retried);
    await world.arm(timer, waitingRecord(timer));
    const metrics = await world.sweep();
    expect(world.armed(timer)).toMatchObject({ generation: 1, fence: 3 });
    expect(metrics.count("sweep rearmed")).toBe(1);
  });

  test("leaves a record that its writer changed while it was looked at", async () => {
    await using world = new World();
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
    await using world = new World();
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

  test("sweeps more records than one portion holds", async () => {
    await using world = new World();
    const timers = many(sweepProbeSizeMax + 5).map((timer) => world.put(timer, waitingRecord(timer)));
    world.broker.walkBatchSize = timers.length;
    await world.sweep();
    expect(world.broker.schedules.size).toBe(timers.length);
    expect(world.summary()?.waiting).toBe(timers.length);
  });
});

test("between the portions of a walk everything else gets its turn", async () => {
  await using world = new World();
  many(9).forEach((timer) => world.put(timer, waitingRecord(timer)));
  await world.sweep();
  expect(world.summary()?.durationMs).toBe((9 / world.broker.walkBatchSize) * sweepPauseMs);
});

describe("a schedule that does not fire", () => {
  test("is published again after two looks, over its sequence", async () => {
    await using world = new World();
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
    await using world = new World();
    const timers = many(6).map((timer) => world.put(timer, waitingRecord(timer)));
    await world.armStuck(timers);
    await world.clock.advance(60_000 + graceMs + 1);
    const { metrics } = world.start("w1");
    await world.clock.advance(1);
    for (const timer of timers.slice(0, 3)) world.broker.stuck.delete(nameOf(timer.key));
    await world.clock.advance(oneSweepMs);
    expect(metrics.count("sweep republished")).toBe(0);
  });

  test("is recognised when a later one has fired", async () => {
    await using world = new World();
    const timers = many(4).map((timer) => world.put(timer, waitingRecord(timer)));
    await world.armStuck(timers);
    await world.clock.advance(60_000 + graceMs + 1);
    const { metrics } = world.start("w1");
    await world.clock.advance(1);
    for (const index of [0, 2]) world.broker.stuck.delete(nameOf(timers[index]?.key ?? { flow: "", ref: "" }));
    await world.clock.advance(oneSweepMs);
    expect(metrics.count("sweep republished")).toBe(1);
    expect(world.broker.stuck.has(nameOf(timers[1]?.key ?? { flow: "", ref: "" }))).toBe(false);
  });

  test("is left when its wake is there after all", async () => {
    await using world = new World();
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
    await using world = new World();
    const timers = many(sweepRepublishCountMax + 20).map((timer) => world.put(timer, waitingRecord(timer)));
    expect(timers.length).toBeLessThan(sweepSuspectCountMax);
    world.broker.walkBatchSize = timers.length;
    await world.armStuck(timers);
    await world.clock.advance(60_000 + graceMs + 1);
    const metrics = await world.sweep();
    expect(metrics.count("sweep republished")).toBe(sweepRepublishCountMax);
  });
});

describe("a break of SCHEDULES", () => {
  test("the first sweep of all publishes every owed resume, since nobody knows what was before", async () => {
    await using world = new World();
    const timer = world.put(testTimer(1), elapsedRecord(testTimer(1)));
    await world.clock.advance(3_600_000);
    const metrics = await world.sweep();
    expect(world.broker.resumes).toMatchObject([{ key: timer.key, record: { fence: 2, generation: 0 } }]);
    expect(world.broker.resumes[0]?.body).toEqual(timer.snapshot.body);
    expect(metrics.count("sweep resumed")).toBe(1);
  });

  test("without one, an elapsed record is left alone", async () => {
    await using world = new World();
    await world.settleFirst();
    world.put(testTimer(1), elapsedRecord(testTimer(1)));
    await world.clock.advance(60_000);
    await world.sweep();
    expect(world.broker.resumes).toEqual([]);
    expect(world.summary()).toMatchObject({ elapsed: 1 });
  });

  test("re-created: everything waiting is armed once and what elapsed around the break is resumed again, nothing older", async () => {
    await using world = new World();
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
    expect(world.broker.resumes.map(({ key }) => key)).toEqual([long.key, recent.key]);
    expect(metrics.count("sweep armed")).toBe(4);
    expect(world.log.messages("warn")).toContain("Found the schedules stream begun anew or gone back");
  });

  test("a resume whose wake is still there is left to its wake", async () => {
    await using world = new World();
    const timer = world.put(testTimer(1), elapsedRecord(testTimer(1)));
    world.broker.addWake({ key: timer.key, generation: 0, fence: 1, dueAtMs: elapsedRecord(timer).dueAtMs });
    await world.sweep();
    expect(world.broker.resumes).toEqual([]);
  });

  test("is looked for at once when the broker was reached again", async () => {
    await using world = new World();
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
    await using world = new World();
    const { sweeper, metrics } = world.start("w1");
    await world.clock.advance(oneSweepMs);
    sweeper.request("reconnected");
    await world.clock.advance(oneSweepMs);
    expect(metrics.sweeps).toEqual(["completed"]);
  });

  test("is not forgotten before all it owed was published", async () => {
    await using world = new World();
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
    await using world = new World();
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
    await using world = new World();
    world.put(testTimer(1), waitingRecord(testTimer(1)));
    world.broker.faults.failAll("schedules.arm");
    expect((await world.sweep()).sweeps).toEqual(["incomplete"]);
    expect(world.summary()).toMatchObject({ waiting: 1 });
    expect(world.summary()?.owedSinceMs).toBeUndefined();
  });

  test("of another life of SCHEDULES does not satisfy, however fresh it is", async () => {
    await using world = new World();
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

describe("ends that were half done", () => {
  test("a terminal record is archived with exactly its bytes, unscheduled and removed", async () => {
    await using world = new World();
    const timer = testTimer(1);
    const { elapsedAtMs: _, ...neverElapsed } = terminalRecord(timer, { outcome: "failed", fence: 2, endedAtMs: world.clock.nowMs() });
    world.put(timer, neverElapsed);
    await world.arm(timer, waitingRecord(timer));
    await world.clock.advance(graceMs);
    const metrics = await world.sweep();
    expect(world.broker.archive.last(timer.key)?.value).toEqual(encodeRecord(neverElapsed));
    expect(world.broker.recordOf(timer.key)).toBeUndefined();
    expect(world.armed(timer)).toBeUndefined();
    expect(metrics.count("sweep finished")).toBe(1);
  });

  test("a record that its writer is about to archive is left within the grace", async () => {
    await using world = new World();
    const timer = testTimer(1);
    world.put(timer, terminalRecord(timer, { endedAtMs: world.clock.nowMs() }));
    const metrics = await world.sweep();
    expect(world.broker.recordOf(timer.key)?.phase).toBe("terminal");
    expect(metrics.count("sweep finished")).toBe(0);
  });

  test("an archived record that was not removed is removed", async () => {
    await using world = new World();
    const timer = testTimer(1);
    const record = terminalRecord(timer, { endedAtMs: world.clock.nowMs() });
    world.put(timer, record);
    world.broker.archive.set(timer.key, encodeRecord(record));
    await world.clock.advance(graceMs);
    await world.sweep();
    expect(world.broker.recordOf(timer.key)).toBeUndefined();
  });

  test("an archive that holds another end is reported, and both are kept", async () => {
    await using world = new World();
    const timers = many(sweepReportCountMax + 3);
    for (const timer of timers) {
      world.put(timer, terminalRecord(timer, { endedAtMs: world.clock.nowMs() }));
      world.broker.archive.set(timer.key, encodeRecord(terminalRecord(timer, { outcome: "failed" })));
    }
    await world.clock.advance(graceMs);
    const metrics = await world.sweep();
    expect(metrics.count("sweep set_aside")).toBe(timers.length);
    expect(metrics.sweeps).toEqual(["completed"]);
    expect(world.log.messages("error")).toHaveLength(sweepReportCountMax);
    expect(timers.every(({ key }) => world.broker.recordOf(key)?.phase === "terminal")).toBe(true);
  });

  test("a full archive keeps the record, and the sweep tries again", async () => {
    await using world = new World();
    const timer = testTimer(1);
    world.put(timer, terminalRecord(timer, { endedAtMs: world.clock.nowMs() }));
    await world.clock.advance(graceMs);
    world.broker.faults.failAll("archive.create");
    const { metrics } = world.start("w1");
    await world.clock.advance(oneSweepMs);
    expect(world.broker.recordOf(timer.key)?.phase).toBe("terminal");
    expect(metrics.sweeps).toEqual(["incomplete"]);
    world.broker.faults.heal();
    await world.clock.advance(2 * sweepRetryMsMin + 2 * sweepTickMs);
    expect(world.broker.recordOf(timer.key)).toBeUndefined();
  });

  test("a waiting record of a timer that has ended is removed, and never resumed", async () => {
    await using world = new World();
    const timer = testTimer(1, { delayMs: 3_600_000 });
    world.broker.archive.set(timer.key, encodeRecord(terminalRecord(timer)));
    world.put(timer, waitingRecord(timer));
    await world.arm(timer, waitingRecord(timer));
    await world.clock.advance(stateMarkerTtlMs);
    const metrics = await world.sweep();
    expect(world.broker.recordOf(timer.key)).toBeUndefined();
    expect(metrics.count("sweep removed")).toBe(1);
    expect(world.broker.archivedOf(timer.key)).toEqual(terminalRecord(timer));
  });

  test("the archive is asked once per record", async () => {
    await using world = new World();
    const timer = testTimer(1, { delayMs: 3_600_000 });
    world.put(timer, waitingRecord(timer));
    await world.clock.advance(stateMarkerTtlMs);
    let readCount = 0;
    const read = world.broker.ports.archive.read.bind(world.broker.ports.archive);
    world.broker.ports.archive.read = (keys) => {
      readCount += keys.length;
      return read(keys);
    };
    await world.sweep("w1");
    await world.sweep("w2");
    expect(readCount).toBe(1);
  });

  test("an archive that could not be asked is asked by the next sweep", async () => {
    await using world = new World();
    const timer = testTimer(1, { delayMs: 3_600_000 });
    world.broker.archive.set(timer.key, encodeRecord(terminalRecord(timer)));
    world.put(timer, waitingRecord(timer));
    await world.clock.advance(stateMarkerTtlMs);
    world.broker.faults.failAll("archive.read");
    expect((await world.sweep("w1")).sweeps).toEqual(["incomplete"]);
    world.broker.faults.heal();
    expect((await world.sweep("w2")).count("sweep removed")).toBe(1);
  });
});

describe("records that cannot be read", () => {
  test("are counted and left alone", async () => {
    await using world = new World();
    const damaged = testTimer(1);
    world.broker.state.set(damaged.key, new Uint8Array([0xff]));
    const fine = world.put(testTimer(2), waitingRecord(testTimer(2)));
    const metrics = await world.sweep();
    expect(metrics.found).toMatchObject({ unreadable: 1, waiting: 1 });
    expect(world.broker.state.last(damaged.key)?.value).toEqual(new Uint8Array([0xff]));
    expect(world.armed(fine)).toBeDefined();
  });

  test("a resume whose snapshot is not the record's is set aside", async () => {
    await using world = new World();
    const timer = world.put(testTimer(1), elapsedRecord(testTimer(1)));
    world.broker.snapshots.set(timer.key, { ...timer.snapshot, body: new Uint8Array([1]) });
    const metrics = await world.sweep();
    expect(world.broker.resumes).toEqual([]);
    expect(metrics.count("sweep set_aside")).toBe(1);
    expect(world.log.lines.find(({ level }) => level === "error")?.fields).toMatchObject({ ref: timer.key.ref, phase: "elapsed" });
  });
});

describe("who sweeps, and when", () => {
  test("one of several workers sweeps at start-up and at each interval, and between two sweeps nobody writes", async () => {
    await using world = new World();
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
    await using world = new World();
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
    await using world = new World();
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
    await using world = new World();
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
    await using world = new World();
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
    await using world = new World();
    world.broker.ports.walk.walk = () => { throw new TypeError("a bug"); };
    const { running } = world.start("w1");
    await expect(running).rejects.toThrow("a bug");
  });

  test("without broker, topology or clock nothing is swept, and it begins when they are there", async () => {
    await using world = new World();
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
    await using world = new World();
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
