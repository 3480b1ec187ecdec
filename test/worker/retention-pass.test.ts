import { describe, expect, test } from "vitest";
import { collectionPerSecondMax, orphanAgeMs, sweepReportCountMax } from "../../src/base/limits.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { tombstoneOf } from "../../src/timer/tombstone.ts";
import { terminalRecord, testTimer, waitingRecord } from "../fakes/timers.ts";
import { archiveAgeMs, dedupeMs, RetentionWorld } from "./retention-world.ts";

const counts = (world: RetentionWorld) => Object.fromEntries([...world.metrics.counts].map(([name, count]) => [name.replace("collection ", ""), count]));

describe("a pass over the archive", () => {
  test("collects what is old enough, oldest first, and nothing that is younger", async () => {
    const world = new RetentionWorld();
    const old = world.end(7);
    await world.clock.advance(archiveAgeMs);
    const young = world.end(5, 100);
    expect(await world.pass()).toMatchObject({ kind: "walked" });
    expect(counts(world)).toEqual({ collected: 7 });
    for (const timer of old) expect([world.broker.archivedOf(timer.key), world.inPlaceOf(timer)]).toEqual([undefined, { tombstone: tombstoneOf(terminalRecord(timer)), expiresInMs: dedupeMs }]);
    for (const timer of young) expect([world.broker.archivedOf(timer.key) === undefined, world.inPlaceOf(timer)]).toEqual([false, timer.snapshot]);
    expect(world.metrics.overdueMs).toBe(0);
  });

  test("asks for no lease and writes nothing when nothing is old enough", async () => {
    const world = new RetentionWorld();
    world.end(7);
    let asked = 0;
    const result = await world.pass({ holdLease: () => { asked += 1; return Promise.resolve(true); } });
    expect(result).toEqual({ kind: "walked", counts: new Map() });
    expect([asked, world.broker.faults.attempts]).toEqual([0, []]);
  });

  test("leaves everything to the worker that has the lease, and stops when it loses its own", async () => {
    const world = new RetentionWorld();
    world.end(7);
    await world.clock.advance(archiveAgeMs);
    expect(await world.pass({ holdLease: () => Promise.resolve(false) })).toEqual({ kind: "held_by_another" });
    expect(counts(world)).toEqual({});
    let portions = 0;
    expect(await world.pass({ holdLease: () => { portions += 1; return Promise.resolve(portions <= 1); } })).toEqual({ kind: "interrupted" });
    expect(counts(world)).toEqual({ collected: 3 });
  });

  test("keeps what lives or contradicts itself, says so, and goes on with the rest", async () => {
    const world = new RetentionWorld();
    const [live = testTimer(0), foreign = testTimer(1), unreadable = testTimer(2), ...others] = world.end(9);
    world.broker.state.set(live.key, encodeRecord(waitingRecord(live)));
    world.broker.snapshots.set(foreign.key, testTimer(77).snapshot);
    world.broker.archive.set(unreadable.key, Buffer.from("{}"));
    await world.clock.advance(archiveAgeMs + 5_000);
    await world.pass();
    expect(counts(world)).toEqual({ kept_live: 1, kept_unreadable: 2, collected: others.length });
    expect(world.log.lines.filter(({ level }) => level === "error").length).toBe(2);
    expect(world.metrics.overdueMs).toBe(5_000);
  });

  test("reports a few of what it keeps, and counts them all", async () => {
    const world = new RetentionWorld();
    for (const timer of world.end(30)) world.broker.snapshots.set(timer.key, testTimer(1_000).snapshot);
    await world.clock.advance(archiveAgeMs);
    await world.pass();
    expect(counts(world)).toEqual({ kept_unreadable: 30 });
    expect(world.log.lines.filter(({ level }) => level === "error").length).toBe(sweepReportCountMax);
  });

  test("believes no replica that something is absent", async () => {
    const world = new RetentionWorld();
    world.end(3);
    await world.clock.advance(archiveAgeMs);
    world.broker.staleReads.replica = 3;
    await world.pass();
    expect(counts(world)).toEqual({ collected: 3 });
    expect(world.broker.faults.attempts.filter((write) => write === "snapshots.bury").length).toBe(6);
  });

  test("keeps what it could not look at", async () => {
    const world = new RetentionWorld();
    world.end(3);
    await world.clock.advance(archiveAgeMs);
    world.broker.faults.failAll("state.read");
    await world.pass();
    expect(counts(world)).toEqual({ failed: 3 });
    expect(world.broker.faults.attempts).toEqual([]);
  });

  test("ends when it is told to, between two portions", async () => {
    const world = new RetentionWorld();
    world.end(9);
    await world.clock.advance(archiveAgeMs);
    const stop = new AbortController();
    const result = await world.pass({ signal: stop.signal, holdLease: () => { stop.abort(); return Promise.resolve(true); } });
    expect(result).toEqual({ kind: "interrupted" });
    expect(counts(world)).toEqual({ collected: 3 });
  });

  test("takes its time", async () => {
    const world = new RetentionWorld();
    world.end(60);
    await world.clock.advance(archiveAgeMs);
    const { ports } = world.broker;
    const beganAtMs = world.clock.monotonicMs();
    const bounds: number[] = [];
    const slow = { ...ports, state: { ...ports.state, read: async (...args: Parameters<typeof ports.state.read>) => { bounds.push(world.clock.monotonicMs()); return await ports.state.read(...args); } } };
    await world.pass({}, slow);
    expect(bounds.length).toBe(20);
    expect((bounds.at(-1) ?? 0) - beganAtMs).toBeGreaterThanOrEqual(((57 * 1_000) / collectionPerSecondMax) - 1);
  });
});

