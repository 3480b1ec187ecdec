// Runs the real .ci/run with a stand-in for npm, to check what it makes of the commands' endings.

import { spawnSync } from "node:child_process";
import { chmodSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withTree } from "../rooms/planted-tree.ts";

const script = readFileSync(join(import.meta.dirname, "../../.ci/run"), "utf8");

type Row = { readonly name: string; readonly npm: string; readonly nodeTier?: string; readonly last: string; readonly exitCode: number; readonly because: string };

const check = '[ "$2" = check ] && echo "6 passed, 0 failed" && exit 0';

const rows: readonly Row[] = [
  { name: "good runs add up", npm: `${check}\necho "10 passed, 0 failed, 2 skipped"`, last: "16 passed, 0 failed, 2 skipped", exitCode: 0, because: "steps of the checks are counted too" },
  { name: "only a command's last summary counts", npm: `${check}\necho "1 passed, 0 failed"\necho "10 passed, 0 failed"`, last: "16 passed, 0 failed", exitCode: 0, because: "the earlier ones are parts of it" },
  { name: "a failed test fails the run", npm: `${check}\necho "10 passed, 1 failed"\nexit 1`, last: "16 passed, 1 failed", exitCode: 1, because: "it is counted once" },
  { name: "a command that dies without counts is a failure", npm: `${check}\nexit 3`, last: "6 passed, 1 failed", exitCode: 1, because: "nothing is known about its tests" },
  { name: "a command that ends badly after good tests is a failure", npm: `${check}\necho "10 passed, 0 failed"\nexit 1`, last: "16 passed, 1 failed", exitCode: 1, because: "its exit code counts" },
  { name: "a run of no tests is a failure", npm: "exit 0", last: "0 passed, 0 failed", exitCode: 1, because: "silence is no success" },
  { name: "the node tier runs when selected", npm: `${check}\n[ "$2" = test:cluster ] && echo "4 passed, 0 failed" && exit 0\necho "10 passed, 0 failed"`, nodeTier: "yes", last: "20 passed, 0 failed", exitCode: 0, because: "its tests are added" },
  { name: "commands know that they run in CI", npm: `${check}\necho "$CI" | grep -q true && echo "10 passed, 0 failed"`, last: "16 passed, 0 failed", exitCode: 0, because: "a tier that cannot run must fail there" },
];

test.each(rows)("$name", async ({ npm, nodeTier, last, exitCode, because }) => {
  await withTree({ ".ci/run": script, "path/npm": `#!/bin/bash\n${npm}\n` }, [], (dir) => {
    chmodSync(join(dir, "path/npm"), 0o755);
    const env = { PATH: `${join(dir, "path")}:/usr/bin:/bin`, DURABLE_TIMER_CI_NODE_TIER: nodeTier ?? "no" };
    const { stdout, status } = spawnSync("bash", [join(dir, ".ci/run")], { env, encoding: "utf8" });
    expect({ last: stdout.trimEnd().split("\n").at(-1), exitCode: status }, because).toEqual({ last, exitCode });
  });
});
