/**
 * Builds the servers of the test bed from the Go modules pinned in bin/.
 *
 * 1. A binary that exists is complete: it is written beside its place and renamed.
 * 2. Nothing is built twice: a second call with everything in place takes milliseconds.
 * 3. Two builders at once are harmless: each writes its own temporary file, the last rename wins.
 *
 * As a program: `node test/cluster/build.ts [api|node]` (default: everything).
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { clusterCacheDir, pinnedVersion, serversModuleDir } from "./paths.ts";

/** `api`: the control plane alone. `node`: with scheduler, kubelet, proxy and containers. */
export type Tier = "api" | "node";

/** Receives one line of progress at a time. */
export type Report = (line: string) => void;

export type ServerName =
  | "etcd"
  | "kube-apiserver"
  | "kube-controller-manager"
  | "kube-scheduler"
  | "kubelet"
  | "kube-proxy"
  | "pause";

/** Builds what the tier needs and is not there yet; the tier `node` includes the tier `api`. */
export async function buildServers(tier: Tier, report: Report): Promise<void> {
  const missing = serversOf(tier).filter((name) => !existsSync(serverPath(name)));
  if (missing.length === 0) return;
  report(`Building ${missing.join(", ")} from source, once per version (minutes, not seconds)`);
  for (const name of missing) await buildWithProgress(name, report);
}

/** The servers that are not built yet for this tier. */
export function unbuiltServers(tier: Tier): readonly ServerName[] {
  return serversOf(tier).filter((name) => !existsSync(serverPath(name)));
}

/** Where the binary is, or will be once it is built. */
export function serverPath(name: ServerName): string {
  const { product, module } = SERVERS[name];
  return join(clusterCacheDir, `${product}-${pinnedVersion(module)}`, name);
}

function serversOf(tier: Tier): readonly ServerName[] {
  const names = Object.keys(SERVERS) as ServerName[];
  return names.filter((name) => tier === "node" || SERVERS[name].tier === "api");
}

async function buildWithProgress(name: ServerName, report: Report): Promise<void> {
  const startedAtMs = Date.now();
  const elapsed = (): string => `${Math.round((Date.now() - startedAtMs) / 1000)} s`;
  const heartbeat = setInterval(() => {
    report(`  still building ${name} after ${elapsed()}`);
  }, HEARTBEAT_MS);
  try {
    await build(name);
  } finally {
    clearInterval(heartbeat);
  }
  report(`Built ${name} in ${elapsed()}`);
}

async function build(name: ServerName): Promise<void> {
  const path = serverPath(name);
  const partialPath = `${path}.${process.pid}.partial`;
  await mkdir(join(path, ".."), { recursive: true });
  try {
    await compile(SERVERS[name].package, partialPath);
    await rename(partialPath, path);
  } finally {
    await rm(partialPath, { force: true });
  }
}

/** Runs the compiler at low priority: a build must not starve whatever else the machine does. */
async function compile(goPackage: string, outputPath: string): Promise<void> {
  const args = ["build", "-trimpath", "-ldflags", linkerFlags(), "-o", outputPath, goPackage];
  const child = spawn("nice", ["-n", "10", "go", ...args], {
    cwd: serversModuleDir,
    // Without cgo the servers are static and need no C compiler. GOWORK off: a workspace file
    // above this folder must not replace what is pinned here.
    env: { ...process.env, CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-mod=readonly -buildvcs=false" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    errors = (errors + chunk).slice(-4_000);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject).once("close", resolve);
  });
  if (code !== 0) throw new Error(`go build ${goPackage} ended with code ${String(code)}:\n${errors}`);
}

/** Kubernetes refuses to talk sensibly about versions unless its build tells it which one it is. */
function linkerFlags(): string {
  const version = pinnedVersion(KUBERNETES);
  const [major, minor] = version.split(".");
  const variables = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor };
  const settings = Object.entries(variables).map(
    ([variable, value]) => `-X k8s.io/component-base/version.${variable}=${String(value)}`,
  );
  return ["-s", "-w", ...settings].join(" ");
}

const HEARTBEAT_MS = 30_000;
const KUBERNETES = "k8s.io/kubernetes";
const ETCD = "go.etcd.io/etcd/server/v3";

type Server = {
  readonly tier: Tier;
  readonly product: string;
  readonly module: string;
  readonly package: string;
};

const SERVERS: Readonly<Record<ServerName, Server>> = {
  etcd: { tier: "api", product: "etcd", module: ETCD, package: ETCD },
  "kube-apiserver": kubernetes("api", "kube-apiserver"),
  "kube-controller-manager": kubernetes("api", "kube-controller-manager"),
  "kube-scheduler": kubernetes("node", "kube-scheduler"),
  kubelet: kubernetes("node", "kubelet"),
  "kube-proxy": kubernetes("node", "kube-proxy"),
  pause: { tier: "node", product: "kubernetes", module: KUBERNETES, package: "./pause" },
};

function kubernetes(tier: Tier, command: string): Server {
  return { tier, product: "kubernetes", module: KUBERNETES, package: `${KUBERNETES}/cmd/${command}` };
}

if (import.meta.main) {
  const [tier] = process.argv.slice(2);
  await buildServers(tier === "api" ? "api" : "node", (line) => {
    console.log(line);
  });
}
