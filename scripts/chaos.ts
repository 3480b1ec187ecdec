// `npm run chaos`: many timers while workers and servers are killed, stopped and cut off, once with one server and once with three; then
// the account of all of them from what NATS holds. The whole run writes docs/chaos.md; a smaller one writes only where it is told to.
//
//   npm run chaos -- --timers 2000         about a minute
//   npm run chaos -- --seed 42             the same plans and disturbances again
//   npm run chaos -- --servers 3           all timers on three servers
//   npm run chaos -- --minutes 10          a storm of ten minutes in each run
//   npm run chaos -- --report chaos.md     the report in this file

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { reportText, summaryLines } from "./chaos/report.ts";
import { runChaos, type RunOptions, type RunResult } from "./chaos/run.ts";
import { root } from "./run-process.ts";

type Asked = { readonly seed: number; readonly runs: readonly Pick<RunOptions, "serverCount" | "timerCount" | "stormMs">[]; readonly reportPath: string | undefined };

const timersWhole = 50_000;
/** Of the timers of a run with both, those on one server. */
const shareOfOneServer = 0.6;
const timersPerSecond = { 1: 180, 3: 120 } as const;
const stormMsMin = 15_000;

await main();

async function main(): Promise<void> {
  const asked = readArguments(process.argv.slice(2).filter((arg) => arg !== "--"));
  console.log(`chaos: seed ${String(asked.seed)}`);
  const results: RunResult[] = [];
  const breakingOff = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => { breakingOff.abort(); });
  for (const run of asked.runs) {
    const result = await runChaos({ ...run, seed: asked.seed, signal: breakingOff.signal, tell: (what) => { console.log(`${new Date().toISOString().slice(11, 19)} ${what}`); } });
    console.log(`\n${summaryLines(result).join("\n")}\n`);
    results.push(result);
  }
  const violationCount = results.reduce((sum, { checks }) => sum + checks.reduce((all, { violations }) => all + violations.length, 0), 0);
  const holds = results.every(({ verdict }) => verdict.identity.holds);
  if (asked.reportPath !== undefined) writeFileSync(asked.reportPath, reportText({ seed: asked.seed, results }));
  if (violationCount > 0 || !holds) console.log(`what happened, in order: ${keepTraces(asked.seed, results)}`);
  console.log(`chaos: ${String(results.reduce((sum, { timerCount }) => sum + timerCount, 0))} timers, ${String(results.reduce((sum, { disturbances }) => sum + disturbances.length, 0))} disturbances, ${String(violationCount)} violations, the identity ${holds ? "holds" : "DOES NOT HOLD"}`);
  process.exitCode = violationCount === 0 && holds ? 0 : 1;
}

function readArguments(args: readonly string[]): Asked {
  const { values } = parseArgs({
    args: [...args],
    options: { seed: { type: "string" }, timers: { type: "string" }, minutes: { type: "string" }, servers: { type: "string" }, report: { type: "string" } },
  });
  const timerCount = whole(values.timers ?? String(timersWhole), "--timers");
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : whole(values.seed, "--seed");
  const stormMs = values.minutes === undefined ? undefined : Math.round(Number(values.minutes) * 60_000);
  if (stormMs !== undefined && !(stormMs > 0)) throw new Error("--minutes takes a number above 0");
  const isWhole = timerCount >= timersWhole && values.servers === undefined;
  const reportPath = values.report ?? (isWhole ? join(root, "docs", "chaos.md") : undefined);
  const runs = split(timerCount, values.servers).map(([serverCount, count]) => (
    { serverCount, timerCount: count, stormMs: stormMs ?? Math.max(stormMsMin, Math.round((count / timersPerSecond[serverCount]) * 1_000)) }));
  return { seed, runs, reportPath };
}

function split(timerCount: number, servers: string | undefined): readonly (readonly [serverCount: 1 | 3, count: number])[] {
  switch (servers) {
    case "1":
      return [[1, timerCount]];
    case "3":
      return [[3, timerCount]];
    case undefined:
      return [[1, Math.round(timerCount * shareOfOneServer)], [3, timerCount - Math.round(timerCount * shareOfOneServer)]];
    default:
      throw new Error("--servers takes 1 or 3");
  }
}

function whole(text: string, name: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`${name} takes a whole number above 0`);
  return value;
}

/** Everything that was done to whom, and the workers' last lines: what one needs to look into a violation. */
function keepTraces(seed: number, results: readonly RunResult[]): string {
  const folder = join(root, ".cache", `chaos-${String(seed)}`);
  mkdirSync(folder, { recursive: true });
  for (const { serverCount, trace, checks } of results) {
    const violations = checks.flatMap(({ name, violations: all }) => all.map(({ timer, problem }) => `${name}: ${timer} ${problem}`));
    writeFileSync(join(folder, `${String(serverCount)}-servers.log`), [...violations, ...trace].join("\n"));
  }
  return folder;
}
