/** Workers that are killed, stopped and continued, and flows that die with a resume in hand. */
import { afterEach, expect, test } from "vitest";
import type { WorkerProcess } from "../worker/world.ts";
import { eventually, openBed, type Bed } from "./bed.ts";

let bed: Bed;
afterEach(async () => { await bed[Symbol.asyncDispose](); });

test("timers whose workers are killed every second all end, none early, each generation under one fence", async () => {
  bed = await openBed();
  const timerCount = 1_000;
  const flow = bed.openFlow({ retries: 1, ending: "complete" });
  const killing = new AbortController();
  const killer = killEverySecond(killing.signal);
  for (let from = 0; from < timerCount; from += 100) {
    await bed.start(`killed-${String(from)}`, { count: 100, wait: { delayMs: 1_000 + from * 15 }, retryWait: { delayMs: 2_000 } });
  }
  // The last of them are due fifteen seconds after their start, however quick the machine is.
  await eventually("half of the ends under fire", async () => (await bed.world.archived()).length > timerCount / 2);
  killing.abort();
  expect(await killer).toBeGreaterThanOrEqual(3);
  await eventually("every end", async () => (await bed.world.archived()).length === timerCount);
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount, archived: timerCount, generationsResumed: 2 * timerCount });
  expect(flow.rejected).toEqual([]);
}, 300_000);

test("a worker that stands still beyond the acknowledgement wait and then goes on resumes nothing under a second fence", async () => {
  bed = await openBed();
  const timerCount = 200;
  const stopped = await bed.world.spawnWorker();
  await bed.start("still", { count: timerCount, taken: true, wait: { delayMs: 4_000 }, retryWait: { delayMs: 1_000 } });
  await eventually("wakes in its hand", async () => (await bed.wakeConsumer()).ackPending > 0);
  stopped.child.kill("SIGSTOP");
  await bed.world.spawnWorker();
  await eventually("the other worker's resumes", async () => (await bed.world.resumes()).length >= timerCount);
  expect(stopped.child.exitCode).toBeNull();
  const flow = bed.openFlow({ retries: 1, ending: "open" });
  stopped.child.kill("SIGCONT");
  await eventually("the next generation's resumes", () => bed.ledger.resumes.filter(({ generation }) => generation === 1).length >= timerCount);
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount, elapsed: timerCount, generationsResumed: 2 * timerCount });
  expect(flow.rejected).toEqual([]);
});

test("a worker that stands still with starts and feedback in its hand does not undo what another did meanwhile", async () => {
  bed = await openBed();
  const stopped = await bed.world.spawnWorker();
  const flow = bed.openFlow({ retries: 3, ending: "complete" });
  const started = bed.start("busy", { count: 300, wait: { delayMs: 200 }, retryWait: { delayMs: 200 } });
  await eventually("a first resume", () => bed.ledger.resumes.length > 0);
  stopped.child.kill("SIGSTOP");
  await bed.world.spawnWorker();
  await eventually("an end by the other", async () => (await bed.world.archived()).length > 0);
  stopped.child.kill("SIGCONT");
  await started;
  await eventually("every end", async () => (await bed.world.archived()).length === 300);
  expect(await bed.account()).toMatchObject({ acknowledged: 300, archived: 300, generationsResumed: 1_200 });
  expect(flow.rejected).toEqual([]);
}, 180_000);

/** Two workers, one of which dies every second and is replaced. */
async function killEverySecond(signal: AbortSignal): Promise<number> {
  const workers: WorkerProcess[] = await Promise.all([bed.world.spawnWorker(), bed.world.spawnWorker()]);
  let killCount = 0;
  while (!signal.aborted) {
    await new Promise((resolve) => { setTimeout(resolve, 1_000); });
    await workers.shift()?.kill("SIGKILL");
    killCount += 1;
    workers.push(await bed.world.spawnWorker());
  }
  return killCount;
}
