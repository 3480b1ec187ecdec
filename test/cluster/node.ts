/**
 * A cluster of one node on this machine: the control plane of control-plane.ts, a scheduler, and a
 * kubelet with containerd and kube-proxy, so that pods run, have addresses, and reach Services.
 *
 * 1. There is one per machine: its addresses and the proxy's rules belong to the machine.
 * 2. Pods reach the machine at HOST_ADDRESS, and the API server at the Service `kubernetes`.
 *    There is no DNS and no registry: use addresses, and images given to `loadImage`.
 * 3. `endNode` leaves no process, mount, interface, rule or folder, also after a crash.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import type { Connection } from "./kubeconfig.ts";
import { certificateCredentials, readKubeconfig, writeKubeconfig } from "./kubeconfig.ts";
import { ApiRefusal, callApi, createIfAbsent } from "./api.ts";
import type { Report, ServerName } from "./build.ts";
import { buildServers, serverPath } from "./build.ts";
import type { Subject } from "./certificates.ts";
import { issueCertificate } from "./certificates.ts";
import type { ClientTool } from "./client-tools.ts";
import { bringClientTools, clientToolPath } from "./client-tools.ts";
import { runCommand } from "./commands.ts";
import { PAUSE_IMAGE, importImages, startContainerd } from "./containerd.ts";
import type { ControlPlane } from "./control-plane.ts";
import { startControlPlaneIn } from "./control-plane.ts";
import { buildProgramImage } from "./image.ts";
import { removeLeftovers } from "./leftovers.ts";
import {
  HOST_ADDRESS,
  POD_RANGE,
  RUNTIME_SOCKET,
  assertMachineIsFree,
  claimMachine,
  installPackages,
  readKernelSettings,
  releaseMachine,
} from "./machine.ts";
import { freePort, startServer, waitUntil } from "./processes.ts";
import type { KeptBy, Run } from "./runs.ts";
import { createRun, findRun, isAbandoned } from "./runs.ts";
import { toolsMissing } from "./tools.ts";

/** The name of the run; there is one per machine. */
export const NODE_RUN = "node";

export type NodeOptions = {
  readonly keptBy?: KeptBy;
  readonly report?: Report;
};

/** What a test needs of a running node; see `connectNode`. */
export type NodeHandle = {
  /** The administrator's. */
  readonly kubeconfigPath: string;
  /** Where pods find what listens on this machine, if it listens there or on every address. */
  readonly hostAddress: string;
  /** Makes the images of an archive available to pods (`imagePullPolicy: IfNotPresent`). */
  loadImage(archivePath: string): Promise<void>;
  /** Runs kubectl or helm as the administrator and returns what it printed. */
  runTool(tool: ClientTool, args: readonly string[]): Promise<string>;
};

/** A running cluster of one node. */
export type NodeBed = ControlPlane & NodeHandle;

/** Installs and builds what is missing, starts the node and waits until it takes pods. */
export async function startNode(options: NodeOptions = {}): Promise<NodeBed> {
  const report = options.report ?? (() => undefined);
  const missing = toolsMissing("node");
  if (missing.length > 0) throw new Error(`a node needs ${missing.map(({ tool, remedy }) => `${tool} (${remedy})`).join("; ")}`);
  await installPackages(report);
  await buildServers("node", report);
  await bringClientTools(report);
  const pauseArchivePath = await buildProgramImage(PAUSE_IMAGE, serverPath("pause"));
  const run = await claimRun(options.keptBy ?? "caller");
  try {
    return await startIn(run, pauseArchivePath, report);
  } catch (error) {
    await endNode(run);
    throw error;
  }
}

/** The node of this machine as its kubeconfig describes it; for processes that did not start it. */
export function connectNode(kubeconfigPath: string): NodeHandle {
  return {
    kubeconfigPath,
    hostAddress: HOST_ADDRESS,
    loadImage: importImages,
    runTool: async (tool, args) => await runCommand(clientToolPath(tool), args, { env: { KUBECONFIG: kubeconfigPath } }),
  };
}

/** Ends the node and takes back what it changed on the machine. Idempotent. */
export async function endNode(run: Run): Promise<void> {
  await run.stopProcesses();
  const saved = run.state.facts[KERNEL_SETTINGS_FACT];
  // Without this fact the machine was not changed yet.
  if (saved !== undefined) {
    await removeLeftovers(run.dir);
    await releaseMachine(JSON.parse(saved) as Readonly<Record<string, string>>);
  }
  await run.remove();
}

async function claimRun(keptBy: KeptBy): Promise<Run> {
  const earlier = await findRun(NODE_RUN);
  if (earlier !== undefined && isAbandoned(earlier)) await endNode(earlier);
  return await createRun(NODE_RUN, keptBy);
}

async function startIn(run: Run, pauseArchivePath: string, report: Report): Promise<NodeBed> {
  await assertMachineIsFree();
  await run.addFacts({ [KERNEL_SETTINGS_FACT]: JSON.stringify(await readKernelSettings()) });
  await claimMachine();
  const [controlPlane] = await Promise.all([startControlPlaneIn(run, HOST_ADDRESS), startContainerd(run)]);
  report("The control plane and containerd are up");
  await importImages(pauseArchivePath);
  await startNodeServers(controlPlane);
  await waitForNode(controlPlane);
  report("The node is ready");
  return {
    ...controlPlane,
    ...connectNode(controlPlane.kubeconfigPath),
    stop: async () => {
      await endNode(run);
    },
  };
}

