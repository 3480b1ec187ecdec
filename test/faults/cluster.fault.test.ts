/** Three servers: leaders that are killed, and a follower that lags while feedback flows. */
import { afterEach, expect, test } from "vitest";
import { streamNames } from "../../src/protocol/names.ts";
import { leaderOf, type NatsServer, type ServerVersion } from "../servers.ts";
import { eventually, openBed, type Bed } from "./bed.ts";

let bed: Bed;
afterEach(async () => { await bed[Symbol.asyncDispose](); });

const timerCount = 150;

type Row = { readonly name: string; readonly role: "schedules" | "state"; readonly version: ServerVersion; readonly because: string };

const rows: readonly Row[] = [
  { name: "three servers whose leader of the schedules is killed lose no timer", role: "schedules", version: "recommended", because: "another replica fires what is due, and wakes that were held come again" },
  { name: "three servers of the oldest supported line whose leader of the schedules is killed lose no timer", role: "schedules", version: "floor", because: "the oldest supported line elects and fires in the same way" },
  { name: "three servers whose leader of the state is killed lose no timer", role: "state", version: "recommended", because: "a write without an answer is looked up at the new leader" },
];

for (const { name, role, version, because } of rows) {
  test(name, async () => {
    bed = await openBed({ count: 3, version });
    await Promise.all([bed.world.spawnWorker(), bed.world.spawnWorker()]);
    const flow = bed.openFlow({ retries: 1, ending: "complete" });
    const leader = await leaderOf(bed.world.servers, streamNames[role]);
    const started = bed.start("led", { count: timerCount, wait: { delayMs: 2_000 }, retryWait: { delayMs: 1_000 } });
    await eventually("a first resume", () => bed.ledger.resumes.length > 0);
    await leader.kill();
    await started;
    await eventually("another leader", async () => (await leaderOf(bed.world.servers, streamNames[role])) !== leader);
    await eventually("an end without it", async () => (await bed.world.archived()).length > 0);
    await leader.start();
    await eventually("every end", async () => (await bed.world.archived()).length === timerCount);
    expect(await bed.account(), because).toMatchObject({ acknowledged: timerCount, archived: timerCount, generationsResumed: 2 * timerCount });
    expect(flow.rejected).toEqual([]);
  }, 240_000);
}

test("feedback that meets a lagging replica is never rejected for what that replica does not know yet", async () => {
  bed = await openBed({ count: 3 });
  await Promise.all([bed.world.spawnWorker(), bed.world.spawnWorker()]);
  const flow = bed.openFlow({ retries: 3, ending: "complete" });
  const leader = await leaderOf(bed.world.servers, streamNames.state);
  const follower = bed.world.servers.servers.find((server) => server !== leader);
  const pausing = new AbortController();
  const pauser = pauseAgainAndAgain(follower, pausing.signal);
  await bed.start("lagging", { count: timerCount, wait: { delayMs: 300 }, retryWait: { delayMs: 0 } });
  await eventually("every end", async () => (await bed.world.archived()).length === timerCount);
  pausing.abort();
  expect(await pauser).toBeGreaterThan(3);
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount, archived: timerCount, generationsResumed: 4 * timerCount });
  expect(flow.rejected).toEqual([]);
}, 240_000);

/** Long enough to fall behind, short enough to stay a replica that answers reads. */
async function pauseAgainAndAgain(server: NatsServer | undefined, signal: AbortSignal): Promise<number> {
  let pauseCount = 0;
  while (!signal.aborted) {
    server?.pause();
    await new Promise((resolve) => { setTimeout(resolve, 300); });
    server?.resume();
    pauseCount += 1;
    await new Promise((resolve) => { setTimeout(resolve, 200); });
  }
  return pauseCount;
}
