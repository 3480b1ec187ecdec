/** The cluster port on a real API server, with exactly the rights that the chart gives. */
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { kubeApi } from "../../src/kube/api.ts";
import { KubeCluster, readClusterId } from "../../src/kube/cluster.ts";
import { KubeConnection } from "../../src/kube/connection.ts";
import { operatorRules } from "../../src/kube/manifests/operator-role.ts";
import type { DesiredWorkers, ObservedResource, WorkersFacts } from "../../src/operator/plan/observed.ts";
import type { DurableTimerStatus } from "../../src/resource/durable-timer.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { waitUntil } from "../cluster/processes.ts";
import { FakeLog } from "../fakes/log.ts";
import { fullSpec, patched, type Patch } from "../resource/examples.ts";
import { installCrd, timerManifest, timersPath } from "./crd.ts";
import { createNamespace, type TestNamespace } from "./namespace.ts";

type Meta = { readonly name: string; readonly uid: string; readonly resourceVersion: string; readonly generation: number; readonly ownerReferences?: readonly object[] };
type Stored = { readonly metadata: Meta; readonly spec: Readonly<Record<string, unknown>>; readonly status?: Readonly<Record<string, unknown>> };
type EventObject = { readonly reason: string; readonly note: string; readonly series?: { readonly count: number }; readonly regarding: { readonly name: string } };

let namespace: TestNamespace;
let connection: KubeConnection;
let cluster: KubeCluster;
let log: FakeLog;

beforeAll(async () => {
  const kubeconfigPath = inject("kubeconfigPath");
  await installCrd(kubeconfigPath);
  namespace = await createNamespace(kubeconfigPath, "cluster");
  connection = new KubeConnection({ kind: "file", path: await namespace.accountWith("operator", operatorRules) });
  log = new FakeLog();
  cluster = new KubeCluster({
    api: kubeApi(connection), log,
    clock: systemClock, random: systemRandom, sha256: systemSha256,
    clusterId: "c1", namespaces: [namespace.name], defaultImage: "registry.example/durable-timer:1", instance: "operator-0",
  });
});

afterAll(async () => {
  await connection.close();
  await namespace.delete();
});

const paths = {
  deployment: (name: string) => `/apis/apps/v1/namespaces/${namespace.name}/deployments/${name}-worker`,
  serviceAccount: (name: string) => `/api/v1/namespaces/${namespace.name}/serviceaccounts/${name}-worker`,
  budget: (name: string) => `/apis/policy/v1/namespaces/${namespace.name}/poddisruptionbudgets/${name}-worker`,
};

async function get(path: string): Promise<Stored> {
  return await namespace.admin<Stored>({ method: "GET", path });
}

async function createTimer(name: string, patch: Patch = {}): Promise<ObservedResource> {
  await namespace.admin({ method: "POST", path: timersPath(namespace.name), body: timerManifest(name, patched(patch)) });
  return await observed(name);
}

async function observed(name: string): Promise<ObservedResource> {
  const read = await cluster.readResource({ namespace: namespace.name, name });
  if (read.kind !== "found") throw new Error(`expected to find ${name}: ${JSON.stringify(read)}`);
  return read.resource;
}

function desired(resource: ObservedResource): DesiredWorkers {
  const { key, uid, spec } = resource;
  return { key, uid, spec, ownerId: `c1/${key.namespace}/${key.name}` };
}

async function facts(resource: ObservedResource): Promise<WorkersFacts> {
  const read = await cluster.readWorkers(desired(resource));
  if (read.kind !== "found") throw new Error(`expected workers: ${JSON.stringify(read)}`);
  return read.value;
}

async function versions(name: string): Promise<readonly string[]> {
  const objects = await Promise.all([paths.deployment(name), paths.serviceAccount(name), paths.budget(name)].map(get));
  return objects.map(({ metadata, spec }) => `${metadata.uid}@${String(spec === undefined ? metadata.resourceVersion : metadata.generation)}`);
}

