// `npm run bench [-- <system>…]`: measures this product and the systems that people compare it with, all in one run on one machine,
// and writes docs/performance.md and bench/results/.
//
// B1 Ratios within one run count; absolute figures belong to the machine that the page names.
// B2 Every acknowledgement means "on disk", with every system, or its label says otherwise.
// B3 A system that is not installed is named with what it needs, and left out. A run that armed its burst too late is not counted.
// B4 BENCH_TIMERS, BENCH_ROUNDS and BENCH_MODES make it smaller.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "../scripts/run-process.ts";
import type { Load, Measurement } from "./harness.ts";
import { installPeers } from "./peers.ts";
import { writeReport } from "./report.ts";
import { NotInstalled, startDurableTimer, startNats, startPostgres, startRedis } from "./services.ts";
import type { Service } from "./services.ts";

/** One row of the comparison, measured `rounds` times. */
export type Row = { readonly name: string; readonly label: string; readonly load: Omit<Load, "pids">; readonly runs: readonly Measurement[] };

type Contender = {
  readonly name: string;
  readonly label: string;
  readonly isPeer: boolean;
  /** A burst has to be armed before it is due; slow systems need longer. */
  readonly leadMs: number;
  readonly startsInFlight: number;
  readonly start: () => Promise<Service>;
};

const ours = { isPeer: false, name: "durable-timer", start: () => startDurableTimer({ replicas: 1, workerCount: 1 }) };
const oursReplicated = { ...ours, start: () => startDurableTimer({ replicas: 3, workerCount: 1 }) };

const CONTENDERS: readonly Contender[] = [
  { ...ours, label: "NATS R1, always; 64 in flight", leadMs: 25_000, startsInFlight: 64 },
  { ...ours, label: "NATS R1, always; 1,024 in flight", leadMs: 25_000, startsInFlight: 1_024 },
  { ...oursReplicated, label: "NATS R3, always; 64 in flight", leadMs: 40_000, startsInFlight: 64 },
  { name: "nats-schedules", label: "NATS R1, always", isPeer: false, leadMs: 20_000, startsInFlight: 64, start: () => startNats(1) },
  { name: "bullmq", label: "Redis, fsync always; 64 in flight", isPeer: true, leadMs: 25_000, startsInFlight: 64, start: startRedis },
  { name: "bullmq", label: "Redis, fsync always; 1,024 in flight", isPeer: true, leadMs: 25_000, startsInFlight: 1_024, start: startRedis },
  { name: "postgres", label: "SKIP LOCKED and NOTIFY, fsync on", isPeer: true, leadMs: 25_000, startsInFlight: 64, start: () => startPostgres("postgres") },
  { name: "pg-boss", label: "fsync on, batches of 500", isPeer: true, leadMs: 45_000, startsInFlight: 64, start: () => startPostgres("pg-boss") },
  { name: "graphile-worker", label: "fsync on", isPeer: true, leadMs: 80_000, startsInFlight: 64, start: () => startPostgres("graphile-worker") },
];

const timerCount = Number(process.env["BENCH_TIMERS"] ?? 20_000);
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 3);
const modes = (process.env["BENCH_MODES"] ?? "spread burst").split(" ") as readonly Load["mode"][];

await main(process.argv.slice(2).filter((arg) => arg !== "--"));

async function main(names: readonly string[]): Promise<void> {
  const chosen = CONTENDERS.filter(({ name }) => names.length === 0 || names.includes(name));
  if (chosen.some(({ isPeer }) => isPeer)) installPeers();
  const rows = chosen.flatMap((contender) => modes.map((mode) => ({ contender, load: loadOf(contender, mode), runs: [] as Measurement[] })));
  const missing = new Map<string, string>();
  for (let round = 1; round <= rounds; round += 1) {
    for (const row of rows.filter(({ contender }) => !missing.has(contender.name))) await runOnce(row, missing);
  }
  for (const [name, needs] of missing) console.log(`${name} was left out: it needs ${needs}`);
  const measured = rows.filter(({ runs }) => runs.length > 0).map(({ contender: { name, label }, load, runs }) => ({ name, label, load, runs }));
  writeReport(measured, [...missing].map(([name, needs]) => `${name}, which needs ${needs}`));
}

function loadOf({ leadMs, startsInFlight }: Contender, mode: Load["mode"]): Omit<Load, "pids"> {
  return { mode, timerCount, startsInFlight, bodyBytes: 512, leadMs, giveUpMs: 120_000 };
}

async function runOnce(row: { readonly contender: Contender; readonly load: Omit<Load, "pids">; readonly runs: Measurement[] }, missing: Map<string, string>): Promise<void> {
  const { contender, load } = row;
  try {
    await using service = await contender.start();
    const measurement = await measureApart({ target: service.target, load: { ...load, pids: service.pids } });
    console.log(`${contender.name.padEnd(16)} ${load.mode.padEnd(6)} ${contender.label.padEnd(38)} ${JSON.stringify(measurement)}`);
    if (!measurement.armedLate) row.runs.push(measurement);
  } catch (error) {
    if (!(error instanceof NotInstalled)) throw error;
    missing.set(contender.name, error.message);
  }
}

/** In a process of its own, so that no system inherits another one's heap. */
async function measureApart(task: object): Promise<Measurement> {
  const child = spawn(process.execPath, [join(root, "bench", "measure.ts"), JSON.stringify(task)], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (data: Buffer) => { output += data.toString(); });
  const code = await new Promise<number | null>((resolve) => { child.on("close", resolve); });
  const line = output.split("\n").findLast((text) => text.startsWith("{"));
  if (code !== 0 || line === undefined) throw new Error(`a measurement ended with ${String(code)}:\n${output}`);
  return JSON.parse(line) as Measurement;
}
