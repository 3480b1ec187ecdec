import { afterEach, expect, test } from "vitest";
import { openWorld, request, told, until, type StoredResume, type World, type WorkerProcess } from "./world.ts";

let world: World;
afterEach(async () => { await world[Symbol.asyncDispose](); });

const timerCount = 2_000;

test("2,000 timers whose workers are killed every second are all resumed, none early, each generation under one fence", async () => {
  world = await openWorld({ ackWaitMs: 3_000 });
  const killing = new AbortController();
  const killer = killEverySecond(killing.signal);
  for (let from = 0; from < timerCount; from += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, index) => startUntilStored(from + index)));
  }
  const resumed = await until("every timer's resume", async () => {
    const resumes = await world.resumes();
    return new Set(resumes.map(({ lineage }) => lineage.execution)).size === timerCount ? resumes : undefined;
  }, 150_000);
  killing.abort();
  const killCount = await killer;
  expect(killCount).toBeGreaterThanOrEqual(3);
  expect(resumed.filter(({ storedAtMs, dueAtMs }) => storedAtMs < dueAtMs)).toEqual([]);
  expect(new Set(resumed.map(identity)).size).toBe(timerCount);
  expect(await world.records()).toHaveLength(timerCount);
}, 240_000);

test("a worker that comes back after the due time resumes what is owed", async () => {
  world = await openWorld({ ackWaitMs: 2_000 });
  const first = await world.spawnWorker();
  await Promise.all(Array.from({ length: 20 }, (_, index) => world.client.start(request(`owed-${String(index)}`, { wait: { delayMs: 1_500 } }), { awaitOutcome: true })));
  await first.kill();
  await until("the last wake", async () => (told(await world.broker.jetStream.consumerState("DURABLE_TIMER_SCHEDULES", "DURABLE_TIMER_WAKE_SERVICE")).pending >= 20 ? true : undefined));
  expect(await world.resumes()).toEqual([]);
  await world.spawnWorker();
  await until("twenty resumes", async () => ((await world.resumes()).length === 20 ? true : undefined));
  expect((await world.resumes()).filter(({ storedAtMs, dueAtMs }) => storedAtMs < dueAtMs)).toEqual([]);
});

test("feedback flows while held starts fill their stream", async () => {
  world = await openWorld({ sizes: { commands: "2Mi" } });
  await world.startWorker();
  await world.client.start(request("flows", { wait: { delayMs: 0 } }), { awaitOutcome: true });
  const resume = await until("a resume", async () => (await world.resumes())[0]);
  const hold = { stream: "DURABLE_TIMER_COMMANDS", consumer: "DURABLE_TIMER_COMMAND_SERVICE" };
  told(await world.broker.admin.pauseConsumer({ ...hold, untilMs: (Date.now() + 600_000) as never }));
  let sentCount = 0;
  const refusal = await until("a full stream", async () => {
    const sent = await Promise.allSettled(Array.from({ length: 20 }, () => {
      sentCount += 1;
      return world.client.start(request(`held-${String(sentCount)}`, { wait: { delayMs: 600_000 }, body: Buffer.alloc(20_000) }));
    }));
    return sent.find((one) => one.status === "rejected");
  });
  expect(refusal.reason).toMatchObject({ kind: "capacity", code: "STREAM_FULL" });
  expect((await world.client.retry(resume)).outcome).toMatchObject({ kind: "accepted", generation: 1 });
  const heldCount = (await world.messages("commands")).length;
  expect(heldCount).toBeGreaterThan(50);
  told(await world.broker.admin.pauseConsumer({ ...hold, untilMs: 0 as never }));
  await until("every held start", async () => ((await world.records()).length === heldCount + 1 ? true : undefined));
});

const identity = ({ lineage, generation, fence }: StoredResume): string => `${lineage.execution}:${String(generation)}:${String(fence)}`;

/** As a careful sender does: the same start again until the broker has it. */
async function startUntilStored(index: number): Promise<void> {
  const timer = request(`timer-${String(index)}`, { wait: { delayMs: 2_000 + (index % 100) * 200 } });
  await until("a stored start", async () => world.client.start(timer).then(() => true, () => undefined));
}

/** Two workers, one of which dies every second and is replaced. */
async function killEverySecond(signal: AbortSignal): Promise<number> {
  const workers: WorkerProcess[] = await Promise.all([world.spawnWorker(), world.spawnWorker()]);
  let killCount = 0;
  while (!signal.aborted) {
    await new Promise((resolve) => { setTimeout(resolve, 1_000); });
    const victim = workers.shift();
    await victim?.kill("SIGKILL");
    killCount += 1;
    workers.push(await world.spawnWorker());
  }
  return killCount;
}
