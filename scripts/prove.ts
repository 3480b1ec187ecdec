// `npm run prove`: everything that is shown about the core, part by part, with counts: conformance of the model and of real servers,
// simulation, every crash point and pair, failures of real processes, replay, and the deliberate faults. `-- <part>…` runs some of it.
//
// PROVE_SCHEDULES says how many schedules are simulated (10,000 by default); with `all` the simulation never ends.

import { spawn } from "node:child_process";
import { root } from "./run-process.ts";

type Part = { readonly name: string; readonly args: readonly string[]; readonly env?: Readonly<Record<string, string>> };
type Outcome = { readonly name: string; readonly isGood: boolean; readonly counts: ReadonlyMap<string, number>; readonly line: string };

const vitest = (...args: readonly string[]): readonly string[] => ["node_modules/vitest/vitest.mjs", "run", ...args];

const PARTS: readonly Part[] = [
  { name: "conformance", args: vitest("--project", "sim", "--project", "int", "test/conformance") },
  { name: "simulation", args: vitest("--project", "sim", "test/simulation/schedules"), env: { SIMULATION_SCHEDULES: process.env["PROVE_SCHEDULES"] ?? "10000" } },
  { name: "crash points", args: vitest("--project", "sim", "test/simulation/crash-points"), env: { CRASH_PAIRS: "all" } },
  { name: "failures", args: vitest("--project", "fault", "test/faults") },
  { name: "replay", args: ["scripts/prove-replay.ts"] },
  { name: "faults", args: ["scripts/prove-faults.ts"] },
];

await main(process.argv.slice(2).filter((arg) => arg !== "--"));

async function main(words: readonly string[]): Promise<void> {
  const outcomes: Outcome[] = [];
  // A name of two words reaches us as two arguments, unless somebody quoted it.
  const isChosen = ({ name }: Part): boolean => words.length === 0 || words.includes(name) || words.join(" ").includes(name);
  for (const part of PARTS.filter(isChosen)) {
    console.log(`──── ${part.name} ────`);
    outcomes.push(await run(part));
  }
  console.log(`\n${outcomes.map(({ isGood, name, line }) => `${isGood ? "held  " : "BROKEN"}  ${name.padEnd(14)} ${line}`).join("\n")}`);
  console.log(`\n${totals(outcomes)}`);
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
  const lines = output.split("\n");
  return { name, isGood: code === 0, counts: countsIn(lines), line: lineOf(lines) };
}

/** The tests say what they counted as JSON behind a word, the scripts in their last line. */
function countsIn(lines: readonly string[]): ReadonlyMap<string, number> {
  const reported = lines.flatMap((line) => /(?:simulation|crash points) (\{.*\})/.exec(line)?.[1] ?? []).map((json) => JSON.parse(json) as Readonly<Record<string, number>>);
  const counts = new Map<string, number>();
  const add = (name: string, count: number): void => { counts.set(name, (counts.get(name) ?? 0) + count); };
  for (const [name, count] of reported.flatMap((report) => Object.entries(report))) add(isInvariant(name) ? "invariants checked" : name, count);
  const injected = /^prove:faults: (\d+) faults injected, (\d+) caught/.exec(lines.findLast((line) => line.startsWith("prove:faults:")) ?? "");
  if (injected !== null) {
    add("faults injected", Number(injected[1]));
    add("faults caught", Number(injected[2]));
  }
  const broken = /, (\d+) violations$/.exec(lines.findLast((line) => line.startsWith("prove:replay:")) ?? "");
  if (broken !== null) add("violations", Number(broken[1]));
  return counts;
}

function isInvariant(name: string): boolean {
  return /^I\d+$/.test(name);
}

/** What a part has to say in one line. */
function lineOf(lines: readonly string[]): string {
  const counts = countsIn(lines);
  const last = lines.map(plain).findLast((line) => /^prove:|Tests .*(?:passed|failed)/.test(line)) ?? "";
  if (counts.size === 0 || last.startsWith("prove:")) return last.replace(/^prove:[a-z]+: /, "").trim();
  return [...counts].map(([name, count]) => `${name} ${Math.round(count)}`).join(", ");
}

/** Without the colours of a terminal. */
function plain(line: string): string {
  // eslint-disable-next-line no-control-regex -- the colours are what is removed
  return line.replace(/\u001b\[[0-9;]*m/g, "");
}

/** The sums over all parts. */
function totals(outcomes: readonly Outcome[]): string {
  const sum = (name: string): number => outcomes.reduce((all, { counts }) => all + (counts.get(name) ?? 0), 0);
  const names = ["schedules", "points", "pairs", "invariants checked", "faults injected", "faults caught", "violations"] as const;
  const spelt: Partial<Record<(typeof names)[number], string>> = { schedules: "schedules run", points: "crash points tried", pairs: "pairs of crash points tried" };
  return names.map((name) => `${spelt[name] ?? name} ${sum(name)}`).join(" · ");
}