async function startNodeServers(controlPlane: ControlPlane): Promise<void> {
  const { run } = controlPlane;
  const [scheduler, kubelet, proxy] = await Promise.all([
    componentKubeconfig(controlPlane, "kube-scheduler", { commonName: "system:kube-scheduler" }),
    componentKubeconfig(controlPlane, "kubelet", { commonName: `system:node:${NODE_NAME}`, organization: "system:nodes" }),
    componentKubeconfig(controlPlane, "kube-proxy", { commonName: "system:kube-proxy" }),
  ]);
  const kubeletConfigPath = await writeConfiguration(run, "kubelet", await kubeletConfiguration(controlPlane));
  const proxyConfigPath = await writeConfiguration(run, "kube-proxy", await proxyConfiguration(proxy));
  await startNodeServer(run, "kube-scheduler", [`--kubeconfig=${scheduler}`, "--leader-elect=false", "--secure-port=0"]);
  await startNodeServer(run, "kubelet", [
    `--config=${kubeletConfigPath}`,
    `--kubeconfig=${kubelet}`,
    `--root-dir=${join(run.dir, "kubelet")}`,
    `--cert-dir=${join(run.dir, "kubelet", "pki")}`,
    `--hostname-override=${NODE_NAME}`,
    `--node-ip=${HOST_ADDRESS}`,
  ]);
  await startNodeServer(run, "kube-proxy", [`--config=${proxyConfigPath}`, `--hostname-override=${NODE_NAME}`]);
}

async function startNodeServer(run: Run, name: ServerName, args: readonly string[]): Promise<void> {
  await run.addProcess(startServer({ name, path: serverPath(name), args, logPath: join(run.dir, `${name}.log`) }));
}

async function componentKubeconfig(controlPlane: ControlPlane, name: string, subject: Subject): Promise<string> {
  const path = join(controlPlane.run.dir, `${name}.kubeconfig`);
  const admin = await readKubeconfig(controlPlane.kubeconfigPath);
  const pair = await issueCertificate(controlPlane.authority, name, subject);
  await writeKubeconfig(path, { ...admin, credentials: await certificateCredentials(pair) });
  return path;
}

async function writeConfiguration(run: Run, name: string, configuration: object): Promise<string> {
  const path = join(run.dir, `${name}.yaml`);
  await writeFile(path, stringify(configuration));
  return path;
}

async function kubeletConfiguration({ run, authority }: ControlPlane): Promise<object> {
  const dir = join(run.dir, "kubelet");
  await mkdir(join(dir, "volume-plugins"), { recursive: true });
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address: HOST_ADDRESS,
    port: await freePort(HOST_ADDRESS),
    readOnlyPort: 0,
    healthzPort: 0,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: authority.certificatePath } },
    authorization: { mode: "Webhook" },
    containerRuntimeEndpoint: `unix://${RUNTIME_SOCKET}`,
    podLogsDir: join(dir, "logs"),
    volumePluginDir: join(dir, "volume-plugins"),
    // The machine's control groups are used as they are, whichever version they have.
    cgroupDriver: "cgroupfs",
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    failCgroupV1: false,
    failSwapOn: false,
    makeIPTablesUtilChains: false,
    // A full disk of a developer must not evict the pods of a test.
    evictionHard: { "memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%", "nodefs.inodesFree": "1%" },
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
  };
}

/** conntrack: zeros leave the machine's own limits and time-outs alone. */
async function proxyConfiguration(kubeconfigPath: string): Promise<object> {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    clientConnection: { kubeconfig: kubeconfigPath },
    mode: "nftables",
    clusterCIDR: POD_RANGE,
    healthzBindAddress: `127.0.0.1:${await freePort("127.0.0.1")}`,
    metricsBindAddress: `127.0.0.1:${await freePort("127.0.0.1")}`,
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
  };
}

/** Ready, without the taint that a new node carries, and with its Service reachable. */
async function waitForNode({ run, kubeconfigPath, serverUrl }: ControlPlane): Promise<void> {
  const admin = await readKubeconfig(kubeconfigPath);
  await publishApiServer(admin, Number(new URL(serverUrl).port));
  const kubelet = run.state.processes.find((record) => record.name === "kubelet");
  if (kubelet === undefined) throw new Error("the run has no kubelet");
  await waitUntil({
    what: "the node takes pods",
    probe: async () => await takesPods(admin),
    timeoutMs: 90_000,
    server: { record: kubelet, logPath: join(run.dir, "kubelet.log") },
  });
}

type NodeObject = {
  readonly spec: { readonly taints?: readonly unknown[] };
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
};

async function takesPods(admin: Connection): Promise<boolean> {
  try {
    const { spec, status } = await callApi<NodeObject>(admin, { method: "GET", path: `/api/v1/nodes/${NODE_NAME}` });
    const isReady = (status.conditions ?? []).some(({ type, status: value }) => type === "Ready" && value === "True");
    return isReady && (spec.taints ?? []).length === 0;
  } catch (error) {
    if (error instanceof ApiRefusal && error.reason === "NotFound") return false;
    throw error;
  }
}

/** What the API server's own reconciler would write: the endpoint behind the Service `kubernetes`. */
async function publishApiServer(admin: Connection, port: number): Promise<void> {
  await createIfAbsent(admin, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", {
    metadata: { name: "kubernetes", labels: { "kubernetes.io/service-name": "kubernetes" } },
    addressType: "IPv4",
    ports: [{ name: "https", port, protocol: "TCP" }],
    endpoints: [{ addresses: [HOST_ADDRESS], conditions: { ready: true } }],
  });
}

const NODE_NAME = "bed";
const KERNEL_SETTINGS_FACT = "kernelSettings";
