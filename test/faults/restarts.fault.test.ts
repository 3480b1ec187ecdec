/** Workers and brokers that restart, before timers are due and after. */
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import { streamNames, subjectFilters } from "../../src/protocol/names.ts";
import type { WorkerProcess } from "../worker/world.ts";
import { eventually, openBed, type Bed } from "./bed.ts";

let bed: Bed;
afterEach(async () => { await bed[Symbol.asyncDispose](); });

const timerCount = 30;

type Row = { readonly name: string; readonly delayMs: number; readonly fault: (worker: WorkerProcess, dueAtMs: number) => Promise<void>; readonly because: string };

/** Down until well after the due time: nothing could be resumed meanwhile. */
const untilPast = (dueAtMs: number) => new Promise((resolve) => { setTimeout(resolve, Math.max(0, dueAtMs + 1_000 - Date.now())); });

const rows: readonly Row[] = [
  {
    name: "workers that restart before timers are due resume them when they are", delayMs: 6_000,
    fault: async (worker) => {
      await worker.kill();
      await bed.world.spawnWorker();
    },
    because: "nothing counts down in a worker: the schedule lies in the broker",
  },
  {
    name: "workers that restart after timers were due resume them at once", delayMs: 3_000,
    fault: async (worker, dueAtMs) => {
      await worker.kill();
      await untilPast(dueAtMs);
      await bed.world.spawnWorker();
    },
    because: "wakes wait in their stream, and those that the dead worker held come again",
  },
  {
    name: "a broker that restarts before timers are due wakes them when they are", delayMs: 8_000,
    fault: async () => { await bed.world.servers.crash(); },
    because: "schedules are on disk, and what their asynchronous tail lost is armed again by the sweep after a reconnect",
  },
  {
    name: "a broker that restarts after timers were due wakes them at once", delayMs: 3_000,
    fault: async (_, dueAtMs) => {
      const [server] = bed.world.servers.servers;
      await server?.kill();
      await untilPast(dueAtMs);
      await server?.start();
    },
    because: "the broker fires what became due while it was away",
  },
  {
    name: "workers and broker that both restart after timers were due resume them at once", delayMs: 3_000,
    fault: async (worker, dueAtMs) => {
      await worker.kill();
      const [server] = bed.world.servers.servers;
      await server?.kill();
      await untilPast(dueAtMs);
      await server?.start();
      await bed.world.spawnWorker();
    },
    because: "neither has any memory that the other would need",
  },
  {
    name: "workers that find the schedules of waiting timers gone arm them again", delayMs: 8_000,
    fault: async (worker) => {
      await worker.kill();
      await purgeSchedules();
      await bed.world.spawnWorker();
    },
    because: "schedules are derived: a sweep at start-up compares them with the records",
  },
];

for (const { name, delayMs, fault, because } of rows) {
  test(name, async () => {
    bed = await openBed();
    const worker = await bed.world.spawnWorker();
    const sentAtMs = Date.now();
    await bed.start("restart", { count: timerCount, taken: true, wait: { delayMs } });
    await fault(worker, sentAtMs + delayMs);
    await eventually("every resume", async () => new Set((await bed.world.resumes()).map(({ lineage }) => lineage.execution)).size === timerCount);
    expect(await bed.account(), because).toMatchObject({ acknowledged: timerCount, elapsed: timerCount, generationsResumed: timerCount });
  });
}

async function purgeSchedules(): Promise<void> {
  const connection = await connect({ servers: [...bed.world.servers.urls] });
  await (await jetstreamManager(connection)).streams.purge(streamNames.schedules, { filter: subjectFilters.schedules });
  await connection.close();
}
