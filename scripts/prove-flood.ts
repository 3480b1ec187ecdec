// `node scripts/prove-flood.ts [seconds]`: what floods do to timers that have nothing to do with them.
//
// A quiet flow runs at a steady pace, alone and then beside each flood in turn: commands that nobody can read, feedback for
// timers that nobody knows, and another flow a hundred times as busy. Both are measured in one run and compared as ratios,
// because absolute figures say more about the machine. At last it measures what the one start subject takes in.
// FLOOD_RATE is the pace of the invalid commands (1,500 a second), FLOOD_WORKERS the number of worker processes (2).

import { readFileSync } from "node:fs";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import { commandSubjects, headerNames, streamNames } from "../src/protocol/names.ts";
import { payloadHash } from "../src/timer/hashes.ts";
import { systemSha256 } from "../src/system/sha256.ts";
import { openWorld, told, type World } from "../test/worker/world.ts";
import { PacedLoads, percentile, type Latencies, type Step } from "./prove/paced-load.ts";

const number = (text: string | undefined, fallback: number): number => (text === undefined || text === "" ? fallback : Number(text));
const quietPerSecond = 20;
const floodPerSecond = number(process.env["FLOOD_RATE"], 1_500);
const workerCount = number(process.env["FLOOD_WORKERS"], 2);
/** Below the number of outcomes that one client awaits at once. */
const intakeCount = 8_000;
const steps: readonly Step[] = ["start", "wake", "feedback"];

await main(number(process.argv.slice(2).find((arg) => /^\d+$/.test(arg)), 15));

async function main(seconds: number): Promise<void> {
  const size = "1Gi";
  await using world = await openWorld({ syncInterval: "2m", maxFileStore: 16 * 1024 ** 3, sizes: { state: size, commands: size, feedback: size, snapshots: size, terminals: size, resumes: size } });
  const workers = await Promise.all(Array.from({ length: workerCount }, () => world.spawnWorker()));
  const sender = await connect({ servers: [...world.servers.urls] });
  const loads = new PacedLoads(world.client);
  console.log(`NATS ${world.servers.version}, ${String(workers.length)} workers; quiet flow ${String(quietPerSecond)} timers/s, each phase ${String(seconds)} s; milliseconds p50 / p99\n`);
  try {
    const quiet = () => loads.run({ flow: "quiet", perSecond: quietPerSecond, seconds });
    const pids = { server: world.servers.servers.map(({ pid }) => pid), workers: workers.map(({ child }) => child.pid ?? 0) };
    const phase = async (name: string, run: () => Promise<Latencies>, alone?: Latencies): Promise<Latencies> => {
      const before = { server: cpuSeconds(pids.server), workers: cpuSeconds(pids.workers) };
      const latencies = await run();
      show(name, latencies, alone);
      await drained(world);
      console.log(`  processor time: server ${(cpuSeconds(pids.server) - before.server).toFixed(1)} s, workers ${(cpuSeconds(pids.workers) - before.workers).toFixed(1)} s`);
      return latencies;
    };
    await loads.run({ flow: "warm", perSecond: quietPerSecond, seconds: 3 });
    const alone = await phase("alone", quiet);
    for (const [name, flood] of floods(sender, loads, seconds)) {
      await phase(`beside ${name}`, async () => (await Promise.all([quiet(), flood()]))[0], alone);
    }
    await showStreams(world);
    const before = { server: cpuSeconds(pids.server), workers: cpuSeconds(pids.workers) };
    await showIntake(world, loads);
    const perStart = (role: "server" | "workers"): string => (((cpuSeconds(pids[role]) - before[role]) * 1_000) / intakeCount).toFixed(2);
    console.log(`each start took ${perStart("server")} ms of the server's processor time and ${perStart("workers")} ms of the workers'`);
    const dead = workers.filter(({ child }) => child.exitCode !== null);
    console.log(dead.length === 0 ? "\nevery timer ended, every worker lives" : `\n${String(dead.length)} workers died`);
    process.exitCode = dead.length === 0 ? 0 : 1;
  } finally {
    await loads.stop();
    await sender.close();
  }
}

type Flood = readonly [name: string, run: () => Promise<unknown>];

