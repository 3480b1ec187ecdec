// Runs the named tiers of tests one after the other and counts them: `run-tests.ts <tier>… [-- or more arguments for vitest]`.
//
// R1. The last line is `N passed, N failed`, with `, N skipped` if anything was; it counts every test of every tier.
// R2. A tier whose tools this machine lacks says what it needs and counts as one skipped test. With CI set it counts as one failed
//     test: what CI selects must run.
// R3. Failures outside tests (a file that does not load, an error after the tests) count as failed tests, never as nothing.
// R4. The exit code is 0 only if nothing failed and at least one test passed.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isOnPath, root, runNode } from "./run-process.ts";
import { countTests, noTests, summaryLine, totalOf } from "./test-count.ts";
import type { TestCount } from "./test-count.ts";

type Need = { readonly isMet: () => boolean; readonly remedy: string };

type Tier = {
  readonly title: string;
  readonly needs: readonly Need[];
  /** A script that builds what the tier runs on; it is quick when everything is there. */
  readonly prepare?: readonly string[];
};

type TierResult = { readonly name: string; readonly count: TestCount; readonly durationMs: number; readonly note: string };

const isCi = process.env["CI"] === "true" || process.env["CI"] === "1";

const tool = (name: string, packageHint: string): Need => ({ isMet: () => isOnPath(name), remedy: `${name} on the PATH (${packageHint})` });

const variable = (name: string): Need => ({
  isMet: () => (process.env[name] ?? "") !== "",
  remedy: `a NATS server that ${name} points to (\`node scripts/bootstrap.mjs setup\` brings it)`,
});

const nats = [variable("DURABLE_TIMER_NATS_SERVER"), variable("DURABLE_TIMER_NATS_SERVER_FLOOR")];
const kubernetes = [tool("go", "https://go.dev/dl"), tool("openssl", "apt-get install openssl")];
const node: readonly Need[] = [
  { isMet: () => process.platform === "linux", remedy: "Linux" },
  { isMet: () => process.getuid?.() === 0, remedy: "root (it mounts, and makes network namespaces)" },
];

const TIERS: ReadonlyMap<string, Tier> = new Map([
  ["unit", { title: "pure", needs: [] }],
  ["repo", { title: "this repository's own checks", needs: [] }],
  ["sim", { title: "simulation in virtual time", needs: [] }],
  ["int", { title: "real NATS servers", needs: nats }],
  ["api", { title: "a real Kubernetes API server", needs: [...nats, ...kubernetes], prepare: ["test/cluster/build.ts", "api"] }],
  ["e2e", { title: "a real node with pods", needs: [...nats, ...kubernetes, ...node], prepare: ["test/cluster/build.ts", "node"] }],
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
  const missing = tier.needs.filter((need) => !need.isMet()).map(({ remedy }) => remedy);
  if (missing.length > 0) {
    const note = `needs ${missing.join("; ")}`;
    console.log(`This tier ${note}.`);
    return result(isCi ? { ...noTests, failed: 1 } : { ...noTests, skipped: 1 }, note);
  }
  if (!(await prepared(tier))) return result({ ...noTests, failed: 1 }, `could not be prepared: ${String(tier.prepare?.join(" "))}`);
  return result(await runVitest(name, vitestArgs), "");
}

async function prepared({ prepare }: Tier): Promise<boolean> {
  if (prepare === undefined || !existsSync(join(root, String(prepare[0])))) return true;
  return (await runNode(prepare)) === 0;
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
