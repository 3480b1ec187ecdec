import { afterEach, expect, test } from "vitest";
import { listPageSize, reflectorBackoffMsMax, reflectorBackoffMsMin, relistIntervalMs, watchHealthyMsMin, watchMsMax, watchMsMin, watchResumesMax, watchSilenceMsMax } from "../../src/base/limits.ts";
import { Reflector } from "../../src/kube/reflector.ts";
import { seededRandom } from "../../src/system/random.ts";
import { settle, SteppedClock } from "../fakes/clock.ts";
import { FakeLog } from "../fakes/log.ts";
import { listOf, objectOf, refusal, ScriptedApi, unreachable } from "./scripted-api.ts";

type Bed = {
  readonly api: ScriptedApi;
  readonly clock: SteppedClock;
  readonly log: FakeLog;
  readonly reflector: Reflector<string>;
  /** Each change as `name before>now`. */
  readonly changes: string[];
  readonly start: () => Promise<void>;
  readonly stop: () => Promise<void>;
};

let bed: Bed | undefined;

afterEach(async () => {
  await bed?.stop();
  expect(bed?.clock.sleeperCount, "nothing sleeps after the end").toBe(0);
  expect(bed?.api.streams.every((stream) => stream.isStopped), "no watch is left open").toBe(true);
});

function setUp(): Bed {
  const [api, clock, log] = [new ScriptedApi(), new SteppedClock(), new FakeLog()];
  const changes: string[] = [];
  const reflector = new Reflector<string>({
    api, clock, log,
    random: seededRandom(1),
    path: "/apis/x/v1/things",
    labelSelector: "app=x",
    keep: (object) => object.metadata.resourceVersion,
    onChange: ({ key, before = "", now = "" }) => changes.push(`${key.namespace}/${key.name} ${before}>${now}`),
  });
  const controller = new AbortController();
  let running: Promise<void> | undefined;
  const start = async (): Promise<void> => {
    running = reflector.run(controller.signal);
    await settle();
  };
  const stop = async (): Promise<void> => {
    controller.abort();
    await running;
  };
  bed = { api, clock, log, reflector, changes, start, stop };
  return bed;
}

test("a list in pages is reported whole, and the watch begins where it ended", async () => {
  const { api, reflector, changes, start } = setUp();
  api.answer(listOf("10", [objectOf("a", "1")], "next"), listOf("10", [objectOf("b", "2")]));
  expect(reflector.isSynced).toBe(false);
  await start();
  expect(changes).toEqual(["n/a >1", "n/b >2"]);
  expect(reflector.isSynced).toBe(true);
  expect(api.calls.map(({ kind }) => kind)).toEqual(["list", "list", "watch"]);
  expect(api.calls[1]?.query).toEqual({ labelSelector: "app=x", limit: String(listPageSize), continue: "next" });
  expect(api.calls[2]?.query).toMatchObject({ labelSelector: "app=x", resourceVersion: "10", allowWatchBookmarks: "true" });
  const timeoutMs = Number(api.calls[2]?.query["timeoutSeconds"]) * 1_000;
  expect(timeoutMs).toBeGreaterThanOrEqual(watchMsMin);
  expect(timeoutMs).toBeLessThanOrEqual(watchMsMax);
});

test("events of the watch are reported, an unchanged version is not", async () => {
  const { api, reflector, changes, start } = setUp();
  api.answer(listOf("10", [objectOf("a", "1")]));
  await start();
  api.lastStream.send("ADDED", objectOf("a", "1"));
  api.lastStream.send("MODIFIED", objectOf("a", "11"));
  api.lastStream.send("ADDED", objectOf("b", "12"));
  api.lastStream.send("DELETED", objectOf("a", "13"));
  await settle();
  expect(changes).toEqual(["n/a >1", "n/a 1>11", "n/b >12", "n/a 11>"]);
  expect(reflector.size).toBe(1);
});

test("a watch that ends is followed by one from the last version, bookmarks included", async () => {
  const { api, start, clock } = setUp();
  api.answer(listOf("10", []));
  await start();
  api.lastStream.send("BOOKMARK", { metadata: { resourceVersion: "25" } });
  api.lastStream.end();
  await settle();
  expect(api.calls.map(({ kind, query }) => [kind, query["resourceVersion"]])).toEqual([["list", undefined], ["watch", "10"], ["watch", "25"]]);
  expect(clock.sleeperCount, "only the guard against silence sleeps").toBe(1);
});

test("what changed or vanished during a gap is found by the next list", async () => {
  const { api, changes, start } = setUp();
  api.answer(listOf("10", [objectOf("a", "1"), objectOf("b", "2"), objectOf("c", "3")]));
  await start();
  changes.length = 0;
  api.answer(listOf("50", [objectOf("a", "1"), objectOf("b", "40")]));
  api.lastStream.send("ERROR", { code: 410 });
  await settle();
  expect(changes).toEqual(["n/c 3>", "n/b 2>40"]);
  expect(api.calls.at(-1)).toMatchObject({ kind: "watch", query: { resourceVersion: "50" } });
});

test("410 at the opening of a watch asks for a list at once, and after that only with back-off", async () => {
  const { api, clock, start } = setUp();
  api.answer(listOf("10", []), refusal(410), listOf("11", []), refusal(410));
  await start();
  expect(api.calls.map(({ kind }) => kind)).toEqual(["list", "watch", "list", "watch"]);
  api.answer(listOf("12", []));
  await clock.advance(reflectorBackoffMsMin * 2);
  expect(api.calls.map(({ kind }) => kind).slice(4)).toEqual(["list", "watch"]);
});