describe("the resource", () => {
  test("is found with its defaults, and absent when there is none", async () => {
    const resource = await createTimer("found");
    expect(resource).toMatchObject({ generation: 1, isDeletionRequested: false, spec: { workers: { replicas: 2 } }, status: { observedGeneration: -1 } });
    expect(await cluster.readResource({ namespace: namespace.name, name: "none" })).toEqual({ kind: "absent" });
  });

  test("has its status written once, and not again when it is the same", async () => {
    const resource = await createTimer("status");
    const status: DurableTimerStatus = {
      observedGeneration: 1,
      conditions: [{ type: "Ready", status: "False", reason: "Provisioning", message: "", observedGeneration: 1, lastTransitionTime: "2030-01-01T00:00:00Z" }],
    };
    expect(await cluster.writeStatus(resource, status)).toEqual({ kind: "done" });
    const written = await observed("status");
    expect(written).toMatchObject({ generation: 1, spec: resource.spec, status });
    expect(written.resourceVersion).not.toBe(resource.resourceVersion);
    expect(await cluster.writeStatus(written, status)).toEqual({ kind: "done" });
    expect((await observed("status")).resourceVersion).toBe(written.resourceVersion);
    const fewer: DurableTimerStatus = { observedGeneration: 1 };
    await cluster.writeStatus(written, fewer);
    expect((await observed("status")).status, "what is no longer said is gone").toEqual(fewer);
  });

  test("keeps its status when it was written since, or is another resource of that name", async () => {
    const resource = await createTimer("raced");
    await namespace.admin({ method: "PATCH", path: `${timersPath(namespace.name)}/raced`, body: { metadata: { annotations: { a: "b" } } } });
    const stale = await cluster.writeStatus(resource, { observedGeneration: 1 });
    expect(stale).toMatchObject({ kind: "failed", failure: { kind: "conflict", code: "CLUSTER_CONFLICT" } });
    const other = await cluster.writeStatus({ ...(await observed("raced")), uid: "00000000-0000-0000-0000-000000000000" }, { observedGeneration: 1 });
    expect(other).toMatchObject({ kind: "failed", failure: { kind: "conflict" } });
    const gone = await cluster.writeStatus({ ...resource, key: { namespace: namespace.name, name: "none" } }, { observedGeneration: 1 });
    expect(gone).toMatchObject({ kind: "failed", failure: { kind: "conflict", code: "CLUSTER_MISSING" } });
  });
});

