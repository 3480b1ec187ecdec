import { randomBytes } from "node:crypto";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { ApiRequest } from "./api.ts";
import { ApiRefusal, callApiAs } from "./api.ts";
import { bringClientTools, clientToolPath } from "./client-tools.ts";
import type { ControlPlane } from "./control-plane.ts";
import { startControlPlane, writeServiceAccountKubeconfig } from "./control-plane.ts";
import { isRunning, waitUntil } from "./processes.ts";

const kubeconfigPath = inject("kubeconfigPath");
const namespace = `bed-${randomBytes(4).toString("hex")}`;
const APPS = `/apis/apps/v1/namespaces/${namespace}`;
const CORE = `/api/v1/namespaces/${namespace}`;

async function asAdmin<Answer>(call: ApiRequest): Promise<Answer> {
  return await callApiAs<Answer>(kubeconfigPath, call);
}

type List = { readonly items: readonly { readonly metadata: { readonly name: string } }[] };

async function isGone(path: string): Promise<boolean> {
  try {
    await asAdmin({ method: "GET", path });
    return false;
  } catch (error) {
    if (error instanceof ApiRefusal && error.reason === "NotFound") return true;
    throw error;
  }
}

const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "idle" },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: "idle" } },
    template: {
      metadata: { labels: { app: "idle" } },
      spec: { containers: [{ name: "idle", image: "localhost/never-pulled:1" }] },
    },
  },
};

describe("the shared control plane", () => {
  beforeAll(async () => {
    await asAdmin({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: namespace } } });
    await waitUntil({
      what: "the namespace has its service account",
      probe: async () => !(await isGone(`${CORE}/serviceaccounts/default`)),
      timeoutMs: 30_000,
    });
  });

  it("answers with the pinned version", async () => {
    const version = await asAdmin<{ readonly gitVersion: string }>({ method: "GET", path: "/version" });
    expect(version.gitVersion).toMatch(/^v1\.35\./);
  });

  it("makes a ReplicaSet and pods for a Deployment", async () => {
    await asAdmin({ method: "POST", path: `${APPS}/deployments`, body: deployment });
    await waitUntil({
      what: "two pods exist",
      probe: async () => (await asAdmin<List>({ method: "GET", path: `${CORE}/pods` })).items.length === 2,
      timeoutMs: 30_000,
    });
    const sets = await asAdmin<List>({ method: "GET", path: `${APPS}/replicasets` });
    expect(sets.items.map((set) => set.metadata.name)).toEqual([expect.stringMatching(/^idle-/)]);
  });

  it("refuses a service account what no role gives it, and grants what one does", async () => {
    const restricted = await writeServiceAccountKubeconfig(kubeconfigPath, { namespace, name: "default" });
    const list: ApiRequest = { method: "GET", path: `${CORE}/configmaps` };
    await expect(callApiAs(restricted, list)).rejects.toMatchObject({ status: 403, reason: "Forbidden" });

    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
    const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["list"] }];
    await asAdmin({ method: "POST", path: `${rbac}/roles`, body: { metadata: { name: "reader" }, rules } });
    await asAdmin({
      method: "POST",
      path: `${rbac}/rolebindings`,
      body: {
        metadata: { name: "reader" },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "reader" },
        subjects: [{ kind: "ServiceAccount", namespace, name: "default" }],
      },
    });
    await waitUntil({
      what: "the role is in force",
      probe: async () => (await callApiAs<List>(restricted, list)).items.length > 0,
      timeoutMs: 30_000,
    });
    await expect(callApiAs(restricted, { method: "GET", path: `${CORE}/secrets` })).rejects.toMatchObject({ status: 403 });
  });

  it("is understood by kubectl", async () => {
    await bringClientTools(() => undefined);
    const { stdout } = await promisify(execFile)(clientToolPath("kubectl"), [
      ...["--kubeconfig", kubeconfigPath, "--namespace", namespace],
      ...["get", "deployment", "idle", "--output", "name"],
    ]);
    expect(stdout.trim()).toBe("deployment.apps/idle");
  });

  it("deletes a namespace with everything in it", async () => {
    await asAdmin({ method: "DELETE", path: `/api/v1/namespaces/${namespace}` });
    await waitUntil({
      what: "the namespace is gone",
      probe: async () => await isGone(`/api/v1/namespaces/${namespace}`),
      timeoutMs: 60_000,
    });
    expect((await asAdmin<List>({ method: "GET", path: "/api/v1/pods" })).items.filter((pod) => pod.metadata.name.startsWith("idle-"))).toEqual([]);
  });
});

describe("a control plane of one's own", () => {
  let controlPlane: ControlPlane;

  beforeAll(async () => {
    controlPlane = await startControlPlane();
  });

  afterAll(async () => {
    await controlPlane.stop();
  });

  it("keeps its objects and its address over an outage of the API server", async () => {
    const path = "/api/v1/namespaces/default/configmaps";
    await callApiAs(controlPlane.kubeconfigPath, { method: "POST", path, body: { metadata: { name: "kept" } } });

    await controlPlane.stopApiServer();
    await expect(callApiAs(controlPlane.kubeconfigPath, { method: "GET", path })).rejects.toMatchObject({ code: "ECONNREFUSED" });

    await controlPlane.startApiServer();
    await expect(callApiAs(controlPlane.kubeconfigPath, { method: "GET", path: `${path}/kept` })).resolves.toMatchObject({
      metadata: { name: "kept" },
    });
  });

  it("leaves no process and no file behind", async () => {
    const { processes } = controlPlane.run.state;
    expect(processes.map((record) => record.name).toSorted()).toEqual(["etcd", "kube-apiserver", "kube-controller-manager"]);
    expect(processes.every(isRunning)).toBe(true);
    await controlPlane.stop();
    expect(processes.some(isRunning)).toBe(false);
    expect(existsSync(controlPlane.run.dir)).toBe(false);
  });
});
