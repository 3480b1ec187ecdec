/**
 * A Kubernetes control plane of real servers on this machine: etcd, kube-apiserver and
 * kube-controller-manager. It has no node: pods are stored and never run. That is a real API with
 * CEL validation, RBAC, garbage collection, Deployments and namespace deletion, ready in seconds.
 *
 * 1. It listens on one address, loopback unless told otherwise, on ports free at that moment.
 * 2. RBAC is on. The administrator's kubeconfig may do everything; `kubeconfigFor` gives one that
 *    may do what the service account may.
 * 3. etcd does not sync to disk: a control plane is thrown away, never recovered.
 */
import { randomBytes } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ApiRefusal, callApi } from "./api.ts";
import type { Report } from "./build.ts";
import { buildServers, serverPath } from "./build.ts";
import type { Authority, KeyPair } from "./certificates.ts";
import { createAuthority, issueCertificate, writeTokenKey } from "./certificates.ts";
import type { Connection } from "./kubeconfig.ts";
import { certificateCredentials, readKubeconfig, writeKubeconfig } from "./kubeconfig.ts";
import type { ProcessRecord, ServerCommand } from "./processes.ts";
import { freePort, startServer, waitUntil } from "./processes.ts";
import type { KeptBy, Run } from "./runs.ts";
import { createRun, isAbandoned, listRuns } from "./runs.ts";

export type ControlPlaneOptions = {
  /** The folder below .cache/cluster/run; by default a new one with a random name. */
  readonly name?: string;
  /** By default it ends with this process, also when this process is killed: see runs.ts. */
  readonly keptBy?: KeptBy;
  /** Receives progress: building the servers takes minutes on a fresh machine. */
  readonly report?: Report;
};

export type ServiceAccount = { readonly namespace: string; readonly name: string };

/** A running control plane. */
export type ControlPlane = {
  readonly run: Run;
  readonly serverUrl: string;
  /** The administrator's. */
  readonly kubeconfigPath: string;
  /** For more client certificates, such as a kubelet's. */
  readonly authority: Authority;
  /** Writes a kubeconfig with a token of an existing service account; valid for a day. */
  kubeconfigFor(account: ServiceAccount): Promise<string>;
  /** Ends the API server alone, as a crash does; etcd and its data stay. */
  stopApiServer(): Promise<void>;
  /** Starts it again on the same port and waits until it is ready. */
  startApiServer(): Promise<void>;
  /** Stops everything and removes the data. Idempotent. */
  stop(): Promise<void>;
};

/** Builds what is missing, starts the three servers and waits until the API answers for real. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  await buildServers("api", options.report ?? ignore);
  await endAbandonedRuns();
  const name = options.name ?? `api-${randomBytes(4).toString("hex")}`;
  const run = await createRun(name, options.keptBy ?? "caller");
  try {
    return await startControlPlaneIn(run, "127.0.0.1");
  } catch (error) {
    await run.end();
    throw error;
  }
}

/**
 * Writes a kubeconfig for a service account beside the administrator's and returns its path. For
 * tests that know only the administrator's file; the account must exist.
 */
export async function writeServiceAccountKubeconfig(adminKubeconfigPath: string, account: ServiceAccount): Promise<string> {
  const admin = await readKubeconfig(adminKubeconfigPath);
  const { status } = await callApi<{ readonly status: { readonly token: string } }>(admin, {
    method: "POST",
    path: `/api/v1/namespaces/${account.namespace}/serviceaccounts/${account.name}/token`,
    body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 86_400 } },
  });
  const unique = `${account.namespace}.${account.name}.${randomBytes(4).toString("hex")}`;
  const path = join(adminKubeconfigPath, "..", `${unique}.kubeconfig`);
  await writeKubeconfig(path, { ...admin, credentials: { token: status.token } });
  return path;
}

