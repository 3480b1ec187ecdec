/** The container runtime of the node: containerd with folders, socket and network of its own. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "./commands.ts";
import { HOST_ADDRESS, NODE_STATE_DIR, POD_RANGE, RUNTIME_NAMESPACE, RUNTIME_SOCKET, RUNTIME_STATE_DIR } from "./machine.ts";
import { startServer, waitUntil } from "./processes.ts";
import type { Run } from "./runs.ts";

/** The image of the container that holds a pod's namespaces; it must be imported first. */
export const PAUSE_IMAGE = "localhost/pause:1";

/** Starts containerd in the run and waits until it answers. */
export async function startContainerd(run: Run): Promise<void> {
  const dir = join(run.dir, "containerd");
  const networkDir = join(dir, "network");
  await mkdir(networkDir, { recursive: true });
  await mkdir(NODE_STATE_DIR, { recursive: true });
  await writeFile(join(networkDir, "10-pods.conflist"), networkConfiguration(dir));
  const configPath = join(dir, "config.toml");
  await writeFile(configPath, runtimeConfiguration(dir, networkDir));
  const logPath = join(run.dir, "containerd.log");
  const record = startServer({ name: "containerd", path: "/usr/bin/containerd", args: ["--config", configPath], logPath });
  await run.addProcess(record);
  await waitUntil({
    what: "containerd answers",
    probe: async () => (await containerdCommand(["version"])) !== "",
    timeoutMs: 30_000,
    server: { record, logPath },
  });
}

/** Makes the images of an archive available to pods, under the names that the archive holds. */
export async function importImages(archivePath: string): Promise<void> {
  await containerdCommand(["images", "import", archivePath]);
}

async function containerdCommand(args: readonly string[]): Promise<string> {
  return await runCommand("ctr", ["--address", RUNTIME_SOCKET, "--namespace", RUNTIME_NAMESPACE, ...args]);
}

/**
 * `restrict_oom_score_adj`: without it, runc may ask the kernel for more protection from running
 * out of memory than this process has to give, and dies in the attempt.
 * `netns_mounts_under_state_dir`: so that a clean-up knows which network namespaces are the bed's.
 */
function runtimeConfiguration(dir: string, networkDir: string): string {
  return `version = 2
root = "${dir}/root"
state = "${RUNTIME_STATE_DIR}"

[grpc]
  address = "${RUNTIME_SOCKET}"

[debug]
  level = "warn"

[plugins."io.containerd.internal.v1.opt"]
  path = "${dir}/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${networkDir}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = "${NODE_STATE_DIR}/runc"
`;
}

/** A pair of interfaces per pod, routed by the machine: no bridge, and nothing to remove but them. */
function networkConfiguration(dir: string): string {
  const addresses = {
    type: "host-local",
    dataDir: join(dir, "addresses"),
    ranges: [[{ subnet: POD_RANGE, gateway: HOST_ADDRESS }]],
    routes: [{ dst: "0.0.0.0/0" }],
  };
  return JSON.stringify({ cniVersion: "0.4.0", name: "pods", plugins: [{ type: "ptp", ipMasq: false, ipam: addresses }] });
}
