import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { natsClockProbe } from "../../src/nats/clock-probe.ts";
import { systemClock } from "../../src/system/clock.ts";
import { openWorld, request, until, type World, type WorkerProcess } from "./world.ts";

let world: World;
beforeEach(async () => { world = await openWorld(); });
afterEach(async () => { await world[Symbol.asyncDispose](); });

test("a loop whose write never ends fails liveness, and stays failed", async () => {
  const worker = await world.spawnWorker({ entry: join(import.meta.dirname, "stuck-worker.ts") });
  const livez = `http://127.0.0.1:${String(portOf(worker))}/livez`;
  await until("a worker that lives", async () => (await fetch(livez)).status === 200 ? true : undefined);
  await world.client.start(request("stuck", { wait: { delayMs: 60_000 } }));
  // Its clock is so fast that a busy machine looks like a hanging loop for a moment; the stuck one never recovers.
  let failedCount = 0;
  await until("a liveness that fails for good", async () => {
    const answer = await fetch(livez);
    const isStuck = answer.status === 503 && (await answer.text()).split("\n").includes("start");
    failedCount = isStuck ? failedCount + 1 : 0;
    return failedCount >= 20 ? true : undefined;
  }, 60_000);
  expect(failedCount).toBe(20);
});

test("the worker shows how far clocks are apart, and on one machine they agree", async () => {
  const probe = natsClockProbe(world.broker.jetStream, systemClock);
  const readings = await probe.read();
  expect(readings).toHaveLength(1);
  for (const { aheadMs, errorMs } of readings) expect(Math.abs(aheadMs)).toBeLessThanOrEqual(errorMs + 5);
  const worker = await world.spawnWorker();
  const metrics = await (await fetch(`http://127.0.0.1:${String(portOf(worker))}/metrics`)).text();
  for (const name of ["clock_skew_seconds", "leader_clock_skew_seconds"]) expect(metrics).toMatch(new RegExp(`^durable_timer_worker_${name} -?[0-9.e-]+$`, "m"));
  expect(metrics).toContain('durable_timer_worker_source_stalls_total{loop="wake"} 0');
});

function portOf({ lines }: WorkerProcess): number {
  const port = lines.map((line) => /"healthPort":(\d+)/.exec(line)?.[1]).find((found) => found !== undefined);
  if (port === undefined) throw new Error(`no health port in ${lines.join("\n")}`);
  return Number(port);
}
