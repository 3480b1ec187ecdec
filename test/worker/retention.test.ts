import { describe, expect, test } from "vitest";
import { collectionIntervalMs, snapshotWalkIntervalMs, sweepLeaseMs } from "../../src/base/limits.ts";
import { leaseKeys } from "../../src/protocol/names.ts";
import { archiveAgeMs, RetentionWorld } from "./retention-world.ts";

/** Until what was to happen at this interval has happened, jitter included. */
const oneTurnMs = collectionIntervalMs + 2_000;

describe("a collector", () => {
  test("collects what becomes old enough, at its interval, and frees the lease each time", async () => {
    const world = new RetentionWorld();
    const stop = new AbortController();
    const running = world.collector().run(stop.signal);
    world.end(4);
    await world.clock.advance(archiveAgeMs - 5_000);
    expect(world.metrics.count("collection collected")).toBe(0);
    await world.clock.advance(oneTurnMs + 5_000);
    expect(world.metrics.count("collection collected")).toBe(4);
    expect(new Set(world.metrics.collections)).toEqual(new Set(["completed"]));
    expect(world.broker.notes.get(leaseKeys.collection)?.text).toContain("\"free\"");
    stop.abort();
    await running;
    expect(world.clock.sleeperCount).toBe(0);
  });

  test("writes nothing in between, and once a day that it has seen all snapshots", async () => {
    const world = new RetentionWorld();
    const stop = new AbortController();
    const running = [world.collector({}, "w1").run(stop.signal), world.collector({}, "w2").run(stop.signal)];
    const written = () => world.broker.faults.attempts.length;
    await world.clock.advance(oneTurnMs);
    const afterFirst = written();
    await world.clock.advance(snapshotWalkIntervalMs / 2);
    expect(written()).toBe(afterFirst);
    await world.clock.advance(snapshotWalkIntervalMs / 2 + oneTurnMs);
    // The lease is taken and freed, and the day is noted.
    expect(written() - afterFirst).toBe(3);
    stop.abort();
    await Promise.all(running);
  });

  test("begins nothing, and goes on with nothing, while a data stream is not what it was", async () => {
    const world = new RetentionWorld();
    const stop = new AbortController();
    const running = world.collector().run(stop.signal);
    world.isDataWhole = false;
    world.end(2);
    await world.clock.advance(archiveAgeMs + oneTurnMs);
    expect(world.broker.faults.attempts).toEqual([]);
    world.isDataWhole = true;
    await world.clock.advance(oneTurnMs);
    expect(world.metrics.count("collection collected")).toBe(2);
    stop.abort();
    await running;
  });

  test("waits for the broker's clock, and comes back when it is there", async () => {
    const world = new RetentionWorld();
    world.end(2);
    await world.clock.advance(archiveAgeMs);
    world.broker.clockLagMs = undefined;
    const stop = new AbortController();
    const running = world.collector().run(stop.signal);
    await world.clock.advance(oneTurnMs);
    expect(world.metrics.collections).toEqual([]);
    world.broker.clockLagMs = 0;
    await world.clock.advance(oneTurnMs);
    expect(world.metrics.count("collection collected")).toBe(2);
    stop.abort();
    await running;
  });

  test("takes over from a worker that died with the lease", async () => {
    const world = new RetentionWorld();
    world.end(2);
    await world.clock.advance(archiveAgeMs);
    world.broker.notes.set(leaseKeys.collection, { text: JSON.stringify({ v: 1, holder: "dead", state: "held", writeCount: 1 }), revision: 1 });
    const stop = new AbortController();
    const running = world.collector().run(stop.signal);
    await world.clock.advance(2_000);
    expect(world.metrics.collections).toEqual(["held_by_another"]);
    await world.clock.advance(sweepLeaseMs + oneTurnMs);
    expect(world.metrics.count("collection collected")).toBe(2);
    stop.abort();
    await running;
  });
});
