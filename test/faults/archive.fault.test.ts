/** An archive that refuses: timers that end keep their records until it has room again. */
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import { streamNames } from "../../src/protocol/names.ts";
import { told } from "../worker/world.ts";
import { eventually, openBed, type Bed } from "./bed.ts";

let bed: Bed;
afterEach(async () => { await bed[Symbol.asyncDispose](); });

const timerCount = 20;
const ballast = "durable_timer.terminal.v1.~rejected.ballast";

test("ends that a full archive refuses keep their records, and are archived once when it has room", async () => {
  bed = await openBed({ sizes: { terminals: "2Mi" } });
  await bed.world.spawnWorker();
  await bed.start("full", { count: timerCount, taken: true, wait: { delayMs: 0 } });
  await eventually("the resumes", async () => (await bed.world.resumes()).length === timerCount);
  await fillArchive();
  bed.openFlow({ retries: 0, ending: "complete" });
  await eventually("records that have ended", async () => (await bed.world.records()).filter(({ phase }) => phase === "terminal").length === timerCount);
  expect(await bed.world.archived()).toEqual([]);
  await withManager((manager) => manager.streams.purge(streamNames.terminals, { filter: `${ballast}.>` }));
  await eventually("every end", async () => (await bed.world.archived()).length === timerCount);
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount, archived: timerCount });
});

test("ends that a full archive refused are archived by the next worker when the one that saw them is killed", async () => {
  bed = await openBed({ sizes: { terminals: "2Mi" } });
  const first = await bed.world.spawnWorker();
  await bed.start("killed", { count: timerCount, taken: true, wait: { delayMs: 0 } });
  await eventually("the resumes", async () => (await bed.world.resumes()).length === timerCount);
  await fillArchive();
  bed.openFlow({ retries: 0, ending: "complete" });
  await eventually("records that have ended", async () => (await bed.world.records()).filter(({ phase }) => phase === "terminal").length === timerCount);
  await first.kill();
  expect(await bed.world.archived()).toEqual([]);
  await withManager((manager) => manager.streams.purge(streamNames.terminals, { filter: `${ballast}.>` }));
  await bed.world.spawnWorker();
  await eventually("every end", async () => (await bed.world.archived()).length === timerCount);
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount, archived: timerCount });
});

/** Until not even the smallest message has room. */
async function fillArchive(): Promise<void> {
  let slot = 0;
  for (const bytes of [200_000, 20_000, 1_000, 0]) {
    for (;;) {
      slot += 1;
      const [outcome] = await bed.world.broker.jetStream.publish([{ subject: `${ballast}.${String(slot)}`, headers: [], body: Buffer.alloc(bytes) }]);
      if (outcome?.kind === "refused") break;
      if (outcome?.kind !== "stored") throw new Error(`the ballast was neither stored nor refused: ${String(outcome?.kind)}`);
    }
  }
  expect(told(await bed.world.broker.jetStream.streamState(streamNames.terminals)).messages).toBeGreaterThan(0);
}

async function withManager<T>(use: (manager: Awaited<ReturnType<typeof jetstreamManager>>) => Promise<T>): Promise<T> {
  const connection: NatsConnection = await connect({ servers: [...bed.world.servers.urls] });
  try {
    return await use(await jetstreamManager(connection));
  } finally {
    await connection.close();
  }
}