describe("the workers", () => {
  test("are created once, and a second apply writes nothing", async () => {
    const resource = await createTimer("idle");
    expect(await cluster.readWorkers(desired(resource))).toEqual({ kind: "absent" });
    expect(await cluster.applyWorkers(desired(resource))).toEqual({ kind: "done" });
    const before = await versions("idle");
    expect(await facts(resource)).toMatchObject({ exists: true, drift: [], foreign: [], image: "registry.example/durable-timer:1" });
    expect(await cluster.applyWorkers(desired(resource))).toEqual({ kind: "done" });
    expect(await versions("idle")).toEqual(before);
    const owner = { apiVersion: "durabletimer.dev/v1alpha1", kind: "DurableTimer", name: "idle", uid: resource.uid, controller: true };
    for (const path of [paths.deployment, paths.serviceAccount, paths.budget]) expect((await get(path("idle"))).metadata.ownerReferences).toEqual([owner]);
    expect(log.lines, "nothing was left that the server spells otherwise").toEqual([]);
  });

  test("of a spec with every field are stable as well", async () => {
    const { workers } = fullSpec;
    const affinity = { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: { topologyKey: "zone" } }] } };
    const podTemplate = { ...workers.podTemplate, spec: { ...workers.podTemplate.spec, affinity, volumes: [{ name: "scratch", emptyDir: { sizeLimit: "1024Mi" } }] } };
    const resource = await createTimer("full", { ...fullSpec, workers: { ...workers, podTemplate } });
    expect(await cluster.applyWorkers(desired(resource))).toEqual({ kind: "done" });
    expect(await facts(resource)).toMatchObject({ drift: [], image: workers.image });
    expect(log.lines).toEqual([]);
  });

  test("that somebody changed are repaired, and what somebody added stays", async () => {
    const resource = await createTimer("drifting");
    await cluster.applyWorkers(desired(resource));
    const container = { name: "worker", image: "evil:1", env: [{ name: "THEIRS", value: "1" }] };
    const template = { metadata: { annotations: { "kubectl.kubernetes.io/restartedAt": "now" } }, spec: { containers: [container] } };
    await strategicPatch(paths.deployment("drifting"), { metadata: { labels: { team: "x" } }, spec: { replicas: 7, template } });
    await namespace.admin({ method: "PATCH", path: paths.budget("drifting"), body: { spec: { maxUnavailable: 5 } } });
    await namespace.admin({ method: "DELETE", path: paths.serviceAccount("drifting") });
    expect((await facts(resource)).drift).toEqual([
      "Deployment.spec.replicas",
      "Deployment.spec.template.spec.containers[worker].image",
      "PodDisruptionBudget.spec.maxUnavailable",
      "ServiceAccount",
    ]);
    expect(await cluster.applyWorkers(desired(resource))).toEqual({ kind: "done" });
    expect((await facts(resource)).drift).toEqual([]);
    const repaired = JSON.stringify(await get(paths.deployment("drifting")));
    for (const kept of ["THEIRS", '"team":"x"', "restartedAt"]) expect(repaired).toContain(kept);
    expect(repaired).not.toContain("evil:1");
  });

  test("lose what the spec no longer says", async () => {
    const podTemplate = { metadata: { labels: { team: "a" } }, spec: { nodeSelector: { disk: "ssd" }, env: [{ name: "A", value: "1" }, { name: "B", value: "2" }] } };
    const resource = await createTimer("shrinking", { workers: { podTemplate } });
    await cluster.applyWorkers(desired(resource));
    const less = { ...desired(resource), spec: { ...resource.spec, workers: { ...resource.spec.workers, podTemplate: { spec: { env: [{ name: "A", value: "1" }] } } } } };
    const read = await cluster.readWorkers(less);
    expect(read).toMatchObject({
      kind: "found",
      value: {
        drift: [
          "Deployment.metadata.annotations.durabletimer.dev/template-hash",
          "Deployment.spec.template.metadata.labels.team",
          "Deployment.spec.template.spec.containers[worker].env[B]",
          "Deployment.spec.template.spec.nodeSelector",
        ],
      },
    });
    await cluster.applyWorkers(less);
    expect(await cluster.readWorkers(less)).toMatchObject({ kind: "found", value: { drift: [] } });
    const text = JSON.stringify((await get(paths.deployment("shrinking"))).spec);
    expect(text).not.toContain('"team"');
    expect(text).not.toContain("ssd");
  });

  test("of the same name that belong to somebody else are reported and never touched", async () => {
    const resource = await createTimer("taken");
    const labels = { app: "theirs" };
    const spec = { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [{ name: "c", image: "theirs:1" }] } } };
    const collection = `/apis/apps/v1/namespaces/${namespace.name}/deployments`;
    await namespace.admin({ method: "POST", path: collection, body: { metadata: { name: "taken-worker" }, spec } });
    expect(await facts(resource)).toMatchObject({ exists: false, foreign: ["Deployment taken-worker"], drift: ["PodDisruptionBudget", "ServiceAccount"] });
    expect(await cluster.applyWorkers(desired(resource))).toMatchObject({ kind: "failed", failure: { kind: "invalid", code: "CLUSTER_EXISTS" } });
    const theirs = await get(paths.deployment("taken"));
    expect([theirs.metadata.generation, theirs.metadata.ownerReferences]).toEqual([1, undefined]);
  });

  test("of a former resource of that name are foreign until they are collected", async () => {
    const resource = await createTimer("reborn");
    await cluster.applyWorkers(desired(resource));
    expect((await facts({ ...resource, uid: "another" })).foreign).toEqual(["Deployment reborn-worker", "PodDisruptionBudget reborn-worker", "ServiceAccount reborn-worker"]);
  });

  const refused = [
    { name: "a field that does not exist", podSpec: { tolerations: [{ kee: "x" }] } },
    { name: "a value that is not allowed", podSpec: { tolerations: [{ key: "x", operator: "Sometimes" }] } },
    { name: "a mount of a volume that is not there", podSpec: { volumeMounts: [{ name: "nowhere", mountPath: "/x" }] } },
  ];
  test.each(refused)("with $name are refused for good, with the API server's words", async ({ podSpec }) => {
    const resource = await createTimer(`refused-${String(Math.random()).slice(2, 8)}`, { workers: { podTemplate: { spec: podSpec } } });
    const done = await cluster.applyWorkers(desired(resource));
    expect(done).toMatchObject({ kind: "failed", failure: { kind: "invalid", code: "CLUSTER_INVALID" } });
  });

  test("tell how far their rollout is, and what is wrong with a pod", async () => {
    const resource = await createTimer("rolling", { workers: { replicas: 1 } });
    await cluster.applyWorkers(desired(resource));
    const pod = await podOf("rolling");
    const waiting = { reason: "ImagePullBackOff", message: "Back-off pulling image" };
    const containerStatus = { name: "worker", image: "x:1", imageID: "", ready: false, restartCount: 0, state: { waiting } };
    await namespace.admin({ method: "PATCH", path: `${pod}/status`, body: { status: { phase: "Pending", containerStatuses: [containerStatus] } } });
    expect(await facts(resource)).toMatchObject({ readyReplicas: 0, problem: "worker: image cannot be pulled: x:1" });
    const ready = ["Ready", "ContainersReady"].map((type) => ({ type, status: "True", lastTransitionTime: new Date(Date.now() - 60_000).toISOString() }));
    const running = { ...containerStatus, ready: true, state: { running: {} } };
    await namespace.admin({ method: "PATCH", path: `${pod}/status`, body: { status: { phase: "Running", conditions: ready, containerStatuses: [running] } } });
    await waitUntil({ what: "the Deployment counts its pod", probe: async () => (await facts(resource)).readyReplicas === 1, timeoutMs: 30_000 });
    expect(await facts(resource)).toMatchObject({ replicas: 1, updatedReplicas: 1, readyReplicas: 1, isObserved: true, problem: "" });
  });
});

