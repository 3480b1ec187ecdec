import { describe, expect, test } from "vitest";
import { stateMarkerTtlMs, sweepReportCountMax, sweepRetryMsMin, sweepTickMs } from "../../src/base/limits.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { terminalRecord, testTimer, waitingRecord } from "../fakes/timers.ts";
import { SweepWorld, graceMs, many, oneSweepMs } from "./sweep-world.ts";

describe("ends that were half done", () => {
  test("a terminal record is archived with exactly its bytes, unscheduled and removed", async () => {
    await using world = new SweepWorld();
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
    await using world = new SweepWorld();
    const timer = testTimer(1);
    world.put(timer, terminalRecord(timer, { endedAtMs: world.clock.nowMs() }));
    const metrics = await world.sweep();
    expect(world.broker.recordOf(timer.key)?.phase).toBe("terminal");
    expect(metrics.count("sweep finished")).toBe(0);
  });

  test("an archived record that was not removed is removed", async () => {
    await using world = new SweepWorld();
    const timer = testTimer(1);
    const record = terminalRecord(timer, { endedAtMs: world.clock.nowMs() });
    world.put(timer, record);
    world.broker.archive.set(timer.key, encodeRecord(record));
    await world.clock.advance(graceMs);
    await world.sweep();
    expect(world.broker.recordOf(timer.key)).toBeUndefined();
  });

  test("an archive that holds another end is reported, and both are kept", async () => {
    await using world = new SweepWorld();
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
    await using world = new SweepWorld();
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
    await using world = new SweepWorld();
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
    await using world = new SweepWorld();
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
    await using world = new SweepWorld();
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
