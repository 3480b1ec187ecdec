// `node scripts/prove-sweep.ts [timers]`: the sweep over a million waiting timers (or as many as asked for), measured.
//
// It starts a NATS server, stores the timers, runs the real worker program under live traffic, and prints how long the
// start-up sweep, a regular one and the one after a loss of SCHEDULES took, what they did to the lateness of the traffic,
// and how much memory the worker used. It stops everything that it started. SWEEP_INTERVAL (seconds, 60 by default),
// SWEEP_RATE (live timers a second, 100) and SWEEP_ARCHIVED (records in the archive, a tenth of the timers) change the scene.

import { openWorld, told, type World } from "../test/worker/world.ts";
import { recreateSchedules } from "../test/worker/schedules-loss.ts";
import { streamNames } from "../src/protocol/names.ts";
import { LiveTraffic } from "./prove/live-traffic.ts";
import { storeTimers } from "./prove/sweep-load.ts";
import { WorkerWatch, type Sweep } from "./prove/worker-watch.ts";

/** Traffic without a sweep, for comparison. */
const quietMs = 20_000;

const number = (text: string | undefined, fallback: number): number => (text === undefined || text === "" ? fallback : Number(text));

await main(number(process.argv.slice(2).find((arg) => /^\d+$/.test(arg)), 1_000_000));

async function main(count: number): Promise<void> {
  const intervalSeconds = number(process.env["SWEEP_INTERVAL"], 60);
  const sizes = { state: "4Gi", snapshots: "4Gi", terminals: "4Gi", resumes: "1Gi", commands: "1Gi", feedback: "1Gi" };
  await using world = await openWorld({ syncInterval: "2m", maxFileStore: 32 * 1024 ** 3, sizes, spec: { sweep: { intervalSeconds, graceSeconds: 5 } } });
  say(`NATS ${world.servers.version}, ${String(count)} timers`);
  const beganAtMs = Date.now();
  await storeTimers(world.broker, {
    count, startedAtMs: beganAtMs - 86_400_000, firstDueAtMs: beganAtMs + 600_000, spreadMs: 86_400_000,
    archivedCount: number(process.env["SWEEP_ARCHIVED"], Math.floor(count / 10)),
  }, say);
  say(`stored in ${seconds(Date.now() - beganAtMs)}`);
  await measure(world, { intervalSeconds, count });
}

async function measure(world: World, { intervalSeconds, count }: { readonly intervalSeconds: number; readonly count: number }): Promise<void> {
  const process = await world.spawnWorker();
  const watch = new WorkerWatch(process);
  const traffic = new LiveTraffic({ client: world.client, broker: world.broker, perSecond: number(globalThis.process.env["SWEEP_RATE"], 100) });
  try {
    const startUp = await watch.nextSweep("the start-up sweep");
    report("start-up", startUp, { watch, traffic });
    await pause(quietMs);
    const quiet = { beganAtMs: startUp.endedAtMs + 1_000, endedAtMs: Date.now() - 2_000, actions: new Map<string, number>() };
    say(`quiet: ${seconds(quiet.endedAtMs - quiet.beganAtMs)} (processor ${seconds(watch.cpuIn(quiet))})`);
    lateness("quiet", traffic.latenessIn(quiet.beganAtMs, quiet.endedAtMs));
    const regular = await watch.nextSweep("a regular sweep", (intervalSeconds + 600) * 1_000);
    report("regular", regular, { watch, traffic });
    await recreateSchedules(world);
    const lostAtMs = Date.now();
    const repair = await watch.nextSweep("the sweep after the loss", (intervalSeconds + 600) * 1_000);
    report("after loss", repair, { watch, traffic });
    say(`SCHEDULES was lost ${seconds(repair.beganAtMs - lostAtMs)} before that sweep began`);
    const again = await watch.nextSweep("one more sweep", (intervalSeconds + 600) * 1_000);
    report("once more", again, { watch, traffic });
    const { lastSequence, messages } = told(await world.broker.jetStream.streamState(streamNames.schedules));
    say(`SCHEDULES holds ${String(messages)} messages up to sequence ${String(lastSequence)} for ${String(count)} timers`);
    say(`traffic: ${JSON.stringify(traffic.counts())}; memory peak ${megabytes(watch.peakBytes())}`);
  } finally {
    watch.stop();
    await traffic.stop();
    await process.kill("SIGTERM");
  }
}

function report(name: string, sweep: Sweep, { watch, traffic }: { readonly watch: WorkerWatch; readonly traffic: LiveTraffic }): void {
  const { min, max } = watch.memoryIn(sweep);
  const cpu = watch.cpuIn(sweep);
  say(`${name}: ${seconds(sweep.endedAtMs - sweep.beganAtMs)} (processor ${seconds(cpu)}), memory ${megabytes(min)} to ${megabytes(max)}, actions ${JSON.stringify(Object.fromEntries(sweep.actions))}`);
  lateness(name, traffic.latenessIn(sweep.beganAtMs, sweep.endedAtMs));
}

function lateness(name: string, { count, p50Ms, p99Ms, earlyCount }: ReturnType<LiveTraffic["latenessIn"]>): void {
  say(`  ${name}: ${String(count)} resumes, late p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, early ${String(earlyCount)}`);
}

function say(line: string): void {
  console.log(`prove:sweep: ${line}`);
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(0)} MiB`;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => { setTimeout(resolve, ms); });
}