describe("the connection", () => {
  async function createSecret(name: string, stringData: Readonly<Record<string, string>>): Promise<void> {
    await namespace.admin({ method: "POST", path: `/api/v1/namespaces/${namespace.name}/secrets`, body: { metadata: { name }, stringData } });
  }

  test("is resolved from the Secrets that the resource names", async () => {
    await createSecret("creds", { "user.creds": "-----BEGIN NATS USER JWT-----\n" });
    await createSecret("ca", { "ca.crt": "pem" });
    const nats = { servers: ["tls://a:4222"], jetStreamDomain: "hub", auth: { credentialsSecretRef: { name: "creds" } }, tls: { caSecretRef: { name: "ca" } } };
    expect(await cluster.resolveConnection(await createTimer("secrets", { nats }))).toEqual({
      kind: "resolved",
      warnings: [],
      options: {
        servers: ["tls://a:4222"],
        name: `durable-timer-operator ${namespace.name}/secrets`,
        domain: "hub",
        auth: { kind: "credentials", text: "-----BEGIN NATS USER JWT-----\n" },
        tls: { ca: "pem", handshakeFirst: false },
      },
    });
  });

  test("of a hand-made Secret has no newline at its end", async () => {
    await createSecret("login", { username: "me\n", password: " p w \n" });
    const nats = { auth: { userPasswordSecretRef: { name: "login" } } };
    expect(await cluster.resolveConnection(await createTimer("login", { nats }))).toMatchObject({ options: { auth: { kind: "user", user: "me", password: " p w " } } });
  });

  test("names everything that is missing at once", async () => {
    await createSecret("empty", { other: "x" });
    const nats = { auth: { tokenSecretRef: { name: "absent" } }, tls: { clientCertSecretRef: { name: "empty" } } };
    expect(await cluster.resolveConnection(await createTimer("missing", { nats }))).toEqual({
      kind: "missing",
      problems: ["Secret absent does not exist", "Secret empty has no key tls.crt", "Secret empty has no key tls.key"],
    });
  });
});

