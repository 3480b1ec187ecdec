import { afterEach, expect, test } from "vitest";
import { openWorld, request, told, until, type World } from "./world.ts";

let world: World;
afterEach(async () => { await world[Symbol.asyncDispose](); });

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
