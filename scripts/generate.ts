// Writes every generated file: `generate.ts` writes them, `generate.ts --check` names those that are stale and exits with 1.
//
// G1. A generated file says so in its first line, and what it is generated from.
// G2. Rendering is a function of the sources alone, so that the same sources give the same bytes everywhere.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { stringify } from "yaml";
import { customResourceDefinition } from "../src/resource/crd.ts";
import { apiGroup, resourceNames } from "../src/resource/names.ts";
import { resourceValuesSchema } from "../src/resource/values-schema.ts";
import { crdTemplate, rulesTemplate } from "./chart-templates.ts";
import { dashboard } from "./dashboard.ts";
import { root } from "./run-process.ts";

/** One generated file. */
export type GeneratedFile = {
  /** Relative to the root of the repository. */
  readonly path: string;
  readonly render: () => string;
};

/** Every generated file of the repository. */
export const GENERATED_FILES: readonly GeneratedFile[] = [
  {
    path: `crds/${apiGroup}_${resourceNames.plural}.yaml`,
    render: () => `# Generated from src/resource by \`npm run generate\`; do not edit.\n${yamlText(customResourceDefinition())}`,
  },
  { path: "charts/durable-timer-operator/templates/crd.yaml", render: crdTemplate },
  { path: "charts/durable-timer-operator/templates/_rules.tpl", render: rulesTemplate },
  { path: "charts/durable-timer-operator/files/dashboard.json", render: () => `${JSON.stringify({ description: "Generated from scripts/dashboard.ts by `npm run generate`.", ...dashboard() }, undefined, 2)}\n` },
  {
    path: "charts/durable-timer/values.schema.json",
    // JSON has no comments: what it is generated from goes where a schema has a remark.
    render: () => `${JSON.stringify({ $comment: "Generated from src/resource by `npm run generate`; do not edit.", ...resourceValuesSchema() }, undefined, 2)}\n`,
  },
];

/** Paths of the files that differ from what their sources give, or are missing. */
export function staleFiles(files: readonly GeneratedFile[]): readonly string[] {
  return files.filter(({ path, render }) => readIfThere(path) !== render()).map(({ path }) => path);
}

/** YAML as everything generated is written: no anchors, no folded lines that a review would have to put together. */
export function yamlText(value: unknown): string {
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false, defaultStringType: "PLAIN" });
}

function main(args: readonly string[]): void {
  const stale = staleFiles(GENERATED_FILES);
  if (args.includes("--check")) {
    for (const path of stale) console.error(`${path} is stale: run \`npm run generate\` and commit the result`);
    process.exitCode = stale.length === 0 ? 0 : 1;
    return;
  }
  for (const { path, render } of GENERATED_FILES.filter((file) => stale.includes(file.path))) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), render());
  }
  console.log(stale.length === 0 ? "Everything was up to date." : `Wrote ${stale.join(", ")}.`);
}

function readIfThere(path: string): string | undefined {
  return existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : undefined;
}

if (import.meta.main) main(process.argv.slice(2));