function floods(sender: NatsConnection, loads: PacedLoads, seconds: number): readonly Flood[] {
  const unreadable = (index: number): void => {
    publish(sender, index % 2 === 0 ? commandSubjects.start : commandSubjects.complete, `{"v":1,"junk":"${"x".repeat(1_000)}"}`);
  };
  const unknown = (index: number): void => {
    publish(sender, commandSubjects.complete, JSON.stringify({
      v: 1, flow: { id: "nobody", version: "1" }, execution: `nobody-${String(index)}`, node: "n", edges: { start: "s", elapsed: "e" }, generation: 0, fence: 2,
      snapshotHash: `sha256:${"0".repeat(64)}`, payloadHash: payloadHash(new Uint8Array(), systemSha256),
    }));
  };
  const rate = `${String(floodPerSecond)}/s`;
  return [
    [`commands that nobody can read, ${rate}`, () => paced(unreadable, seconds)],
    [`feedback for unknown timers, ${rate}`, () => paced(unknown, seconds)],
    [`a flow that starts ${String(100 * quietPerSecond)} timers at once`, () => loads.run({ flow: "busy", perSecond: 100_000, seconds: (100 * quietPerSecond) / 100_000, delayMs: 1_000 })],
  ];
}

function publish(sender: NatsConnection, subject: string, context: string): void {
  const own = headers();
  own.set(headerNames.context, context);
  sender.publish(subject, new Uint8Array(), { headers: own });
}

async function paced(send: (index: number) => void, seconds: number): Promise<void> {
  const beganAtMs = performance.now();
  for (let index = 0; index < floodPerSecond * seconds;) {
    const due = Math.min(floodPerSecond * seconds, ((performance.now() - beganAtMs) * floodPerSecond) / 1_000);
    for (; index < due; index += 1) send(index);
    await new Promise((resolve) => { setTimeout(resolve, 5); });
  }
}

/** Of all processes together, from Linux's account of them. */
function cpuSeconds(pids: readonly number[]): number {
  const ticks = pids.map((pid) => {
    const fields = readFileSync(`/proc/${String(pid)}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return Number(fields[11]) + Number(fields[12]);
  });
  return ticks.reduce((sum, count) => sum + count, 0) / 100;
}

function show(name: string, latencies: Latencies, alone?: Latencies): void {
  const cells = steps.map((step) => {
    const [p50, p99] = [percentile(latencies[step], 0.5), percentile(latencies[step], 0.99)];
    const ratio = alone === undefined ? "" : `  × ${(p50 / percentile(alone[step], 0.5)).toFixed(2)} / ${(p99 / percentile(alone[step], 0.99)).toFixed(2)}`;
    return `${step.padEnd(8)} ${p50.toFixed(1).padStart(7)} / ${p99.toFixed(1).padStart(7)}${ratio}`;
  });
  console.log(`${name}\n  ${cells.join("\n  ")}`);
}

async function drained(world: World): Promise<void> {
  for (;;) {
    const left = await Promise.all([streamNames.commands, streamNames.feedback].map(async (stream) => told(await world.broker.jetStream.streamState(stream)).messages));
    if (left.every((count) => count === 0)) return;
    await new Promise((resolve) => { setTimeout(resolve, 200); });
  }
}

async function showStreams(world: World): Promise<void> {
  const states = await Promise.all(Object.values(streamNames).map(async (stream) => told(await world.broker.jetStream.streamState(stream))));
  console.log(`\nleft in the streams: ${states.map(({ name, messages, bytes }) => `${name} ${String(messages)} (${(bytes / 1024).toFixed(0)} KiB)`).join(", ")}`);
}

/** The one start subject is served in order: a start waits for all that came before it, whoever sent them. */
async function showIntake(world: World, loads: PacedLoads): Promise<void> {
  const request = (index: number) => ({
    flow: { id: "intake", version: "1" }, execution: `intake-${String(index)}`, node: "n", edges: { start: "s", elapsed: "e" }, wait: { delayMs: 86_400_000 }, body: Buffer.alloc(256),
  });
  const beganAtMs = performance.now();
  const started = Promise.all(Array.from({ length: intakeCount }, (_, index) => world.client.start(request(index), { awaitOutcome: true, outcomeTimeoutMs: 300_000 })));
  const [late] = await Promise.all([loads.run({ flow: "late", perSecond: 1_000, seconds: 0.02 }), started.then(() => { /* Counted below. */ })]);
  const perSecond = (intakeCount * 1_000) / (performance.now() - beganAtMs);
  console.log(`the start subject took in ${perSecond.toFixed(0)} starts/s of 256 bytes; a start behind ${String(intakeCount)} others waited ${(percentile(late.start, 0.5) / 1_000).toFixed(1)} s`);
}
