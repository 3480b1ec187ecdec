/**
 * Where the test bed keeps things. Everything lies under `.cache/cluster` of this repository:
 *
 *   <product>-<version>/   binaries, built or unpacked once per version
 *   run/<name>/            one running bed: certificates, data, logs, state.json
 *
 * Versions are read from the pinned manifests, so that a version is written in one place only.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The root of this repository, absolute. */
export const repositoryDir = fileURLToPath(new URL("../../", import.meta.url));

/** The folder of one of the project's charts. */
export function chartPath(name: string): string {
  return join(repositoryDir, "charts", name);
}

/** Everything that the test bed downloads, builds or runs. Safe to delete while nothing runs. */
export const clusterCacheDir = join(repositoryDir, ".cache", "cluster");

/** One folder per running bed. */
export const runsDir = join(clusterCacheDir, "run");

/** The Go module that pins the servers. */
export const serversModuleDir = fileURLToPath(new URL("bin/", import.meta.url));

/** The pinned version of a module of bin/go.mod, without its leading `v`. */
export function pinnedVersion(modulePath: string): string {
  const text = readFileSync(join(serversModuleDir, "go.mod"), "utf8");
  const line = text.split("\n").find((candidate) => candidate.trim().startsWith(`${modulePath} v`));
  const version = line?.trim().split(" ")[1]?.slice(1);
  if (version === undefined) throw new Error(`bin/go.mod pins no version of ${modulePath}`);
  return version;
}
