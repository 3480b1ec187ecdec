// The packages of the systems that this product is compared with. They are no dependency of the project: `npm run bench` brings the
// pinned ones into a folder of its own when they are asked for.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../scripts/run-process.ts";

/** Name and exact version. */
export const PEER_PACKAGES = { "bullmq": "6.7.0", "ioredis": "6.0.0", "pg": "8.23.1", "pg-boss": "10.4.2", "graphile-worker": "0.17.3" } as const;

const folder = join(root, ".cache", "bench-peers");

/** Installs the peers' packages unless they are there. Throws with npm's own words when it cannot. */
export function installPeers(): void {
  const manifest = `${JSON.stringify({ private: true, dependencies: PEER_PACKAGES }, null, 2)}\n`;
  const path = join(folder, "package.json");
  if (existsSync(join(folder, "node_modules")) && existsSync(path) && readFileSync(path, "utf8") === manifest) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(path, manifest);
  const { status } = spawnSync("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts"], { cwd: folder, stdio: "inherit" });
  if (status !== 0) throw new Error("the packages of the other systems were not installed");
}

/** Loads an installed peer; its shape is the caller's to say. */
export async function loadPeer<T>(name: keyof typeof PEER_PACKAGES): Promise<T> {
  const path = createRequire(join(folder, "package.json")).resolve(name);
  return (await import(pathToFileURL(path).href)) as T;
}
