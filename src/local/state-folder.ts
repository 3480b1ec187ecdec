/** The state folder: where local mode keeps what must outlive a run, and who may use it. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Random } from "../base/random.ts";
import { damaged, readJsonFile, writeJsonFile } from "./state-files.ts";

/** Where things lie in a state folder. */
export type StatePaths = {
  readonly root: string;
  readonly lock: string;
  readonly identity: string;
  readonly ledger: string;
  /** What runs now, for commands that look while another process runs it. */
  readonly workers: string;
  readonly server: string;
  readonly logs: string;
};

/** The layout of the state folder `root`. */
export function statePaths(root: string): StatePaths {
  return {
    root,
    lock: join(root, "lock"),
    identity: join(root, "identity.json"),
    ledger: join(root, "processes.json"),
    workers: join(root, "workers.json"),
    server: join(root, "nats"),
    logs: join(root, "logs"),
  };
}

/** Creates the folder, readable by its owner alone. */
export function createStateFolder(paths: StatePaths): void {
  mkdirSync(paths.root, { recursive: true, mode: 0o700 });
}

/** The identity of the folder, which stands for a cluster's: made once, then the same for ever. */
export function folderIdentity(paths: StatePaths, random: Random): string {
  const known = knownIdentity(paths);
  if (known !== undefined) return known;
  const clusterId = `local-${random.token(16)}`;
  writeJsonFile(paths.identity, { clusterId });
  return clusterId;
}

/** The identity, if one was ever made. */
export function knownIdentity(paths: StatePaths): string | undefined {
  const stored = readJsonFile(paths.identity);
  if (stored === undefined) return undefined;
  const { clusterId } = (stored ?? {}) as { readonly clusterId?: unknown };
  if (typeof clusterId !== "string" || clusterId === "") throw damaged(paths.identity, "clusterId is missing");
  return clusterId;
}
