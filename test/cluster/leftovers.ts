/**
 * Removes what pods leave on the machine when their runtime is stopped or killed under them:
 * processes, mounts, control groups, and files in folders whose place cannot be chosen.
 *
 * 1. It touches only what carries a mark of this bed: the runtime's socket on a command line, a
 *    path below the bed's folders, the id of one of its containers.
 * 2. It works after any crash, and any number of times.
 */
import { existsSync } from "node:fs";
import { readFile, readdir, readlink, rm, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { runCommand } from "./commands.ts";
import { KUBELET_SOCKET, NODE_STATE_DIR, RUNTIME_NAMESPACE, RUNTIME_SOCKET, RUNTIME_STATE_DIR } from "./machine.ts";
import type { ProcessRecord } from "./processes.ts";
import { isRunning, recordOf, signal, waitUntil } from "./processes.ts";

/** Ends what still runs in pods and removes what they leave. The servers must be stopped. */
export async function removeLeftovers(runDir: string): Promise<void> {
  const containers = await listContainers();
  await killContainers();
  await unmountBelow([NODE_STATE_DIR, runDir]);
  await removeControlGroups(containers);
  await removeFiles(containers, runDir);
}

type Container = { readonly id: string; readonly shimSocketPath: string };

/** The containers that the runtime had when it ended. */
async function listContainers(): Promise<readonly Container[]> {
  const dir = join(RUNTIME_STATE_DIR, "io.containerd.runtime.v2.task", RUNTIME_NAMESPACE);
  if (!existsSync(dir)) return [];
  return await Promise.all(
    (await readdir(dir)).map(async (id) => {
      const address = await readFile(join(dir, id, "address"), "utf8").catch(() => "");
      return { id, shimSocketPath: address.replace(/^unix:\/\//, "") };
    }),
  );
}

/**
 * Kills the shims of this bed's runtime and their containers. A shim outlives its runtime by design.
 * Containers are found first: once its shim is gone, a container is nobody's child.
 */
async function killContainers(): Promise<void> {
  const shims = await processesWith((commandLine) => commandLine.includes(`\0-address\0${RUNTIME_SOCKET}\0`));
  const pids = new Set(shims.map((shim) => shim.pid));
  const containers = await processesWith((_, parentPid) => pids.has(parentPid));
  const all = [...containers, ...shims];
  for (const record of all) signal(record, "SIGKILL");
  await waitUntil({ what: "containers end", probe: async () => !all.some(isRunning), timeoutMs: 30_000 });
}

async function processesWith(matches: (commandLine: string, parentPid: number) => boolean): Promise<readonly ProcessRecord[]> {
  const found: ProcessRecord[] = [];
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const commandLine = await readFile(`/proc/${name}/cmdline`, "utf8");
      const status = await readFile(`/proc/${name}/status`, "utf8");
      const parentPid = Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]);
      if (matches(commandLine, parentPid)) found.push(recordOf("container", Number(name)));
    } catch {
      // It ended while it was looked at.
    }
  }
  return found;
}

/** Deepest first; lazily, because a killed process may still be on its way out of a mount. */
async function unmountBelow(dirs: readonly string[]): Promise<void> {
  const lines = (await readFile("/proc/self/mountinfo", "utf8")).trim().split("\n");
  const points = lines.map((line) => (line.split(" ")[4] ?? "").replaceAll("\\040", " "));
  const ours = points.filter((point) => dirs.some((dir) => point.startsWith(`${dir}/`)));
  for (const point of ours.toReversed()) await runCommand("umount", ["--lazy", point]);
}

/** Containers that were killed rather than deleted leave their control groups, empty by now. */
async function removeControlGroups(containers: readonly Container[]): Promise<void> {
  const root = "/sys/fs/cgroup";
  const hierarchies = existsSync(join(root, "cgroup.controllers")) ? [root] : (await readdir(root)).map((name) => join(root, name));
  for (const hierarchy of hierarchies) {
    const parent = join(hierarchy, RUNTIME_NAMESPACE);
    for (const { id } of containers) await removeGroupTree(join(parent, id));
    await removeIfEmpty(parent);
  }
}

async function removeGroupTree(dir: string): Promise<void> {
  if (!existsSync(dir)) return;
  const entries = await readdir(dir, { withFileTypes: true });
  for (const entry of entries) if (entry.isDirectory()) await removeGroupTree(join(dir, entry.name));
  await rmdir(dir);
}

async function removeFiles(containers: readonly Container[], runDir: string): Promise<void> {
  await rm(KUBELET_SOCKET, { force: true });
  for (const { shimSocketPath } of containers) if (shimSocketPath !== "") await rm(shimSocketPath, { force: true });
  await removeEntries(NETWORK_RESULTS_DIR, async (name) => containers.some(({ id }) => name.includes(id)));
  await removeEntries(LOG_LINKS_DIR, async (name) => (await readlink(join(LOG_LINKS_DIR, name)).catch(() => "")).startsWith(`${runDir}/`));
  const shimSocketsDir = "/run/containerd/s";
  for (const dir of [dirname(KUBELET_SOCKET), NETWORK_RESULTS_DIR, shimSocketsDir]) {
    await removeIfEmpty(dir);
    await removeIfEmpty(dirname(dir));
  }
  await removeIfEmpty(LOG_LINKS_DIR);
}

async function removeEntries(dir: string, isOurs: (name: string) => Promise<boolean>): Promise<void> {
  if (!existsSync(dir)) return;
  for (const name of await readdir(dir)) if (await isOurs(name)) await rm(join(dir, name));
}

/** Something of another owner keeps a folder where it is. */
async function removeIfEmpty(dir: string): Promise<void> {
  await rmdir(dir).catch(() => undefined);
}

/** What the network plug-ins remember of each container. */
const NETWORK_RESULTS_DIR = "/var/lib/cni/results";

/** Links to the logs of containers, made by kubelet. */
const LOG_LINKS_DIR = "/var/log/containers";
