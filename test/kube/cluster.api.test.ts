/** Resources, events and watches on a real API server, with exactly the rights that the chart gives. */
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { kubeApi } from "../../src/kube/api.ts";
import { readClusterId } from "../../src/kube/cluster.ts";
import { KubeConnection } from "../../src/kube/connection.ts";
import type { DurableTimerStatus } from "../../src/resource/durable-timer.ts";
import { waitUntil } from "../cluster/processes.ts";
import { desired, openClusterBed, type ClusterBed } from "./cluster-bed.ts";
import { timersPath } from "./crd.ts";

type EventObject = { readonly reason: string; readonly note: string; readonly series?: { readonly count: number }; readonly regarding: { readonly name: string } };

let bed: ClusterBed;

beforeAll(async () => {
  bed = await openClusterBed("cluster");
});

afterAll(async () => {
  await bed.close();
});

describe("the resource", () => {
  test("is found with its defaults, and absent when there is none", async () => {
    const resource = await bed.createTimer("found");
    expect(resource).toMatchObject({ generation: 1, isDeletionRequested: false, spec: { workers: { replicas: 2 } }, status: { observedGeneration: -1 } });
    expect(await bed.cluster.readResource({ namespace: bed.namespace.name, name: "none" })).toEqual({ kind: "absent" });
  });

  test("has its status written once, and not again when it is the same", async () => {
    const resource = await bed.createTimer("status");
    const status: DurableTimerStatus = {
      observedGeneration: 1,
      conditions: [{ type: "Ready", status: "False", reason: "Provisioning", message: "", observedGeneration: 1, lastTransitionTime: "2030-01-01T00:00:00Z" }],
    };
    expect(await bed.cluster.writeStatus(resource, status)).toEqual({ kind: "done" });
    const written = await bed.observed("status");
    expect(written).toMatchObject({ generation: 1, spec: resource.spec, status });
    expect(written.resourceVersion).not.toBe(resource.resourceVersion);
    expect(await bed.cluster.writeStatus(written, status)).toEqual({ kind: "done" });
    expect((await bed.observed("status")).resourceVersion).toBe(written.resourceVersion);
    const fewer: DurableTimerStatus = { observedGeneration: 1 };
    await bed.cluster.writeStatus(written, fewer);
    expect((await bed.observed("status")).status, "what is no longer said is gone").toEqual(fewer);
  });

  test("keeps its status when it was written since, or is another resource of that name", async () => {
    const resource = await bed.createTimer("raced");
    await bed.namespace.admin({ method: "PATCH", path: `${timersPath(bed.namespace.name)}/raced`, body: { metadata: { annotations: { a: "b" } } } });
    const stale = await bed.cluster.writeStatus(resource, { observedGeneration: 1 });
    expect(stale).toMatchObject({ kind: "failed", failure: { kind: "conflict", code: "CLUSTER_CONFLICT" } });
    const other = await bed.cluster.writeStatus({ ...(await bed.observed("raced")), uid: "00000000-0000-0000-0000-000000000000" }, { observedGeneration: 1 });
    expect(other).toMatchObject({ kind: "failed", failure: { kind: "conflict" } });
    const gone = await bed.cluster.writeStatus({ ...resource, key: { namespace: bed.namespace.name, name: "none" } }, { observedGeneration: 1 });
    expect(gone).toMatchObject({ kind: "failed", failure: { kind: "conflict", code: "CLUSTER_MISSING" } });
  });
});

