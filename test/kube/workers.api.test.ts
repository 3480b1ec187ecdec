/** The workers' objects on a real API server, with exactly the rights that the chart gives. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ObservedResource, WorkersFacts } from "../../src/operator/plan/observed.ts";
import { waitUntil } from "../cluster/processes.ts";
import { fullSpec, type Patch } from "../resource/examples.ts";
import { desired, openClusterBed, type ClusterBed, type Stored } from "./cluster-bed.ts";

let bed: ClusterBed;

beforeAll(async () => {
  bed = await openClusterBed("workers");
  // Pods that do not meet the restricted standard would be refused here.
  const labels = { "pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest" };
  await bed.namespace.admin({ method: "PATCH", path: `/api/v1/namespaces/${bed.namespace.name}`, body: { metadata: { labels } } });
});

afterAll(async () => {
  await bed.close();
});

const paths = {
  deployment: (name: string) => `/apis/apps/v1/namespaces/${bed.namespace.name}/deployments/${name}-worker`,
  serviceAccount: (name: string) => `/api/v1/namespaces/${bed.namespace.name}/serviceaccounts/${name}-worker`,
  budget: (name: string) => `/apis/policy/v1/namespaces/${bed.namespace.name}/poddisruptionbudgets/${name}-worker`,
};

async function facts(resource: ObservedResource): Promise<WorkersFacts> {
  const read = await bed.cluster.readWorkers(desired(resource));
  if (read.kind !== "found") throw new Error(`expected workers: ${JSON.stringify(read)}`);
  return read.value;
}

async function versions(name: string): Promise<readonly string[]> {
  const objects = await Promise.all([paths.deployment(name), paths.serviceAccount(name), paths.budget(name)].map((path) => bed.get(path)));
  return objects.map(({ metadata, spec }) => `${metadata.uid}@${String(spec === undefined ? metadata.resourceVersion : metadata.generation)}`);
}

describe("the workers", () => {
  test("are created once, and a second apply writes nothing", async () => {
    const resource = await bed.createTimer("idle");
    expect(await bed.cluster.readWorkers(desired(resource))).toEqual({ kind: "absent" });
    expect(await bed.cluster.applyWorkers(desired(resource))).toEqual({ kind: "done" });
    const before = await versions("idle");
    expect(await facts(resource)).toMatchObject({ exists: true, drift: [], foreign: [], image: "registry.example/durable-timer:1" });
    expect(await bed.cluster.applyWorkers(desired(resource))).toEqual({ kind: "done" });
    expect(await versions("idle")).toEqual(before);
    const owner = { apiVersion: "durabletimer.dev/v1alpha1", kind: "DurableTimer", name: "idle", uid: resource.uid, controller: true };
    for (const path of [paths.deployment, paths.serviceAccount, paths.budget]) expect((await bed.get(path("idle"))).metadata.ownerReferences).toEqual([owner]);
    expect(bed.log.lines, "nothing was left that the server spells otherwise").toEqual([]);
  });

  test("of a spec with every field are stable as well", async () => {
    const { workers } = fullSpec;
    const affinity = { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: { topologyKey: "zone" } }] } };
    const podTemplate = { ...workers.podTemplate, spec: { ...workers.podTemplate.spec, affinity, volumes: [{ name: "scratch", emptyDir: { sizeLimit: "1024Mi" } }] } };
    const resource = await bed.createTimer("full", { ...fullSpec, workers: { ...workers, podTemplate } });
    expect(await bed.cluster.applyWorkers(desired(resource))).toEqual({ kind: "done" });
    expect(await facts(resource)).toMatchObject({ drift: [], image: workers.image });
    expect(bed.log.lines).toEqual([]);
  });

  test("that somebody changed are repaired, and what somebody added stays", async () => {
    const resource = await bed.createTimer("drifting");
    await bed.cluster.applyWorkers(desired(resource));
    const container = { name: "worker", image: "evil:1", env: [{ name: "THEIRS", value: "1" }] };
    const template = { metadata: { annotations: { "kubectl.kubernetes.io/restartedAt": "now" } }, spec: { containers: [container] } };
    await strategicPatch(paths.deployment("drifting"), { metadata: { labels: { team: "x" } }, spec: { replicas: 7, template } });
    await bed.namespace.admin({ method: "PATCH", path: paths.budget("drifting"), body: { spec: { maxUnavailable: 5 } } });
    await bed.namespace.admin({ method: "DELETE", path: paths.serviceAccount("drifting") });
    expect((await facts(resource)).drift).toEqual([
      "Deployment.spec.replicas",
      "Deployment.spec.template.spec.containers[worker].image",
      "PodDisruptionBudget.spec.maxUnavailable",
      "ServiceAccount",
    ]);
    expect(await bed.cluster.applyWorkers(desired(resource))).toEqual({ kind: "done" });
    expect((await facts(resource)).drift).toEqual([]);
    const repaired = JSON.stringify(await bed.get(paths.deployment("drifting")));
    for (const kept of ["THEIRS", '"team":"x"', "restartedAt"]) expect(repaired).toContain(kept);
    expect(repaired).not.toContain("evil:1");
  });

  test("lose what the spec no longer says", async () => {
    const podTemplate = { metadata: { labels: { team: "a" } }, spec: { nodeSelector: { disk: "ssd" }, env: [{ name: "A", value: "1" }, { name: "B", value: "2" }] } };
    const resource = await bed.createTimer("shrinking", { workers: { podTemplate } });
    await bed.cluster.applyWorkers(desired(resource));
    const less = { ...desired(resource), spec: { ...resource.spec, workers: { ...resource.spec.workers, podTemplate: { spec: { env: [{ name: "A", value: "1" }] } } } } };
    const read = await bed.cluster.readWorkers(less);
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
    await bed.cluster.applyWorkers(less);
    expect(await bed.cluster.readWorkers(less)).toMatchObject({ kind: "found", value: { drift: [] } });
    const text = JSON.stringify((await bed.get(paths.deployment("shrinking"))).spec);
    expect(text).not.toContain('"team"');
    expect(text).not.toContain("ssd");
  });

  test("of the same name that belong to somebody else are reported and never touched", async () => {
    const resource = await bed.createTimer("taken");
    const labels = { app: "theirs" };
    const spec = { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [{ name: "c", image: "theirs:1" }] } } };
    const collection = `/apis/apps/v1/namespaces/${bed.namespace.name}/deployments`;
    await bed.namespace.admin({ method: "POST", path: collection, body: { metadata: { name: "taken-worker" }, spec } });
    expect(await facts(resource)).toMatchObject({ exists: false, foreign: ["Deployment taken-worker"], drift: ["PodDisruptionBudget", "ServiceAccount"] });
    expect(await bed.cluster.applyWorkers(desired(resource))).toMatchObject({ kind: "failed", failure: { kind: "invalid", code: "CLUSTER_EXISTS" } });
    const theirs = await bed.get(paths.deployment("taken"));
    expect([theirs.metadata.generation, theirs.metadata.ownerReferences]).toEqual([1, undefined]);
  });

  test("of a former resource of that name are waited for until they are collected, and never applied over", async () => {
    const resource = await bed.createTimer("reborn");
    await bed.cluster.applyWorkers(desired(resource));
    const again = { ...resource, uid: "another" };
    const names = ["Deployment reborn-worker", "PodDisruptionBudget reborn-worker", "ServiceAccount reborn-worker"];
    expect(await facts(again)).toMatchObject({ exists: false, foreign: [], leaving: names });
    expect(await bed.cluster.applyWorkers(desired(again))).toMatchObject({ kind: "failed", failure: { kind: "conflict" } });
    for (const path of [paths.deployment, paths.budget, paths.serviceAccount]) await bed.namespace.admin({ method: "DELETE", path: path("reborn") });
    expect(await bed.cluster.readWorkers(desired(again)), "they are gone, and nothing is in the way").toEqual({ kind: "absent" });
  });

  test("in deletion are waited for, whosever they are", async () => {
    const resource = await bed.createTimer("leaving");
    await bed.cluster.applyWorkers(desired(resource));
    await bed.namespace.admin({ method: "PATCH", path: paths.deployment("leaving"), body: { metadata: { finalizers: ["example.com/hold"] } } });
    await bed.namespace.admin({ method: "DELETE", path: paths.deployment("leaving") });
    expect(await facts(resource)).toMatchObject({ leaving: ["Deployment leaving-worker"], foreign: [] });
    await bed.namespace.admin({ method: "PATCH", path: paths.deployment("leaving"), body: { metadata: { finalizers: [] } } });
    expect(await facts(resource)).toMatchObject({ leaving: [], drift: ["Deployment"] });
  });

  const refused = [
    { name: "a field that does not exist", podSpec: { tolerations: [{ kee: "x" }] } },
    { name: "a value that is not allowed", podSpec: { tolerations: [{ key: "x", operator: "Sometimes" }] } },
    { name: "a mount of a volume that is not there", podSpec: { volumeMounts: [{ name: "nowhere", mountPath: "/x" }] } },
  ];
  test.each(refused)("with $name are refused for good, with the API server's words", async ({ podSpec }) => {
    const resource = await bed.createTimer(`refused-${String(Math.random()).slice(2, 8)}`, { workers: { podTemplate: { spec: podSpec } } });
    const done = await bed.cluster.applyWorkers(desired(resource));
    expect(done).toMatchObject({ kind: "failed", failure: { kind: "invalid", code: "CLUSTER_INVALID" } });
  });

  test("tell how far their rollout is, and what is wrong with a pod", async () => {
    const resource = await bed.createTimer("rolling", { workers: { replicas: 1 } });
    await bed.cluster.applyWorkers(desired(resource));
    const pod = await podOf("rolling");
    const waiting = { reason: "ImagePullBackOff", message: "Back-off pulling image" };
    const containerStatus = { name: "worker", image: "x:1", imageID: "", ready: false, restartCount: 0, state: { waiting } };
    await bed.namespace.admin({ method: "PATCH", path: `${pod}/status`, body: { status: { phase: "Pending", containerStatuses: [containerStatus] } } });
    expect(await facts(resource)).toMatchObject({ readyReplicas: 0, problem: "worker: image cannot be pulled: x:1" });
    const ready = ["Ready", "ContainersReady"].map((type) => ({ type, status: "True", lastTransitionTime: new Date(Date.now() - 60_000).toISOString() }));
    const running = { ...containerStatus, ready: true, state: { running: {} } };
    await bed.namespace.admin({ method: "PATCH", path: `${pod}/status`, body: { status: { phase: "Running", conditions: ready, containerStatuses: [running] } } });
    await waitUntil({ what: "the Deployment counts its pod", probe: async () => (await facts(resource)).readyReplicas === 1, timeoutMs: 30_000 });
    expect(await facts(resource)).toMatchObject({ replicas: 1, updatedReplicas: 1, readyReplicas: 1, isObserved: true, problem: "" });
  });
});

async function podOf(name: string): Promise<string> {
  const pods = `/api/v1/namespaces/${bed.namespace.name}/pods`;
  let path = "";
  const probe = async (): Promise<boolean> => {
    const list = await bed.namespace.admin<{ readonly items: readonly Stored[] }>({ method: "GET", path: `${pods}?labelSelector=durabletimer.dev/name=${name}` });
    path = `${pods}/${list.items[0]?.metadata.name ?? ""}`;
    return list.items.length > 0;
  };
  await waitUntil({ what: `a pod of ${name}`, probe, timeoutMs: 30_000 });
  return path;
}

type ContainersPatch = Patch & { readonly spec: Patch & { readonly template: { readonly spec: { readonly containers: readonly { readonly env: readonly object[] }[] } } } };

/** A merge patch replaces lists as a whole; adding to one, as kubectl does, needs the items that are there. */
async function strategicPatch(path: string, patch: ContainersPatch): Promise<void> {
  const live = await bed.get(path);
  const template = live.spec?.["template"] as { readonly spec: { readonly containers: readonly ({ readonly env: readonly object[] } & Patch)[] } };
  const containers = template.spec.containers.map((container, index) => {
    const over = patch.spec.template.spec.containers[index];
    return { ...container, ...over, env: [...container.env, ...(over?.env ?? [])] };
  });
  await bed.namespace.admin({ method: "PATCH", path, body: { ...patch, spec: { ...patch.spec, template: { ...patch.spec.template, spec: { containers } } } } });
}
