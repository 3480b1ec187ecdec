import { afterAll, beforeAll, expect, test } from "vitest";
import { archiveMarkerTtlMs, collectionPortionSizeMax } from "../../src/base/limits.ts";
import type { WalkedArchive, WalkedSnapshot } from "../../src/worker/ports.ts";
import { ms, testTimer } from "../fakes/timers.ts";
import { terminal, tombstone } from "../timer/records.ts";
import { freshKey, openBed } from "./bed.ts";
import type { Bed } from "./bed.ts";

let bed: Bed;
beforeAll(async () => {
  bed = await openBed();
});
afterAll(() => bed[Symbol.asyncDispose]());

const never = new AbortController().signal;

async function collected<T>(walk: AsyncIterable<readonly T[]>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const portion of walk) {
    expect(portion.length).toBeLessThanOrEqual(collectionPortionSizeMax);
    all.push(...portion);
  }
  return all;
}

test("a walk over the archive meets records with their times, oldest first, and neither markers nor rejected contexts", async () => {
  const { ports } = bed;
  const keys = Array.from({ length: collectionPortionSizeMax + 40 }, () => freshKey());
  await ports.archive.create(keys.map((key) => ({ key, record: terminal() })));
  ports.rejected.keep([{ code: "stale", problem: "", subject: "s", sequence: 1, bodyHash: "" }]);
  const [first, second] = await collected(ports.collection.archive(never));
  if (first === undefined || second === undefined) throw new Error("nothing was walked over");
  expect(await ports.archive.remove([{ key: first.key, expected: first.revision }, { key: second.key, expected: second.revision + 1_000 }])).toMatchObject([{ kind: "stored" }, { kind: "conflict" }]);
  expect((await ports.archive.read([first.key, second.key])).map(({ kind }) => kind)).toEqual(["marker", "found"]);
  const walked: readonly WalkedArchive[] = await collected(ports.collection.archive(never));
  expect(walked.map(({ key }) => key.ref)).toEqual(keys.map(({ ref }) => ref).filter((ref) => ref !== first.key.ref));
  expect(walked.every(({ record }) => record.kind === "found" && record.value.phase === "terminal")).toBe(true);
  expect(Math.abs((walked[0]?.archivedAtMs ?? 0) - Date.now())).toBeLessThan(600_000);
  expect(archiveMarkerTtlMs).toBeLessThan(60_000);
});

test("a walk over the snapshots tells snapshots from what took their place, and carries no bodies", async () => {
  const { ports } = bed;
  const timers = [testTimer(1, { body: new Uint8Array(900_000) }), testTimer(2), testTimer(3)];
  await ports.snapshots.create(timers.map(({ key, snapshot }) => ({ key, snapshot })));
  const [, second, third] = await ports.snapshots.read(timers.map(({ key }) => key), "leader");
  if (second?.kind !== "found" || third?.kind !== "found") throw new Error("no snapshots");
  const [, buried, orphan] = timers;
  if (buried === undefined || orphan === undefined) throw new Error("no timers");
  const graves = [{ tombstone: tombstone() }, { expiresInMs: ms(60_000) }];
  const outcomes = await ports.snapshots.bury([
    { key: buried.key, grave: graves[0] ?? {}, expected: second.revision }, { key: orphan.key, grave: graves[1] ?? {}, expected: third.revision },
  ]);
  expect(outcomes.map(({ kind }) => kind)).toEqual(["stored", "stored"]);
  expect(await ports.snapshots.bury([{ key: buried.key, grave: {}, expected: second.revision }])).toEqual([{ kind: "conflict" }]);
  expect(await ports.snapshots.create([{ key: buried.key, snapshot: buried.snapshot }])).toEqual([{ kind: "exists" }]);
  const walked: readonly WalkedSnapshot[] = await collected(ports.collection.snapshots(never));
  expect(walked.map(({ key, found }) => [key.ref, found])).toEqual([
    [timers[0]?.key.ref, { kind: "snapshot" }], [buried.key.ref, { kind: "collected", grave: graves[0] }], [orphan.key.ref, { kind: "collected", grave: graves[1] }],
  ]);
});