/** Ends control planes whose owner was killed; runs of a node are ended by node.ts alone. */
async function endAbandonedRuns(): Promise<void> {
  for (const run of await listRuns()) {
    if (isAbandoned(run) && run.name.startsWith("api-")) await run.end();
  }
}

/**
 * Starts the servers of an empty run, the API server on `address`. They must be built. On failure
 * the run keeps what was started: ending it is the caller's.
 */
export async function startControlPlaneIn(run: Run, address: string): Promise<ControlPlane> {
  const files = await prepareFiles(run, address);
  const etcdUrl = await startEtcd(run);
  const port = await freePort(address);
  const admin: Connection = {
    serverUrl: `https://${address}:${port}`,
    authorityPem: await readFile(files.authority.certificatePath, "utf8"),
    credentials: await certificateCredentials(files.admin),
  };
  const kubeconfigPath = join(run.dir, "admin.kubeconfig");
  await writeKubeconfig(kubeconfigPath, admin);
  const managerKubeconfigPath = join(run.dir, "controller-manager.kubeconfig");
  await writeKubeconfig(managerKubeconfigPath, { ...admin, credentials: await certificateCredentials(files.manager) });

  const apiServer = apiServerCommand(run, { files, etcdUrl, address, port });
  let apiServerRecord = await startApiServer(run, apiServer, admin);
  await run.addProcess(startServer(controllerManagerCommand(run, files, managerKubeconfigPath)));
  await waitForControllers(admin);
  await run.addFacts({ kubeconfigPath });

  return {
    run,
    serverUrl: admin.serverUrl,
    kubeconfigPath,
    authority: files.authority,
    kubeconfigFor: async (account) => await writeServiceAccountKubeconfig(kubeconfigPath, account),
    stopApiServer: async () => {
      await run.stopProcess(apiServerRecord, 0);
    },
    startApiServer: async () => {
      apiServerRecord = await startApiServer(run, apiServer, admin);
    },
    stop: async () => {
      await run.end();
    },
  };
}

type Files = {
  readonly authority: Authority;
  readonly server: KeyPair;
  readonly admin: KeyPair;
  readonly manager: KeyPair;
  readonly tokenKeyPath: string;
};

async function prepareFiles(run: Run, address: string): Promise<Files> {
  const dir = join(run.dir, "certificates");
  await mkdir(dir);
  const authority = await createAuthority(dir);
  const hosts = [...new Set([address, "127.0.0.1", API_SERVICE_ADDRESS, "localhost", "kubernetes", "kubernetes.default.svc"])];
  const [server, admin, manager, tokenKeyPath] = await Promise.all([
    issueCertificate(authority, "kube-apiserver", { commonName: "kube-apiserver", hosts }),
    issueCertificate(authority, "admin", { commonName: "admin", organization: "system:masters" }),
    issueCertificate(authority, "kube-controller-manager", { commonName: "system:kube-controller-manager" }),
    writeTokenKey(dir),
  ]);
  return { authority, server, admin, manager, tokenKeyPath };
}

async function startEtcd(run: Run): Promise<string> {
  const clientUrl = `http://127.0.0.1:${await freePort("127.0.0.1")}`;
  const peerUrl = `http://127.0.0.1:${await freePort("127.0.0.1")}`;
  const command = serverCommand(run, "etcd", [
    `--data-dir=${join(run.dir, "etcd")}`,
    `--listen-client-urls=${clientUrl}`,
    `--advertise-client-urls=${clientUrl}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=default=${peerUrl}`,
    "--unsafe-no-fsync=true",
    "--log-level=warn",
  ]);
  const record = startServer(command);
  await run.addProcess(record);
  await waitUntil({
    what: "etcd answers",
    probe: async () => (await fetch(`${clientUrl}/health`)).ok,
    timeoutMs: START_TIMEOUT_MS,
    server: { record, logPath: command.logPath },
  });
  return clientUrl;
}

