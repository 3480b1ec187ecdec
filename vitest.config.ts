// One vitest project per tier of tests; scripts/run-tests.ts selects them and says what a tier needs.
//
// Tests learn from two variables where the NATS servers are. The scripts set them; for `npx vitest` straight from a shell they are
// asked from the bootstrap here, which looks and brings nothing.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

const servers = natsServers();
Object.assign(process.env, servers);

/** Two cores are the smallest machine that the suite is meant for; real servers need the rest. */
const workersMax = 2;

/** They start compilers and linters, which would hide how quick the pure tests are. */
const repositoryTests = ["test/scripts/**/*.test.ts", "test/rooms/**/*.test.ts"];

export default defineConfig({
  test: {
    env: servers,
    maxWorkers: workersMax,
    passWithNoTests: true,
    // A busy machine delays what a test waits for; the bound is for what never comes.
    expect: { requireAssertions: true, poll: { interval: 50, timeout: 30_000 } },
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/**/*.{int,api,e2e,sim,fault}.test.ts", ...repositoryTests],
          testTimeout: 10_000,
        },
      },
      { test: { name: "repo", include: repositoryTests, testTimeout: 60_000 } },
      { test: { name: "sim", include: ["test/**/*.sim.test.ts"], testTimeout: 600_000 } },
      {
        test: {
          name: "int",
          include: ["test/**/*.int.test.ts"],
          exclude: ["test/kube/**", "test/cluster/**"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      // Every file starts servers and workers of its own, and mostly waits for them.
      { test: { name: "fault", include: ["test/faults/**/*.fault.test.ts"], testTimeout: 300_000, hookTimeout: 120_000 } },
      {
        test: {
          name: "api",
          include: ["test/**/*.api.test.ts", "test/{kube,cluster}/**/*.int.test.ts"],
          globalSetup: ["test/cluster/api.setup.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/**/*.e2e.test.ts"],
          globalSetup: ["test/cluster/node.setup.ts"],
          testTimeout: 600_000,
          hookTimeout: 900_000,
          fileParallelism: false,
        },
      },
    ],
  },
});

function natsServers(): Record<string, string> {
  const text = execFileSync(process.execPath, [join(import.meta.dirname, "scripts/bootstrap.mjs"), "env"], { encoding: "utf8" });
  const pairs = text.split("\n").filter((line) => line.includes("="));
  return Object.fromEntries(pairs.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
}
