// Checks of the repository that no linter makes: names, mirror tests, documentation that must keep up with code, leftovers.
//
// As a program it prints what it found and ends with 1 if there was anything; test/scripts/tidy.test.ts runs the same list.

import { checkDocComments } from "./tidy/doc-comments.ts";
import { checkDecisionRecords, checkLinks, checkRoomsTable, checkScriptTable } from "./tidy/documents.ts";
import { checkGenerated } from "./tidy/generated.ts";
import { checkLeftovers } from "./tidy/leftovers.ts";
import { checkMirrorTests } from "./tidy/mirror-tests.ts";
import { checkFileNames } from "./tidy/names.ts";
import { checkPackages } from "./tidy/packages.ts";
import type { Check, Problem } from "./tidy/repository.ts";
import { openRepository } from "./tidy/repository.ts";
import { checkAlerts, checkLimits, checkMetrics } from "./tidy/telemetry.ts";
import { root } from "./run-process.ts";

/** Every check by the name that its problems carry. */
export const CHECKS: Readonly<Record<string, Check>> = {
  names: checkFileNames,
  leftovers: checkLeftovers,
  "mirror tests": checkMirrorTests,
  "doc comments": checkDocComments,
  limits: checkLimits,
  metrics: checkMetrics,
  alerts: checkAlerts,
  "decision records": checkDecisionRecords,
  links: checkLinks,
  "rooms table": checkRoomsTable,
  "script table": checkScriptTable,
  packages: checkPackages,
  generated: checkGenerated,
};

/** Runs all checks, or the named ones, over the tree at `dir`. */
export function tidy(dir: string, names: readonly string[] = Object.keys(CHECKS)): readonly Problem[] {
  const repository = openRepository(dir);
  return names.flatMap((name) => (CHECKS[name]?.(repository) ?? []).map((problem) => ({ check: name, ...problem })));
}

if (import.meta.main) {
  const problems = tidy(root);
  for (const { check, path, text } of problems) console.log(`${path}: ${text} (${check})`);
  console.log(problems.length === 0 ? "Tidy." : `${problems.length} problems.`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