describe("a pass over the snapshots", () => {
  test("collects orphans that are old enough, and no snapshot that something belongs to", async () => {
    const world = new RetentionWorld();
    const [orphan, live] = [testTimer(500), testTimer(501)];
    for (const { key, snapshot } of [orphan, live]) world.broker.snapshots.set(key, snapshot);
    world.broker.state.set(live.key, encodeRecord(waitingRecord(live)));
    await world.clock.advance(orphanAgeMs);
    const [archived = testTimer(0)] = world.end(1);
    const young = testTimer(502);
    world.broker.snapshots.set(young.key, young.snapshot);
    await world.pass({ walksSnapshots: true });
    expect(counts(world)).toEqual({ orphan_collected: 1 });
    for (const timer of [live, archived, young]) expect(world.inPlaceOf(timer)).toEqual(timer.snapshot);
  });

  test("believes no replica that an old snapshot is an orphan", async () => {
    const world = new RetentionWorld();
    const live = testTimer(501);
    world.broker.snapshots.set(live.key, live.snapshot);
    await world.clock.advance(orphanAgeMs);
    world.broker.state.set(live.key, encodeRecord(waitingRecord(live)));
    world.broker.staleReads.replica = 2;
    await world.pass({ walksSnapshots: true });
    expect(counts(world)).toEqual({});
    expect(world.inPlaceOf(live)).toEqual(live.snapshot);
  });

  test("gives tombstones an end whose archive has gone, and leaves the others to the archive's walk", async () => {
    const world = new RetentionWorld();
    const [archived = testTimer(0)] = world.end(1);
    const gone = testTimer(9);
    for (const timer of [archived, gone]) world.broker.snapshots.set(timer.key, { tombstone: tombstoneOf(terminalRecord(timer)) });
    await world.pass({ walksSnapshots: true });
    expect(counts(world)).toEqual({ tombstone_finished: 1 });
    expect(world.inPlaceOf(gone)).toMatchObject({ expiresInMs: dedupeMs });
    expect(world.inPlaceOf(archived)).toEqual({ tombstone: tombstoneOf(terminalRecord(archived)) });
  });
});
