/**
 * The operator as it is shipped, on a real API server and a real NATS server, with exactly the rights of the chart. There is
 * no node: the test plays kubelet and says which pods are ready.
 */
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { clusterIdentityRules, leaderElectionRules, operatorRules } from "../../src/kube/manifests/operator-role.ts";
import { fieldManager } from "../../src/kube/objects.ts";
import { gateTypes, type Condition } from "../../src/resource/conditions.ts";
import { ApiRefusal } from "../cluster/api.ts";
import { waitUntil } from "../cluster/processes.ts";
import { patched, type Patch } from "../resource/examples.ts";
import { startServers, type NatsServers } from "../servers.ts";
import { installCrd, timerManifest, timersPath } from "../kube/crd.ts";
import { createNamespace, type TestNamespace } from "../kube/namespace.ts";
import { OperatorProcess } from "./operator-process.ts";

type Meta = { readonly name: string; readonly uid: string; readonly generation: number; readonly resourceVersion: string; readonly managedFields: readonly { readonly manager: string; readonly operation: string }[] };
type Stored = { readonly metadata: Meta; readonly spec: { readonly replicas: number }; readonly status?: { readonly conditions?: readonly Condition[]; readonly owner?: { readonly id: string }; readonly workers?: Readonly<Record<string, unknown>>; readonly topology?: { readonly streams: readonly { readonly name: string; readonly incarnation: string }[] } } };

let namespace: TestNamespace;
let nats: NatsServers;
let kubeconfigPath: string;
const operators: OperatorProcess[] = [];

beforeAll(async () => {
  await installCrd(inject("kubeconfigPath"));
  namespace = await createNamespace(inject("kubeconfigPath"), "operator");
  nats = await startServers();
  await namespace.grantClusterWide("operator", clusterIdentityRules);
  kubeconfigPath = await namespace.accountWith("operator", [...operatorRules, ...leaderElectionRules("durable-timer-operator")]);
});

afterAll(async () => {
  await Promise.all(operators.map((operator) => operator.end("SIGKILL")));
  await nats.stop();
  await namespace.delete();
});

function startOperator(environment: Readonly<Record<string, string>> = {}): OperatorProcess {
  const operator = new OperatorProcess({
    KUBECONFIG: kubeconfigPath,
    DURABLE_TIMER_WORKER_IMAGE: "registry.example/durable-timer:1",
    DURABLE_TIMER_WATCH_NAMESPACES: namespace.name,
    DURABLE_TIMER_LEASE_NAMESPACE: namespace.name,
    ...environment,
  });
  operators.push(operator);
  return operator;
}

const timerPath = (name: string): string => `${timersPath(namespace.name)}/${name}`;
const deploymentPath = (name: string): string => `/apis/apps/v1/namespaces/${namespace.name}/deployments/${name}-worker`;

async function get(path: string): Promise<Stored> {
  return await namespace.admin<Stored>({ method: "GET", path });
}

async function isGone(path: string): Promise<boolean> {
  try {
    await get(path);
    return false;
  } catch (error) {
    if (error instanceof ApiRefusal && error.reason === "NotFound") return true;
    throw error;
  }
}

async function createTimer(name: string, patch: Patch = {}): Promise<void> {
  const streams = Object.fromEntries(["state", "commands", "feedback", "snapshots", "terminals", "resumes"].map((role) => [role, { maxBytes: "16Mi" }]));
  const spec = patched({ nats: { servers: nats.urls }, topology: { streams }, workers: { replicas: 1, minReadySeconds: 0 }, ...patch });
  await namespace.admin({ method: "POST", path: timersPath(namespace.name), body: timerManifest(name, spec) });
}

async function conditionsOf(name: string): Promise<Readonly<Record<string, string>>> {
  const conditions = (await get(timerPath(name))).status?.conditions ?? [];
  return Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]));
}

async function untilCondition(name: string, type: string, want: string): Promise<void> {
  let seen = "";
  const probe = async (): Promise<boolean> => (seen = (await conditionsOf(name))[type] ?? "none").startsWith(want);
  await waitUntil({ what: `${name} is ${type} ${want}`, probe, timeoutMs: 60_000 }).catch((error: unknown) => {
    throw new Error(`${name} ${type} is ${seen}`, { cause: error });
  });
}

/** What a kubelet would report of pods whose workers have started. */
async function reportPodsReady(name: string, count: number): Promise<void> {
  const pods = `/api/v1/namespaces/${namespace.name}/pods`;
  const probe = async (): Promise<boolean> => {
    const { items } = await namespace.admin<{ readonly items: readonly Stored[] }>({ method: "GET", path: `${pods}?labelSelector=durabletimer.dev/name=${name}` });
    const conditions = ["Ready", "ContainersReady"].map((type) => ({ type, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }));
    for (const { metadata } of items) {
      const path = `${pods}/${metadata.name}/status`;
      await namespace.admin({ method: "PATCH", path, body: { status: { phase: "Running", conditions } } });
    }
    return items.length === count;
  };
  await waitUntil({ what: `pods of ${name}`, probe, timeoutMs: 60_000 });
}