test("a list whose continuation has expired begins again, and nothing half is reported", async () => {
  const { api, clock, changes, start } = setUp();
  api.answer(listOf("10", [objectOf("a", "1")], "next"), refusal(410), listOf("20", [objectOf("b", "2")]));
  await start();
  expect(changes).toEqual([]);
  await clock.advance(reflectorBackoffMsMin);
  expect(changes).toEqual(["n/b >2"]);
});

test("failures back off up to a limit and never end the loop", async () => {
  const { api, clock, log, changes, start } = setUp();
  for (let count = 0; count < 12; count += 1) api.answer(unreachable);
  api.answer(listOf("10", [objectOf("a", "1")]));
  await start();
  const waits: number[] = [];
  while (changes.length === 0 && waits.length < 20) {
    waits.push(clock.nextWakeMs ?? 0);
    await clock.advance(clock.nextWakeMs ?? 0);
  }
  expect(waits).toHaveLength(12);
  expect(waits[0]).toBeLessThanOrEqual(reflectorBackoffMsMin);
  expect(Math.max(...waits)).toBeLessThanOrEqual(reflectorBackoffMsMax);
  expect(waits.at(-1)).toBeGreaterThanOrEqual(reflectorBackoffMsMax / 2);
  expect(log.messages("warn")).toHaveLength(12);
  expect(changes).toEqual(["n/a >1"]);
});

test("an overloaded server is left alone for as long as it asks", async () => {
  const { api, clock, start } = setUp();
  api.answer(refusal(429, 45_000), listOf("10", []));
  await start();
  expect(clock.nextWakeMs).toBe(45_000);
  await clock.advance(45_000);
  expect(api.calls.map(({ kind }) => kind)).toEqual(["list", "list", "watch"]);
});

test("a watch that cannot be resumed gives way to a list", async () => {
  const { api, clock, start } = setUp();
  api.answer(listOf("10", []), ...Array.from({ length: watchResumesMax }, () => unreachable), listOf("3", []));
  await start();
  await clock.advance(reflectorBackoffMsMax);
  expect(api.calls.map(({ kind }) => kind)).toEqual(["list", "watch", "watch", "watch", "list", "watch"]);
  expect(api.calls.at(-1)?.query["resourceVersion"], "a restored store may have gone back").toBe("3");
});

test("a silent connection is given up", async () => {
  const { api, clock, start } = setUp();
  api.answer(listOf("10", []));
  await start();
  await clock.advance(watchSilenceMsMax - 1);
  expect(api.streams).toHaveLength(1);
  await clock.advance(reflectorBackoffMsMin + 1);
  expect(api.streams).toHaveLength(2);
  expect(api.streams[0]?.isStopped).toBe(true);
});

test("a bookmark keeps a quiet watch alive", async () => {
  const { api, clock, start } = setUp();
  api.answer(listOf("10", []));
  await start();
  for (const version of ["11", "12", "13"]) {
    await clock.advance(watchSilenceMsMax - 1_000);
    api.lastStream.send("BOOKMARK", { metadata: { resourceVersion: version } });
    await settle();
  }
  expect(api.streams).toHaveLength(1);
});

test("a broken connection is taken up again without a list", async () => {
  const { api, clock, start } = setUp();
  api.answer(listOf("10", []));
  await start();
  await clock.advance(watchHealthyMsMin);
  api.lastStream.break();
  await settle();
  expect(api.calls.map(({ kind }) => kind)).toEqual(["list", "watch", "watch"]);
});

test("a watch that ends at once every time does not spin", async () => {
  const { api, clock, start } = setUp();
  api.answer(listOf("10", []));
  await start();
  api.lastStream.end();
  await settle();
  expect(api.streams, "the second watch waits for its back-off").toHaveLength(1);
  await clock.advance(reflectorBackoffMsMin);
  expect(api.streams).toHaveLength(2);
});

test("everything is listed again now and then", async () => {
  const { api, clock, changes, start } = setUp();
  api.answer(listOf("10", [objectOf("a", "1")]));
  await start();
  for (let elapsedMs = 0; elapsedMs < relistIntervalMs; elapsedMs += 60_000) {
    await clock.advance(60_000);
    api.lastStream.send("BOOKMARK", { metadata: { resourceVersion: String(100 + elapsedMs) } });
    await settle();
  }
  api.answer(listOf("900", []));
  api.lastStream.end();
  await settle();
  expect(changes, "a deletion that the watch lost").toEqual(["n/a >1", "n/a 1>"]);
});

test("progress stands still only while nothing is answered and nothing is tried", async () => {
  const { api, clock, reflector, start } = setUp();
  api.answer(unreachable, listOf("10", []));
  await start();
  await clock.advance(reflectorBackoffMsMin);
  const syncedAtMs = reflector.progressAtMs;
  expect(syncedAtMs).toBeGreaterThan(0);
  await clock.advance(60_000);
  expect(reflector.progressAtMs).toBe(syncedAtMs);
  api.lastStream.send("BOOKMARK", { metadata: { resourceVersion: "11" } });
  await settle();
  expect(reflector.progressAtMs).toBeGreaterThan(syncedAtMs);
});
