// Builds dist/: one bundle per program, for the image and the command line, and the client package as modules with declarations.
//
// Bundles leave no package to resolve at run time: the Kubernetes client alone would otherwise cost most of the start-up time and
// memory of a worker that never uses it.

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { root, runNode } from "./run-process.ts";

/** Programs that are shipped. The rest of src/bin are their parts, and the demo, which runs from the sources. */
const PROGRAMS = ["durable-timer", "operator", "worker"];

await main();

async function main(): Promise<void> {
  rmSync(join(root, "dist"), { recursive: true, force: true });
  await bundlePrograms();
  // The image needs nothing else, and is built without the sources of the client package's compiler.
  if (process.argv.includes("--programs")) return;
  process.exitCode = existsSync(join(root, "src/client/index.ts")) ? await runNode(["node_modules/typescript/bin/tsc", "--project", "tsconfig.client.json"]) : 1;
}

async function bundlePrograms(): Promise<void> {
  await build({
    absWorkingDir: root,
    entryPoints: PROGRAMS.map((name) => `src/bin/${name}.ts`),
    outdir: "dist/bin",
    bundle: true,
    platform: "node",
    target: "node24",
    format: "esm",
    sourcemap: "linked",
    sourcesContent: false,
    legalComments: "linked",
    logLevel: "info",
    // The NATS client is CommonJS and asks for Node built-ins with require, which an ES module does not have by itself.
    banner: { js: 'import { createRequire as createRequireOfBundle } from "node:module"; const require = createRequireOfBundle(import.meta.url);' },
  });
}