async function eventReasons(): Promise<readonly string[]> {
  const path = `/apis/events.k8s.io/v1/namespaces/${namespace.name}/events`;
  const { items } = await namespace.admin<{ readonly items: readonly { readonly reason: string }[] }>({ method: "GET", path });
  return items.map(({ reason }) => reason);
}

async function streamNames(): Promise<readonly string[]> {
  const response = await fetch(`${nats.servers[0]?.monitoringUrl ?? ""}/jsz?streams=true&accounts=true`);
  return [...(await response.text()).matchAll(/"name":\s*"((?:KV_)?DURABLE_TIMER_[A-Z]+)"/g)].map((match) => match[1] ?? "").sort();
}

test("a resource passes its gates in order: streams before workers, workers before resumes, and Ready last", async () => {
  const operator = startOperator();
  await operator.waitFor("Became leader");
  await createTimer("orders");
  await untilCondition("orders", "TopologyReady", "True");
  await untilCondition("orders", "WorkersReady", "False");
  expect(await conditionsOf("orders")).toMatchObject({ BrokerReachable: "True Connected", Ready: expect.stringMatching(/^False/) as string, ResumeOpen: expect.stringMatching(/^False/) as string });
  expect(await streamNames()).toEqual(expect.arrayContaining(["DURABLE_TIMER_COMMANDS", "DURABLE_TIMER_SCHEDULES", "KV_DURABLE_TIMER_STATE"]));
  await reportPodsReady("orders", 1);
  await untilCondition("orders", "Ready", "True");
  const gatesOpened = (): readonly unknown[] => {
    const turned = operator.lines.filter(({ message, status }) => message === "Turned a condition" && status === "True");
    return turned.map(({ condition }) => condition).filter((condition) => gateTypes.some((gate) => gate === condition));
  };
  await waitUntil({ what: "the log tells of the last gate", probe: async () => gatesOpened().includes("ResumeOpen"), timeoutMs: 30_000 });
  expect(gatesOpened()).toEqual(gateTypes);
  expect(await conditionsOf("orders")).toMatchObject({ WorkersReady: "True WorkersAvailable", ResumeOpen: "True Open" });
  const { status } = await get(timerPath("orders"));
  const clusterId = (await get("/api/v1/namespaces/kube-system")).metadata.uid;
  expect(status).toMatchObject({ owner: { id: `${clusterId}/${namespace.name}/orders` }, workers: { readyReplicas: 1, summary: "1/1", image: "registry.example/durable-timer:1" } });
  expect([await operator.probe("/livez"), await operator.probe("/readyz")]).toEqual([200, 200]);
});

test("a pass over a settled resource writes nothing", async () => {
  const [operator] = operators;
  const before = { timer: await get(timerPath("orders")), deployment: await get(deploymentPath("orders")) };
  await namespace.admin({ method: "PATCH", path: timerPath("orders"), body: { metadata: { annotations: { "durabletimer.dev/reconcile-now": "1" } } } });
  const asked = await get(timerPath("orders"));
  await waitUntil({
    what: "a pass without a change",
    probe: async () => /reconcil\w*total\{[^}]*"unchanged"[^}]*\} [1-9]/.test((await operator?.metrics()) ?? ""),
    timeoutMs: 30_000,
  });
  expect((await get(timerPath("orders"))).metadata.resourceVersion).toBe(asked.metadata.resourceVersion);
  expect((await get(deploymentPath("orders"))).metadata.resourceVersion).toBe(before.deployment.metadata.resourceVersion);
  expect(before.timer.status).toEqual(asked.status);
});

test("what somebody changed at the workers is repaired without waiting for the regular look", async () => {
  await namespace.admin({ method: "PATCH", path: deploymentPath("orders"), body: { spec: { replicas: 4 } } });
  await waitUntil({ what: "the replicas are back", probe: async () => (await get(deploymentPath("orders"))).spec.replicas === 1, timeoutMs: 30_000 });
  await waitUntil({ what: "an event tells of it", probe: async () => (await eventReasons()).includes("WorkersUpdated"), timeoutMs: 30_000 });
  expect((await get(deploymentPath("orders"))).spec.replicas).toBe(1);
});

