// `npm run check`: everything about the code that needs no test run. Steps go on after a failed one, so that one run shows all.
//
// The last line is `N passed, N failed`, one per step.

import { checkRooms } from "./room-rules.ts";
import { root, runNode } from "./run-process.ts";

type Step = { readonly name: string; readonly run: () => Promise<boolean> };

const program = (...args: readonly string[]) => async (): Promise<boolean> => (await runNode(args)) === 0;

const STEPS: readonly Step[] = [
  { name: "types", run: program("node_modules/typescript/bin/tsc", "--project", "tsconfig.json") },
  { name: "types of pure rooms", run: program("node_modules/typescript/bin/tsc", "--project", "tsconfig.pure.json") },
  { name: "lint", run: program("node_modules/eslint/bin/eslint.js", "--max-warnings", "0", ".") },
  { name: "rooms", run: roomsHold },
  { name: "tidy", run: program("scripts/tidy.ts") },
  { name: "dead code", run: program("node_modules/knip/bin/knip.js", "--no-progress") },
];

await main(process.argv.slice(2));

async function main(names: readonly string[]): Promise<void> {
  const steps = STEPS.filter(({ name }) => names.length === 0 || names.includes(name));
  const lines: string[] = [];
  let failed = 0;
  for (const { name, run } of steps) {
    console.log(`──── ${name} ────`);
    const startedAtMs = Date.now();
    const isGood = await run();
    if (!isGood) failed += 1;
    lines.push(`${isGood ? "passed" : "FAILED"}  ${((Date.now() - startedAtMs) / 1000).toFixed(1).padStart(5)} s  ${name}`);
  }
  console.log(`\n${lines.join("\n")}\n\n${steps.length - failed} passed, ${failed} failed`);
  process.exitCode = failed === 0 && steps.length > 0 ? 0 : 1;
}

async function roomsHold(): Promise<boolean> {
  const { violations, fileCount, cruisedCount } = await checkRooms(root);
  for (const { rule, from, to } of violations) console.log(from === to ? `${from}: ${rule}` : `${from} → ${to}: ${rule}`);
  if (cruisedCount !== fileCount) console.log(`Only ${cruisedCount} of ${fileCount} files of src were looked at.`);
  return violations.length === 0 && cruisedCount === fileCount;
}
