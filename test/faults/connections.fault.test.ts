/** Connections between worker and broker that are slow, cut, or dead without anyone saying so. */
import { afterEach, expect, test } from "vitest";
import { ackWaitMs as productAckWaitMs } from "../../src/base/limits.ts";
import type { WorldOptions } from "../worker/world.ts";
import { eventually, openBed, type Bed } from "./bed.ts";
import { openProxy, type FaultProxy } from "./proxy.ts";

let bed: Bed;
let proxy: FaultProxy;
afterEach(async () => {
  await bed[Symbol.asyncDispose]();
  await proxy.close();
});

async function openBehindProxy(options: WorldOptions = {}): Promise<void> {
  bed = await openBed(options);
  proxy = await openProxy(bed.world.servers.urls[0] ?? "");
}

const allEnded = (count: number) => async () => (await bed.world.archived()).length === count;

test("a connection that is slow both ways makes timers late, and none early", async () => {
  const timerCount = 200;
  // With the product's own acknowledgement wait: a step of several round trips has to fit in.
  await openBehindProxy({ ackWaitMs: productAckWaitMs });
  await bed.spawnWorkerAt(proxy.url);
  proxy.delay(400);
  const flow = bed.openFlow({ retries: 1, ending: "complete" });
  await bed.start("slow", { count: timerCount, wait: { delayMs: 1_000 }, retryWait: { delayMs: 500 } });
  await eventually("every end", allEnded(timerCount));
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount, archived: timerCount, generationsResumed: 2 * timerCount });
  expect(flow.rejected).toEqual([]);
});

test("a delay that comes and goes, beyond the acknowledgement wait, changes no outcome", async () => {
  const timerCount = 200;
  await openBehindProxy();
  await Promise.all([bed.spawnWorkerAt(proxy.url), bed.world.spawnWorker()]);
  const flow = bed.openFlow({ retries: 1, ending: "complete" });
  const started = bed.start("waves", { count: timerCount, wait: { delayMs: 1_500 }, retryWait: { delayMs: 1_500 } });
  for (const delayMs of [4_000, 0, 4_000, 0]) {
    proxy.delay(delayMs);
    await new Promise((resolve) => { setTimeout(resolve, 1_500); });
  }
  await started;
  await eventually("every end", allEnded(timerCount));
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount, archived: timerCount, generationsResumed: 2 * timerCount });
  expect(flow.rejected).toEqual([]);
});

test("a worker whose connection is cut again and again carries everything to its end", async () => {
  const timerCount = 300;
  await openBehindProxy();
  await bed.spawnWorkerAt(proxy.url);
  const flow = bed.openFlow({ retries: 1, ending: "complete" });
  const openedBefore = proxy.connectionCount;
  const started = bed.start("cut", { count: timerCount, wait: { delayMs: 500 }, retryWait: { delayMs: 500 } });
  for (let cut = 1; cut <= 6; cut += 1) {
    await eventually("a connection to cut", () => proxy.connectionCount >= openedBefore + cut - 1);
    await new Promise((resolve) => { setTimeout(resolve, 400); });
    proxy.cut();
  }
  await started;
  await eventually("every end", allEnded(timerCount));
  expect(proxy.connectionCount).toBeGreaterThanOrEqual(openedBefore + 6);
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount, archived: timerCount, generationsResumed: 2 * timerCount });
  expect(flow.rejected).toEqual([]);
});

test("a worker whose requests arrive but whose replies are lost neither loses nor repeats a transition", async () => {
  const timerCount = 200;
  await openBehindProxy();
  await bed.spawnWorkerAt(proxy.url);
  const flow = bed.openFlow({ retries: 1, ending: "complete" });
  const openedBefore = proxy.connectionCount;
  const started = bed.start("deaf", { count: timerCount, wait: { delayMs: 500 }, retryWait: { delayMs: 500 } });
  await eventually("a first resume", () => bed.ledger.resumes.length > 0);
  proxy.halfOpen(["replies"]);
  await started;
  await eventually("every end", allEnded(timerCount));
  expect(proxy.connectionCount).toBeGreaterThan(openedBefore);
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount, archived: timerCount, generationsResumed: 2 * timerCount });
  expect(flow.rejected).toEqual([]);
});

test("a connection that is dead without an end is noticed, and another worker does the work meanwhile", async () => {
  const timerCount = 200;
  await openBehindProxy();
  await bed.spawnWorkerAt(proxy.url);
  const flow = bed.openFlow({ retries: 1, ending: "complete" });
  const openedBefore = proxy.connectionCount;
  await bed.start("dead", { count: timerCount, taken: true, wait: { delayMs: 3_000 }, retryWait: { delayMs: 500 } });
  await eventually("wakes in its hand", async () => (await bed.wakeConsumer()).ackPending > 0);
  proxy.halfOpen(["requests", "replies"]);
  await bed.world.spawnWorker();
  await eventually("every end", allEnded(timerCount));
  await eventually("a new connection of the first worker", () => proxy.connectionCount > openedBefore);
  await bed.start("alive", { count: 20, wait: { delayMs: 200 } });
  await eventually("the ends after that", allEnded(timerCount + 20));
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount + 20, archived: timerCount + 20 });
  expect(flow.rejected).toEqual([]);
});
