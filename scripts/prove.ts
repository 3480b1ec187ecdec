// `npm run prove`: conformance of the model, simulation, every crash point and pair, replay and the table of faults, with counts.
//
// PROVE_SCHEDULES says how many schedules are simulated (10,000 by default); with `all` the simulation never ends.

import { spawn } from "node:child_process";
import { root } from "./run-process.ts";

type Part = { readonly name: string; readonly args: readonly string[]; readonly env?: Readonly<Record<string, string>> };
type Outcome = { readonly name: string; readonly isGood: boolean; readonly lines: readonly string[] };

const vitest = (...paths: readonly string[]): readonly string[] => ["node_modules/vitest/vitest.mjs", "run", "--project", "sim", ...paths];

const PARTS: readonly Part[] = [
  { name: "conformance of the model", args: vitest("test/conformance") },
  { name: "simulation", args: vitest("test/simulation/schedules"), env: { SIMULATION_SCHEDULES: process.env["PROVE_SCHEDULES"] ?? "10000" } },
  { name: "crash points", args: vitest("test/simulation/crash-points"), env: { CRASH_PAIRS: "all" } },
  { name: "replay", args: ["scripts/prove-replay.ts"] },
  { name: "faults", args: ["scripts/prove-faults.ts"] },
];

await main(process.argv.slice(2).filter((arg) => arg !== "--"));

async function main(names: readonly string[]): Promise<void> {
  const outcomes: Outcome[] = [];
  for (const part of PARTS.filter(({ name }) => names.length === 0 || names.includes(name))) {
    console.log(`──── ${part.name} ────`);
    outcomes.push(await run(part));
  }
  console.log(`\n${summary(outcomes).join("\n")}`);
  const failed = outcomes.filter(({ isGood }) => !isGood).length;
  console.log(`${outcomes.length - failed} passed, ${failed} failed`);
  process.exitCode = failed === 0 && outcomes.length > 0 ? 0 : 1;
}

async function run({ name, args, env }: Part): Promise<Outcome> {
  const child = spawn(process.execPath, [...args], { cwd: root, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (data: Buffer) => {
    output += data.toString();
    process.stdout.write(data);
  });
  const code = await new Promise<number | null>((resolve) => { child.on("close", resolve); });
  return { name, isGood: code === 0, lines: output.split("\n") };
}

function summary(outcomes: readonly Outcome[]): readonly string[] {
  return outcomes.map(({ name, isGood, lines }) => `${isGood ? "held  " : "BROKEN"}  ${name.padEnd(26)} ${countsIn(lines)}`);
}

/** The tests say what they counted as JSON behind a word. */
function countsIn(lines: readonly string[]): string {
  const reported = lines.flatMap((line) => /(?:simulation|crash points) (\{.*\})/.exec(line)?.[1] ?? []).map((json) => JSON.parse(json) as Readonly<Record<string, number | string>>);
  const totals = new Map<string, number>();
  for (const [key, value] of reported.flatMap((report) => Object.entries(report))) {
    if (typeof value === "number") totals.set(key, (totals.get(key) ?? 0) + value);
  }
  if (totals.size > 0) return [...totals].map(([key, value]) => `${key} ${Math.round(value * 10) / 10}`).join(", ");
  const last = lines.findLast((line) => /^prove:|Tests .*(?:passed|failed)/.test(line)) ?? "";
  return last.replace(/^prove:[a-z]+: /, "").trim();
}
