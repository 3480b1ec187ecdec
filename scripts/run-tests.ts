// Runs the named tiers of tests one after the other and counts them: `run-tests.ts <tier>… [-- or more arguments for vitest]`.
//
// R1. The last line is `N passed, N failed`, with `, N skipped` if anything was; it counts every test of every tier.
// R2. A tier whose tools this machine lacks says what it needs and counts as one skipped test. With CI set it counts as one failed
//     test: what CI selects must run.
// R3. Failures outside tests (a file that does not load, an error after the tests) count as failed tests, never as nothing.
// R4. The exit code is 0 only if nothing failed and at least one test passed.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { toolsMissing } from "../test/cluster/tools.ts";
import { root, runNode } from "./run-process.ts";
import { countTests, noTests, summaryLine, totalOf } from "./test-count.ts";
import type { TestCount } from "./test-count.ts";

type Tier = {
  readonly title: string;
  /** What this machine lacks to run the tier, each with what to do about it. */
  readonly missing: () => readonly string[];
};

type TierResult = { readonly name: string; readonly count: TestCount; readonly durationMs: number; readonly note: string };

const isCi = process.env["CI"] === "true" || process.env["CI"] === "1";

const natsMissing = (): readonly string[] =>
  ["DURABLE_TIMER_NATS_SERVER", "DURABLE_TIMER_NATS_SERVER_FLOOR"]
    .filter((name) => (process.env[name] ?? "") === "")
    .map((name) => `a NATS server that ${name} points to (\`npm run setup\` brings it)`);

const bedMissing = (tier: "api" | "node") => (): readonly string[] => [
  ...natsMissing(),
  ...toolsMissing(tier).map(({ tool, remedy }) => `${tool} (${remedy})`),
];

const TIERS: ReadonlyMap<string, Tier> = new Map([
  ["unit", { title: "pure", missing: () => [] }],
  ["repo", { title: "this repository's own checks", missing: () => [] }],
  ["sim", { title: "simulation in virtual time", missing: () => [] }],
  ["int", { title: "real NATS servers", missing: natsMissing }],
  ["fault", { title: "failures of real servers and workers", missing: natsMissing }],
  ["api", { title: "a real Kubernetes API server", missing: bedMissing("api") }],
  ["e2e", { title: "a real node with pods", missing: bedMissing("node") }],
]);

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  const names = args.filter((arg, index) => TIERS.has(arg) && args.indexOf(arg) === index);
  const vitestArgs = args.filter((arg) => !TIERS.has(arg) && arg !== "--");
  const results: TierResult[] = [];
  for (const [name, tier] of TIERS) {
    if (names.includes(name)) results.push(await runTier(name, tier, vitestArgs));
  }
  const total = totalOf(results.map(({ count }) => count));
  console.log(`\n${results.map(describeResult).join("\n")}\n`);
  if (total.passed + total.failed === 0) console.log("No test ran.");
  console.log(summaryLine(total));
  process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;
}

async function runTier(name: string, tier: Tier, vitestArgs: readonly string[]): Promise<TierResult> {
  const startedAtMs = Date.now();
  const result = (count: TestCount, note: string): TierResult => ({ name, count, note, durationMs: Date.now() - startedAtMs });
  console.log(`\n──── ${name}: ${tier.title} ────`);
  const missing = tier.missing();
  if (missing.length === 0) return result(await runVitest(name, vitestArgs), "");
  const note = `needs ${missing.join("; ")}`;
  console.log(`This tier ${note}.`);
  return result(isCi ? { ...noTests, failed: 1 } : { ...noTests, skipped: 1 }, note);
}

async function runVitest(project: string, vitestArgs: readonly string[]): Promise<TestCount> {
  mkdirSync(join(root, ".cache"), { recursive: true });
  const reportDir = mkdtempSync(join(root, ".cache", "test-report-"));
  const reportPath = join(reportDir, "report.json");
  try {
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${reportPath}`];
    const exitCode = await runNode(["node_modules/vitest/vitest.mjs", "run", "--project", project, ...reporters, ...vitestArgs]);
    return countTests(existsSync(reportPath) ? readFileSync(reportPath, "utf8") : "", exitCode);
  } finally {
    rmSync(reportDir, { recursive: true, force: true });
  }
}

function describeResult({ name, count, durationMs, note }: TierResult): string {
  return `${name.padEnd(5)} ${(durationMs / 1000).toFixed(1).padStart(6)} s  ${summaryLine(count)}${note === "" ? "" : ` (${note})`}`;
}