test("events are counted together, and only with the same words", async () => {
  const resource = await createTimer("events");
  for (let count = 0; count < 3; count += 1) await cluster.emitEvent(resource, { severity: "Warning", reason: "NotReady", message: "It is not." });
  await cluster.emitEvent(resource, { severity: "Normal", reason: "Ready", message: "x".repeat(2_000) });
  const list = await namespace.admin<{ readonly items: readonly EventObject[] }>({ method: "GET", path: `/apis/events.k8s.io/v1/namespaces/${namespace.name}/events` });
  const about = list.items.filter(({ regarding }) => regarding.name === "events");
  expect(about.map(({ reason, series, note }) => [reason, series?.count, note.length]).sort()).toEqual([["NotReady", 3, 10], ["Ready", undefined, 1_024]]);
});

test("the watch tells of what a person or a Deployment changed, and not of our own status", async () => {
  const resource = await createTimer("watched");
  const [keys, controller] = [[] as string[], new AbortController()];
  const running = cluster.watch({ onKey: ({ name }) => keys.push(name), signal: controller.signal });
  const told = async (what: string): Promise<void> => {
    await waitUntil({ what, probe: async () => keys.includes("watched"), timeoutMs: 20_000 });
    keys.length = 0;
  };
  await waitUntil({ what: "the first list", probe: async () => cluster.isSynced, timeoutMs: 20_000 });
  await told("the resource exists");
  expect(await cluster.writeStatus(resource, { observedGeneration: 1 })).toEqual({ kind: "done" });
  await createTimer("marker");
  await waitUntil({ what: "what was created after the status", probe: async () => keys.includes("marker"), timeoutMs: 20_000 });
  expect(keys).not.toContain("watched");
  await namespace.admin({ method: "PATCH", path: `${timersPath(namespace.name)}/watched`, body: { metadata: { annotations: { "durabletimer.dev/reconcile-now": "1" } } } });
  await told("an annotation");
  await cluster.applyWorkers(desired(resource));
  await told("its Deployment");
  await namespace.admin({ method: "PATCH", path: paths.deployment("watched"), body: { metadata: { labels: { "app.kubernetes.io/managed-by": "nobody" } } } });
  await told("its Deployment out of sight");
  await namespace.admin({ method: "DELETE", path: `${timersPath(namespace.name)}/watched` });
  await told("its deletion");
  expect(cluster.silentForMs).toBeLessThan(20_000);
  controller.abort();
  await running;
});

test("the cluster's id is the uid of kube-system, which needs a right of its own", async () => {
  expect(await readClusterId(kubeApi(connection))).toMatchObject({ kind: "failed", failure: { code: "CLUSTER_DENIED" } });
  const admin = new KubeConnection({ kind: "file", path: inject("kubeconfigPath") });
  expect(await readClusterId(kubeApi(admin))).toEqual({ kind: "ok", value: (await get("/api/v1/namespaces/kube-system")).metadata.uid });
  await admin.close();
});

async function podOf(name: string): Promise<string> {
  const pods = `/api/v1/namespaces/${namespace.name}/pods`;
  let path = "";
  const probe = async (): Promise<boolean> => {
    const list = await namespace.admin<{ readonly items: readonly Stored[] }>({ method: "GET", path: `${pods}?labelSelector=durabletimer.dev/name=${name}` });
    path = `${pods}/${list.items[0]?.metadata.name ?? ""}`;
    return list.items.length > 0;
  };
  await waitUntil({ what: `a pod of ${name}`, probe, timeoutMs: 30_000 });
  return path;
}

type ContainersPatch = Patch & { readonly spec: Patch & { readonly template: { readonly spec: { readonly containers: readonly { readonly env: readonly object[] }[] } } } };

/** A merge patch replaces lists as a whole; adding to one, as kubectl does, needs the items that are there. */
async function strategicPatch(path: string, patch: ContainersPatch): Promise<void> {
  const live = await get(path);
  const template = live.spec["template"] as { readonly spec: { readonly containers: readonly ({ readonly env: readonly object[] } & Patch)[] } };
  const containers = template.spec.containers.map((container, index) => {
    const over = patch.spec.template.spec.containers[index];
    return { ...container, ...over, env: [...container.env, ...(over?.env ?? [])] };
  });
  await namespace.admin({ method: "PATCH", path, body: { ...patch, spec: { ...patch.spec, template: { ...patch.spec.template, spec: { containers } } } } });
}