describe("a resource that is being deleted", () => {
  const pathOf = (name: string): string => `${timersPath(bed.namespace.name)}/${name}`;
  const finalizersOf = async (name: string): Promise<readonly string[] | undefined> => (await bed.get(pathOf(name)) as { readonly metadata: { readonly finalizers?: readonly string[] } }).metadata.finalizers;

  test("is held by our finalizer, beside others, until we let go of it", async () => {
    await bed.createTimer("held", { deletionPolicy: "Delete" });
    await bed.namespace.admin({ method: "PATCH", path: pathOf("held"), body: { metadata: { finalizers: ["example.com/theirs"] } } });
    const resource = await bed.observed("held");
    expect(await bed.cluster.setFinalizer(resource, true)).toEqual({ kind: "done" });
    expect(await finalizersOf("held")).toEqual(["example.com/theirs", "durabletimer.dev/streams"]);
    expect(await bed.cluster.setFinalizer(resource, false), "another version by now").toMatchObject({ kind: "failed", failure: { kind: "conflict" } });
    await bed.namespace.admin({ method: "DELETE", path: pathOf("held") });
    const deleted = await bed.observed("held");
    expect(deleted).toMatchObject({ isDeletionRequested: true, isNamespaceEnding: false, deletionRequestedAtMs: expect.any(Number) as number });
    expect(await bed.cluster.setFinalizer(deleted, false)).toEqual({ kind: "done" });
    expect(await finalizersOf("held")).toEqual(["example.com/theirs"]);
    await bed.namespace.admin({ method: "PATCH", path: pathOf("held"), body: { metadata: { finalizers: [] } } });
    expect(await bed.cluster.readResource({ namespace: bed.namespace.name, name: "held" })).toEqual({ kind: "absent" });
    expect(await bed.cluster.setFinalizer(deleted, false), "gone is let go").toEqual({ kind: "done" });
  });

  test("takes changes of its policy and acknowledgements while it is held", async () => {
    await bed.cluster.setFinalizer(await bed.createTimer("changing", { deletionPolicy: "Delete" }), true);
    await bed.namespace.admin({ method: "DELETE", path: pathOf("changing") });
    await bed.namespace.admin({ method: "PATCH", path: pathOf("changing"), body: { spec: { deletionPolicy: "Retain", acknowledge: ["delete-data-00000000"] } } });
    const changed = await bed.observed("changing");
    expect(changed).toMatchObject({ isDeletionRequested: true, spec: { deletionPolicy: "Retain", acknowledge: ["delete-data-00000000"] } });
    await bed.cluster.setFinalizer(changed, false);
  });

  test("is seen with a namespace that is being deleted", async () => {
    const doomed = await openClusterBed("doomed");
    const key = { namespace: doomed.namespace.name, name: "last" };
    await doomed.cluster.setFinalizer(await doomed.createTimer("last", { deletionPolicy: "Delete" }), true);
    await doomed.namespace.admin({ method: "DELETE", path: `${timersPath(key.namespace)}/last` });
    await doomed.namespace.admin({ method: "DELETE", path: `/api/v1/namespaces/${key.namespace}` });
    const seen = await doomed.observed("last");
    expect(seen).toMatchObject({ isDeletionRequested: true, isNamespaceEnding: true });
    expect(await doomed.cluster.setFinalizer(seen, false)).toEqual({ kind: "done" });
    expect(await doomed.cluster.readResource(key)).toEqual({ kind: "absent" });
    await doomed.close();
  });
});

test("events are counted together, and only with the same words", async () => {
  const resource = await bed.createTimer("events");
  for (let count = 0; count < 3; count += 1) await bed.cluster.emitEvent(resource, { severity: "Warning", reason: "NotReady", message: "It is not." });
  await bed.cluster.emitEvent(resource, { severity: "Normal", reason: "Ready", message: "x".repeat(2_000) });
  const list = await bed.namespace.admin<{ readonly items: readonly EventObject[] }>({ method: "GET", path: `/apis/events.k8s.io/v1/namespaces/${bed.namespace.name}/events` });
  const about = list.items.filter(({ regarding }) => regarding.name === "events");
  expect(about.map(({ reason, series, note }) => [reason, series?.count, note.length]).sort()).toEqual([["NotReady", 3, 10], ["Ready", undefined, 1_024]]);
});

test("the watch tells of what a person or a Deployment changed, and not of our own status", async () => {
  const resource = await bed.createTimer("watched");
  const [keys, controller] = [[] as string[], new AbortController()];
  const running = bed.cluster.watch({ onKey: ({ name }) => keys.push(name), signal: controller.signal });
  const told = async (what: string): Promise<void> => {
    await waitUntil({ what, probe: async () => keys.includes("watched"), timeoutMs: 30_000 });
    keys.length = 0;
  };
  await waitUntil({ what: "the first list", probe: async () => bed.cluster.isSynced, timeoutMs: 30_000 });
  await told("the resource exists");
  expect(await bed.cluster.writeStatus(resource, { observedGeneration: 1 })).toEqual({ kind: "done" });
  await bed.createTimer("marker");
  await waitUntil({ what: "what was created after the status", probe: async () => keys.includes("marker"), timeoutMs: 30_000 });
  expect(keys).not.toContain("watched");
  await bed.namespace.admin({ method: "PATCH", path: `${timersPath(bed.namespace.name)}/watched`, body: { metadata: { annotations: { "durabletimer.dev/reconcile-now": "1" } } } });
  await told("an annotation");
  await bed.cluster.applyWorkers(desired(resource));
  await told("its Deployment");
  await bed.namespace.admin({ method: "PATCH", path: `/apis/apps/v1/namespaces/${bed.namespace.name}/deployments/watched-worker`, body: { metadata: { labels: { "app.kubernetes.io/managed-by": "nobody" } } } });
  await told("its Deployment out of sight");
  await bed.namespace.admin({ method: "DELETE", path: `${timersPath(bed.namespace.name)}/watched` });
  await told("its deletion");
  expect(bed.cluster.silentForMs).toBeLessThan(20_000);
  controller.abort();
  await running;
});

test("the cluster's id is the uid of kube-system, which needs a right of its own", async () => {
  expect(await readClusterId(bed.api)).toMatchObject({ kind: "failed", failure: { code: "CLUSTER_DENIED" } });
  const admin = new KubeConnection({ kind: "file", path: inject("kubeconfigPath") });
  expect(await readClusterId(kubeApi(admin))).toEqual({ kind: "ok", value: (await bed.get("/api/v1/namespaces/kube-system")).metadata.uid });
  await admin.close();
});
