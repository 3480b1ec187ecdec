/** One server that is killed: in the middle of batches, and with wakes held while its asynchronous tail is lost. */
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { connect } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import { consumerNames, streamNames } from "../../src/protocol/names.ts";
import type { NatsServer, ServerVersion } from "../servers.ts";
import { told } from "../worker/world.ts";
import { eventually, openBed, type Bed } from "./bed.ts";

let bed: Bed;
afterEach(async () => { await bed[Symbol.asyncDispose](); });

type Row = { readonly name: string; readonly version: ServerVersion };

const batchRows: readonly Row[] = [
  { name: "a broker that is killed in the middle of batches loses no timer and no feedback", version: "recommended" },
  { name: "a broker of the oldest supported line that is killed in the middle of batches loses no timer and no feedback", version: "floor" },
];

for (const { name, version } of batchRows) {
  test(name, async () => {
    const timerCount = 600;
    bed = await openBed({ version });
    await Promise.all([bed.world.spawnWorker(), bed.world.spawnWorker()]);
    const flow = bed.openFlow({ retries: 1, ending: "complete" });
    const started = bed.start("batch", { count: timerCount, wait: { delayMs: 300 }, retryWait: { delayMs: 300 } });
    for (const share of [0.1, 0.4, 0.7]) {
      await eventually(`${String(share)} of all resumes`, () => bed.ledger.resumes.length > 2 * share * timerCount);
      await bed.world.servers.crash();
    }
    await started;
    await eventually("every end", async () => (await bed.world.archived()).length === timerCount);
    expect(await bed.account()).toMatchObject({ acknowledged: timerCount, archived: timerCount, generationsResumed: 2 * timerCount });
    expect(flow.rejected).toEqual([]);
  }, 240_000);
}

const tailRows: readonly Row[] = [
  { name: "a broker that is killed with wakes in workers' hands and loses the tail of its schedules resumes every timer", version: "recommended" },
  { name: "a broker of the oldest supported line that is killed with wakes in workers' hands and loses the tail of its schedules resumes every timer", version: "floor" },
];

/**
 * The tail is lost for certain: SCHEDULES comes back as it was on disk at an earlier moment. Sequences are then given out a second
 * time, and an acknowledgement of a wake from before would remove another timer's. The sweep might repair even that, so the
 * acknowledgements themselves are looked at too. Workers stand still meanwhile: they meet the new life with the old wakes in hand.
 */
for (const { name, version } of tailRows) {
  test(name, async () => {
    const perGroup = 100;
    bed = await openBed({ version });
    const workers = await Promise.all([bed.world.spawnWorker(), bed.world.spawnWorker()]);
    await bed.start("early", { count: perGroup, taken: true, wait: { delayMs: 20_000 } });
    await bed.start("held", { count: perGroup, taken: true, wait: { delayMs: 5_000 } });
    const [server] = bed.world.servers.servers;
    if (server === undefined) throw new Error("one server");
    const before = keepSchedules(server);
    const keptSequence = told(await bed.world.broker.jetStream.streamState(streamNames.schedules)).lastSequence;
    await using settlements = await watchSettlements(bed.world.servers.urls);
    await eventually("wakes in workers' hands", async () => (await bed.wakeConsumer()).ackPending > perGroup / 2);
    for (const worker of workers) worker.child.kill("SIGSTOP");
    const killedAtNs = BigInt(Date.now()) * 1_000_000n;
    await server.kill();
    before.putBack();
    await server.start();
    await settlements.untilConnected();
    for (const worker of workers) worker.child.kill("SIGCONT");
    await bed.start("after", { count: perGroup, wait: { delayMs: 1_000 } });
    await eventually("every resume", async () => new Set((await bed.world.resumes()).map(({ lineage }) => lineage.execution)).size === 3 * perGroup);
    expect(await bed.account()).toMatchObject({ acknowledged: 3 * perGroup, elapsed: 3 * perGroup, generationsResumed: 3 * perGroup });
    expect(settlements.seen.length).toBeGreaterThan(perGroup);
    expect(settlements.seen.filter(({ storedAtNs, sequence, isAfterLoss }) => isAfterLoss && storedAtNs < killedAtNs && sequence > keptSequence)).toEqual([]);
  }, 240_000);
}

test("a broker that is killed again and again while wakes are held resumes every timer once due", async () => {
  const timerCount = 400;
  bed = await openBed();
  await bed.world.spawnWorker();
  await bed.start("again", { count: timerCount, taken: true, wait: { delayMs: 3_000 } });
  for (let kill = 0; kill < 4; kill += 1) {
    await eventually("wakes in a worker's hands, or none left", async () => (await bed.wakeConsumer()).ackPending > 0 || (await bed.world.resumes()).length >= timerCount);
    await bed.world.servers.crash();
  }
  await eventually("every resume", async () => new Set((await bed.world.resumes()).map(({ lineage }) => lineage.execution)).size === timerCount);
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount, elapsed: timerCount, generationsResumed: timerCount });
}, 240_000);

/** A copy of what is on disk, taken while the server stands still. */
function keepSchedules(server: NatsServer): { putBack(): void } {
  const dir = join(server.storeDir, "jetstream", "$G", "streams", streamNames.schedules);
  const copy = `${server.storeDir}-schedules`;
  server.pause();
  try {
    cpSync(dir, copy, { recursive: true });
  } finally {
    server.resume();
  }
  return {
    putBack: () => {
      rmSync(dir, { recursive: true });
      cpSync(copy, dir, { recursive: true });
    },
  };
}

/** A settlement of a wake, by what its subject says of the wake. */
type Settlement = { readonly sequence: number; readonly storedAtNs: bigint; readonly isAfterLoss: boolean };

type Settlements = AsyncDisposable & { readonly seen: readonly Settlement[]; untilConnected(): Promise<void> };

/** Listens to what workers tell the broker of their wakes, also after the connection was lost once. */
async function watchSettlements(urls: readonly string[]): Promise<Settlements> {
  const connection = await connect({ servers: [...urls], maxReconnectAttempts: -1, reconnectTimeWait: 20 });
  const seen: Settlement[] = [];
  let isAfterLoss = false;
  connection.subscribe("$JS.ACK.>", {
    callback: (error, { subject }) => {
      if (error !== null || !subject.includes(`.${streamNames.schedules}.${consumerNames.wake}.`)) return;
      // … deliveries, stream sequence, consumer sequence, time of storage in nanoseconds, pending.
      const [, sequence, storedAtNs] = /\.(\d+)\.\d+\.(\d{19})\./.exec(subject) ?? [];
      seen.push({ sequence: Number(sequence), storedAtNs: BigInt(storedAtNs ?? 0), isAfterLoss });
    },
  });
  const returned = (async () => {
    for await (const { type } of connection.status()) if (type === "reconnect") return;
  })();
  await connection.flush();
  return {
    seen,
    untilConnected: async () => {
      await returned;
      await connection.flush();
      isAfterLoss = true;
    },
    [Symbol.asyncDispose]: () => connection.close(),
  };
}
