import { describe, expect, test } from "vitest";
import { decisionAgeMsMax, stateMarkerTtlMs } from "../../src/base/limits.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { tombstoneOf } from "../../src/timer/tombstone.ts";
import { collectArchived, collectOrphans, finishTombstones, type Burial } from "../../src/worker/retention-actions.ts";
import { terminalRecord, testTimer, waitingRecord, type TestTimer } from "../fakes/timers.ts";
import { dedupeMs, RetentionWorld } from "./retention-world.ts";

function burialOf(world: RetentionWorld, timer: TestTimer): Burial {
  const archiveRevision = world.broker.archive.last(timer.key)?.revision ?? -1;
  const expected = world.broker.snapshots.last(timer.key)?.revision ?? 0;
  return { key: timer.key, archiveRevision, record: terminalRecord(timer), at: { kind: "bury", expected } };
}

const soon = (world: RetentionWorld) => world.clock.monotonicMs();

describe("collecting an archived timer", () => {
  test("writes tombstone, archive marker and the tombstone's end, in this order", async () => {
    const world = new RetentionWorld();
    const [timer = testTimer(0)] = world.end(1);
    expect(await collectArchived(world.context(), [burialOf(world, timer)], soon(world))).toEqual([{ action: "collected" }]);
    expect(world.broker.faults.attempts).toEqual(["snapshots.bury", "archive.remove", "snapshots.bury"]);
    expect(world.inPlaceOf(timer)).toEqual({ tombstone: tombstoneOf(terminalRecord(timer)), expiresInMs: dedupeMs });
    expect(world.broker.archivedOf(timer.key)).toBeUndefined();
  });

  test("stops where a step has no certain result, and leaves what the next pass carries on", async () => {
    for (const [nth, operation] of [[1, "snapshots.bury"], [1, "archive.remove"], [2, "snapshots.bury"]] as const) {
      for (const fault of ["refuse", "lose_request", "lose_reply"] as const) {
        const world = new RetentionWorld();
        const [timer = testTimer(0)] = world.end(1);
        world.broker.faults.nthWrite(operation, nth, fault);
        expect(await collectArchived(world.context(), [burialOf(world, timer)], soon(world))).toMatchObject([{ action: "failed" }]);
        const isArchived = world.broker.archivedOf(timer.key) !== undefined;
        const place = world.inPlaceOf(timer);
        const isBuried = place !== undefined && !("body" in place);
        expect(isArchived || isBuried, `${operation} ${String(nth)} ${fault}`).toBe(true);
        expect(isArchived && isBuried && place.expiresInMs !== undefined, "no tombstone expires beside its archive").toBe(false);
      }
    }
  });

  test("leaves a snapshot alone that is another one by now, and its archive too", async () => {
    const world = new RetentionWorld();
    const [timer = testTimer(0), other = testTimer(1)] = world.end(2);
    const burials = [burialOf(world, timer), burialOf(world, other)];
    world.broker.snapshots.set(timer.key, timer.snapshot);
    expect(await collectArchived(world.context(), burials, soon(world))).toEqual([{ action: "superseded" }, { action: "collected" }]);
    expect(world.broker.archivedOf(timer.key)).toBeDefined();
  });

  test("does nothing on what was read too long ago", async () => {
    const world = new RetentionWorld();
    const [timer = testTimer(0)] = world.end(1);
    const burial = burialOf(world, timer);
    const decidedAtMs = soon(world);
    await world.clock.advance(decisionAgeMsMax + 1);
    expect(await collectArchived(world.context(), [burial], decidedAtMs)).toEqual([{ action: "superseded" }]);
    expect(world.broker.faults.attempts).toEqual([]);
  });
});

describe("finishing a tombstone", () => {
  test("gives it an end, over exactly the one that was met", async () => {
    const world = new RetentionWorld();
    const timer = testTimer(0);
    const grave = { tombstone: tombstoneOf(terminalRecord(timer)) };
    world.broker.snapshots.set(timer.key, grave);
    const revision = world.broker.snapshots.last(timer.key)?.revision ?? 0;
    expect(await finishTombstones(world.context(), [{ key: timer.key, revision, grave }])).toEqual([{ action: "tombstone_finished" }]);
    expect(world.inPlaceOf(timer)).toEqual({ ...grave, expiresInMs: dedupeMs });
    expect(await finishTombstones(world.context(), [{ key: timer.key, revision, grave }])).toEqual([{ action: "superseded" }]);
    expect(await finishTombstones(world.context(), [])).toEqual([]);
  });
});

describe("collecting an orphan", () => {
  const orphan = (world: RetentionWorld, timer: TestTimer) => {
    world.broker.snapshots.set(timer.key, timer.snapshot);
    return { key: timer.key, revision: world.broker.snapshots.last(timer.key)?.revision ?? 0 };
  };

  test("claims its state key first, and both go together", async () => {
    const world = new RetentionWorld();
    const timer = testTimer(0);
    expect(await collectOrphans(world.context(), [orphan(world, timer)], soon(world))).toEqual([{ action: "orphan_collected" }]);
    expect(world.broker.faults.attempts).toEqual(["state.remove", "snapshots.bury"]);
    expect(world.inPlaceOf(timer)).toEqual({ expiresInMs: stateMarkerTtlMs });
    await world.clock.advance(stateMarkerTtlMs);
    expect([world.inPlaceOf(timer), world.broker.state.last(timer.key)]).toEqual([undefined, undefined]);
  });

  test("gives way to a start that comes first", async () => {
    const world = new RetentionWorld();
    const timer = testTimer(0);
    const remains = orphan(world, timer);
    world.broker.state.set(timer.key, encodeRecord(waitingRecord(timer)));
    expect(await collectOrphans(world.context(), [remains], soon(world))).toEqual([{ action: "superseded" }]);
    expect(world.inPlaceOf(timer)).toEqual(timer.snapshot);
    expect(world.broker.recordOf(timer.key)).toBeDefined();
  });

  test("without a certain claim leaves the snapshot", async () => {
    for (const fault of ["refuse", "lose_request", "lose_reply"] as const) {
      const world = new RetentionWorld();
      const timer = testTimer(0);
      world.broker.faults.nthWrite("state.remove", 1, fault);
      expect(await collectOrphans(world.context(), [orphan(world, timer)], soon(world))).toMatchObject([{ action: "failed" }]);
      expect(world.inPlaceOf(timer)).toEqual(timer.snapshot);
    }
  });

  test("under a claim that took too long leaves the snapshot", async () => {
    const world = new RetentionWorld();
    const timer = testTimer(0);
    const { ports } = world.broker;
    const slow = { ...ports, state: { ...ports.state, remove: async (items: Parameters<typeof ports.state.remove>[0]) => { const outcomes = await ports.state.remove(items); await world.clock.advance(decisionAgeMsMax + 1); return outcomes; } } };
    expect(await collectOrphans(world.context(slow), [orphan(world, timer)], soon(world))).toEqual([{ action: "superseded" }]);
    expect(world.inPlaceOf(timer)).toEqual(timer.snapshot);
  });
});