test("scaling the resource scales the workers", async () => {
  await namespace.admin({ method: "PATCH", path: `${timerPath("orders")}/scale`, body: { spec: { replicas: 2 } } });
  await waitUntil({ what: "two replicas", probe: async () => (await get(deploymentPath("orders"))).spec.replicas === 2, timeoutMs: 30_000 });
  await reportPodsReady("orders", 2);
  await waitUntil({ what: "the status says so", probe: async () => (await get(timerPath("orders"))).status?.workers?.["summary"] === "2/2", timeoutMs: 30_000 });
  expect((await get(timerPath("orders"))).status?.workers?.["selector"]).toBe("app.kubernetes.io/component=worker,durabletimer.dev/name=orders");
});

test("after a crash another operator takes over: nothing is made anew, and no worker is restarted", async () => {
  const before = { timer: await get(timerPath("orders")), deployment: await get(deploymentPath("orders")) };
  const second = startOperator();
  await second.waitFor("Started the operator");
  await waitUntil({ what: "the second is ready to take over", probe: async () => (await second.probe("/readyz")) === 200, timeoutMs: 30_000 });
  expect(second.has("Became leader")).toBe(false);
  await operators[0]?.end("SIGKILL");
  await second.waitFor("Became leader");
  await waitUntil({ what: "its first pass", probe: async () => /reconcil\w*total\{/.test(await second.metrics()), timeoutMs: 30_000 });
  const after = { timer: await get(timerPath("orders")), deployment: await get(deploymentPath("orders")) };
  expect(after.timer.status?.topology?.streams.map(({ incarnation }) => incarnation)).toEqual(before.timer.status?.topology?.streams.map(({ incarnation }) => incarnation));
  expect(after.deployment.metadata.generation).toBe(before.deployment.metadata.generation);
  expect(after.deployment.metadata.managedFields.filter(({ manager }) => manager === fieldManager).map(({ operation }) => operation)).toEqual(["Apply"]);
});

test("a resource whose Secret is missing says so, and goes on once it is there", async () => {
  await createTimer("secretive", { nats: { servers: nats.urls, auth: { tokenSecretRef: { name: "later" } } } });
  await untilCondition("secretive", "CredentialsValid", "False CredentialsMissing");
  const secrets = `/api/v1/namespaces/${namespace.name}/secrets`;
  await namespace.admin({ method: "POST", path: secrets, body: { metadata: { name: "later" }, stringData: { token: "t" } } });
  await namespace.admin({ method: "PATCH", path: timerPath("secretive"), body: { metadata: { annotations: { "durabletimer.dev/reconcile-now": "1" } } } });
  await untilCondition("secretive", "BrokerReachable", "True");
  // Both resources are in one account of NATS: the streams belong to the first.
  await untilCondition("secretive", "TopologyReady", "False OwnedByAnother");
  expect(await isGone(deploymentPath("secretive")), "workers wait for the topology").toBe(true);
});

test("deleting the resource takes its workers along and leaves the streams", async () => {
  const streams = await streamNames();
  await namespace.admin({ method: "DELETE", path: timerPath("orders") });
  await waitUntil({ what: "the Deployment is collected", probe: async () => await isGone(deploymentPath("orders")), timeoutMs: 60_000 });
  expect(await streamNames()).toEqual(streams);
});

test("an operator that is asked to stop gives the lease back and ends without an error", async () => {
  const last = operators.at(-1);
  expect(await last?.end("SIGTERM")).toBe(0);
  expect(last?.has("Released leadership")).toBe(true);
  expect(last?.stderr).toBe("");
  const lease = await namespace.admin<{ readonly spec: { readonly holderIdentity: string } }>({ method: "GET", path: `/apis/coordination.k8s.io/v1/namespaces/${namespace.name}/leases/durable-timer-operator` });
  expect(lease.spec.holderIdentity).toBe("");
  for (const operator of operators) expect(operator.lines.filter(({ level }) => level === "error")).toEqual([]);
});

test("an operator whose lease somebody else has taken ends at once, with an error", async () => {
  const operator = startOperator();
  await operator.waitFor("Became leader");
  await namespace.admin({ method: "PATCH", path: `/apis/coordination.k8s.io/v1/namespaces/${namespace.name}/leases/durable-timer-operator`, body: { spec: { holderIdentity: "intruder" } } });
  expect(await operator.ended()).toBe(1);
  expect(operator.lines.at(-1)).toMatchObject({ level: "error", message: "Lost leadership", outcome: "taken" });
});

test("an operator that is told too little, or wrong, says what is wrong and ends", async () => {
  const lost = startOperator({ KUBECONFIG: "/nowhere/kubeconfig" });
  expect(await lost.ended()).toBe(2);
  expect(lost.lines.at(-1)).toMatchObject({ level: "error", message: "Found no way to the API server" });
  const operator = startOperator({ DURABLE_TIMER_WORKER_IMAGE: "" });
  expect(await operator.ended()).toBe(2);
  expect(operator.lines.at(-1)?.["problems"]).toEqual(["DURABLE_TIMER_WORKER_IMAGE is required"]);
});
