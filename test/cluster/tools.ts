/** Says what a machine lacks to run a tier of the bed, and what to do about it. */
import { execFileSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import type { Tier } from "./build.ts";
import { unbuiltServers } from "./build.ts";

export type MissingTool = { readonly tool: string; readonly remedy: string };

/** Empty when the tier can run here. Looks only; installs nothing. */
export function toolsMissing(tier: Tier): readonly MissingTool[] {
  const needs = tier === "node" ? [...API_NEEDS, ...NODE_NEEDS] : API_NEEDS;
  return needs.filter(({ isMet }) => !isMet(tier)).map(({ tool, remedy }) => ({ tool, remedy }));
}

/** Debian's packages of the node tier, each with a file that shows that it is installed. */
const NODE_PACKAGES: Readonly<Record<string, string>> = {
  containerd: "/usr/bin/containerd",
  runc: "/usr/sbin/runc",
  "containernetworking-plugins": "/usr/lib/cni/ptp",
  buildah: "/usr/bin/buildah",
  conntrack: "/usr/sbin/conntrack",
  iproute2: "/sbin/ip",
  iptables: "/usr/sbin/iptables",
  nftables: "/usr/sbin/nft",
};

/** The packages of the node tier that are not installed. */
export function missingPackages(): readonly string[] {
  return Object.keys(NODE_PACKAGES).filter((name) => !exists(NODE_PACKAGES[name] ?? ""));
}

type Need = MissingTool & { readonly isMet: (tier: Tier) => boolean };

const API_NEEDS: readonly Need[] = [
  { tool: "Linux", remedy: "run it in a Linux machine: processes are recognised through /proc", isMet: () => process.platform === "linux" },
  {
    tool: "Go 1.21 or newer",
    remedy: "install it from https://go.dev/dl: the servers are built from source once",
    isMet: (tier) => unbuiltServers(tier).length === 0 || hasGo(),
  },
  {
    tool: "OpenSSL 3",
    remedy: "install it (Debian: apt-get install openssl): it signs the certificates",
    isMet: () => firstLineOf("openssl", ["version"]).startsWith("OpenSSL 3"),
  },
];

const NODE_NEEDS: readonly Need[] = [
  { tool: "an x86-64 processor", remedy: "kubectl and helm come as binaries for it alone", isMet: () => process.arch === "x64" },
  { tool: "root", remedy: "run it as root: it makes network interfaces, mounts and containers", isMet: () => process.getuid?.() === 0 },
  {
    tool: `Debian's packages ${Object.keys(NODE_PACKAGES).join(", ")}`,
    remedy: "install them, or run as root where apt-get can: the bed then installs them itself",
    isMet: () => missingPackages().length === 0 || (process.getuid?.() === 0 && hasProgram("apt-get")),
  },
];

/** Whether a program of that name is on the PATH, or where administrators' programs lie. */
function hasProgram(name: string): boolean {
  const dirs = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  return dirs.some((dir) => {
    try {
      accessSync(join(dir, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function hasGo(): boolean {
  const match = /go(\d+)\.(\d+)/.exec(firstLineOf("go", ["version"]));
  return match !== null && (Number(match[1]) > 1 || Number(match[2]) >= 21);
}

function firstLineOf(program: string, args: readonly string[]): string {
  try {
    return execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).split("\n")[0] ?? "";
  } catch {
    return "";
  }
}

function exists(path: string): boolean {
  try {
    accessSync(path);
    return true;
  } catch {
    return false;
  }
}
