/**
 * What a node changes on the machine outside its own folders, and how each change is taken back:
 * packages, the host's address for pods, kernel settings, forwarding rules. What containers leave
 * is the subject of leftovers.ts.
 *
 * 1. `releaseMachine` works from a state file alone, after any crash, and any number of times.
 * 2. Packages stay installed: they are the machine's from then on.
 */
import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import type { Report } from "./build.ts";
import { runCommand, succeeds } from "./commands.ts";
import { waitUntil } from "./processes.ts";
import { missingPackages } from "./tools.ts";

/** Where the machine is for its pods; also the node's address and that of the API server. */
export const HOST_ADDRESS = "10.77.0.1";

/** Addresses of pods. */
export const POD_RANGE = "10.77.0.0/24";

/** Sockets and short-lived state; below /run because the path of a socket has at most 107 bytes. */
export const NODE_STATE_DIR = "/run/durable-timer-bed";

/** The runtime's socket: on the command line of every process that starts a container. */
export const RUNTIME_SOCKET = `${NODE_STATE_DIR}/containerd.sock`;

/** Where the runtime keeps what lives no longer than the machine's uptime. */
export const RUNTIME_STATE_DIR = `${NODE_STATE_DIR}/containerd`;

/** The runtime's name for what belongs to Kubernetes; control groups carry it too. */
export const RUNTIME_NAMESPACE = "k8s.io";

/** Made by every kubelet at this one place, wherever its own folder is. */
export const KUBELET_SOCKET = "/var/lib/kubelet/device-plugins/kubelet.sock";

/** Installs Debian's packages that are missing. Needs root and a network. */
export async function installPackages(report: Report): Promise<void> {
  const missing = missingPackages();
  if (missing.length === 0) return;
  report(`Installing ${missing.join(", ")} with apt-get`);
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  await runCommand("apt-get", ["update", "--quiet"], { env });
  await runCommand("apt-get", ["install", "--yes", "--quiet", "--no-install-recommends", ...missing], { env });
}

/** Kernel settings that a node changes, as they are now: the argument of `releaseMachine`. */
export async function readKernelSettings(): Promise<Readonly<Record<string, string>>> {
  const pairs = KERNEL_SETTINGS.filter((path) => existsSync(path)).map(async (path) => [path, (await readFile(path, "utf8")).trim()] as const);
  return Object.fromEntries(await Promise.all(pairs));
}

/** Fails with a remedy when another node is up, or something else has what this one needs. */
export async function assertMachineIsFree(): Promise<void> {
  const addresses = await runCommand("ip", ["-oneline", "-4", "address", "show"]);
  if (addresses.includes(` ${HOST_ADDRESS}/`)) {
    throw new Error(
      `${HOST_ADDRESS} is in use: a node of another checkout runs on this machine (end it there with ` +
        `node test/cluster/down.ts), or was left by one (ip address delete ${HOST_ADDRESS}/32 dev lo)`,
    );
  }
  if (await succeeds("nft", ["list", "table", "ip", "kube-proxy"])) {
    throw new Error("this machine runs a kube-proxy already: its rules (nft table ip kube-proxy) would be overwritten");
  }
  if (await accepts(KUBELET_SOCKET)) throw new Error(`this machine runs a kubelet already: it answers at ${KUBELET_SOCKET}`);
}

/** Gives the machine its address for pods, and lets their packets through a closed firewall. */
export async function claimMachine(): Promise<void> {
  await runCommand("ip", ["address", "add", `${HOST_ADDRESS}/32`, "dev", "lo"]);
  const policy = await runCommand("iptables", ["-w", "-S", "FORWARD"]);
  if (!policy.includes("-P FORWARD DROP")) return;
  for (const rule of FORWARD_RULES) await runCommand("iptables", ["-w", "-I", "FORWARD", ...rule]);
}

/** Takes everything back. The containers must be gone: the address is theirs too. */
export async function releaseMachine(kernelSettings: Readonly<Record<string, string>>): Promise<void> {
  await removeRules();
  await runCommand("ip", ["address", "delete", `${HOST_ADDRESS}/32`, "dev", "lo"]).catch(() => undefined);
  await waitUntil({
    what: "the pods' network interfaces are gone",
    probe: async () => (await runCommand("ip", ["-4", "route", "show", "root", POD_RANGE])).trim() === "",
    timeoutMs: 30_000,
  });
  for (const [path, value] of Object.entries(kernelSettings)) await writeFile(path, value);
  await rm(NODE_STATE_DIR, { recursive: true, force: true });
}

async function accepts(socketPath: string): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once("error", () => {
      resolve(false);
    });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}

async function removeRules(): Promise<void> {
  for (const family of ["ip", "ip6"]) {
    if (await succeeds("nft", ["list", "table", family, "kube-proxy"])) await runCommand("nft", ["delete", "table", family, "kube-proxy"]);
  }
  for (const rule of FORWARD_RULES) {
    while (await succeeds("iptables", ["-w", "-C", "FORWARD", ...rule])) await runCommand("iptables", ["-w", "-D", "FORWARD", ...rule]);
  }
}

const RULE_COMMENT = ["-m", "comment", "--comment", "durable-timer-bed"];

const FORWARD_RULES: readonly (readonly string[])[] = [
  ["-s", POD_RANGE, ...RULE_COMMENT, "-j", "ACCEPT"],
  ["-d", POD_RANGE, ...RULE_COMMENT, "-j", "ACCEPT"],
];

/** Set by kubelet (vm, kernel) and by the network plug-in (forwarding). */
const KERNEL_SETTINGS: readonly string[] = [
  "/proc/sys/net/ipv4/ip_forward",
  "/proc/sys/vm/overcommit_memory",
  "/proc/sys/vm/panic_on_oom",
  "/proc/sys/kernel/panic",
  "/proc/sys/kernel/panic_on_oops",
  "/proc/sys/kernel/keys/root_maxkeys",
  "/proc/sys/kernel/keys/root_maxbytes",
];