type ApiServerSettings = {
  readonly files: Files;
  readonly etcdUrl: string;
  readonly address: string;
  readonly port: number;
};

function apiServerCommand(run: Run, { files, etcdUrl, address, port }: ApiServerSettings): ServerCommand {
  return serverCommand(run, "kube-apiserver", [
    `--etcd-servers=${etcdUrl}`,
    `--bind-address=${address}`,
    `--advertise-address=${address}`,
    `--secure-port=${port}`,
    `--tls-cert-file=${files.server.certificatePath}`,
    `--tls-private-key-file=${files.server.keyPath}`,
    `--client-ca-file=${files.authority.certificatePath}`,
    `--kubelet-client-certificate=${files.admin.certificatePath}`,
    `--kubelet-client-key=${files.admin.keyPath}`,
    "--kubelet-preferred-address-types=InternalIP",
    "--authorization-mode=RBAC,Node",
    "--enable-admission-plugins=NodeRestriction",
    "--allow-privileged=true",
    `--service-cluster-ip-range=${SERVICE_RANGE}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${files.tokenKeyPath}`,
    `--service-account-signing-key-file=${files.tokenKeyPath}`,
    // The reconciler would refuse a loopback address; node.ts writes the endpoint when pods need it.
    "--endpoint-reconciler-type=none",
  ]);
}

async function startApiServer(run: Run, command: ServerCommand, admin: Connection): Promise<ProcessRecord> {
  const record = startServer(command);
  await run.addProcess(record);
  await waitUntil({
    what: "the API server is ready",
    probe: async () => (await callApi(admin, { method: "GET", path: "/readyz" })) === "ok",
    timeoutMs: START_TIMEOUT_MS,
    server: { record, logPath: command.logPath },
  });
  return record;
}

function controllerManagerCommand(run: Run, files: Files, kubeconfigPath: string): ServerCommand {
  return serverCommand(run, "kube-controller-manager", [
    `--kubeconfig=${kubeconfigPath}`,
    "--leader-elect=false",
    "--use-service-account-credentials=true",
    `--service-account-private-key-file=${files.tokenKeyPath}`,
    `--root-ca-file=${files.authority.certificatePath}`,
    "--secure-port=0",
    `--controllers=${CONTROLLERS.join(",")}`,
  ]);
}

/** The last thing the controllers do for a new cluster; without it no pod can be created. */
async function waitForControllers(admin: Connection): Promise<void> {
  await waitUntil({
    what: "the controller manager has made the default service account",
    probe: async () => {
      try {
        await callApi(admin, { method: "GET", path: "/api/v1/namespaces/default/serviceaccounts/default" });
        return true;
      } catch (error) {
        if (error instanceof ApiRefusal && error.reason === "NotFound") return false;
        throw error;
      }
    },
    timeoutMs: START_TIMEOUT_MS,
  });
}

function serverCommand(run: Run, name: Parameters<typeof serverPath>[0], args: readonly string[]): ServerCommand {
  return { name, path: serverPath(name), args, logPath: join(run.dir, `${name}.log`) };
}

function ignore(): void {
  // Nobody asked for progress.
}

/** Addresses of Services. Apart from common private networks, which a node's proxy would hide. */
const SERVICE_RANGE = "10.78.0.0/24";

/** The Service `kubernetes` in namespace `default`: always the first of the range. */
const API_SERVICE_ADDRESS = "10.78.0.1";

const START_TIMEOUT_MS = 60_000;

const CONTROLLERS: readonly string[] = [
  "clusterrole-aggregation-controller",
  "deployment-controller",
  "disruption-controller",
  "endpointslice-controller",
  "garbage-collector-controller",
  "horizontal-pod-autoscaler-controller",
  "job-controller",
  "namespace-controller",
  "node-lifecycle-controller",
  "replicaset-controller",
  "root-ca-certificate-publisher-controller",
  "serviceaccount-controller",
  "statefulset-controller",
];
