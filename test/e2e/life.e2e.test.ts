/**
 * The life of an installation on a real node, in order: each test goes on where the one before it ended.
 *
 * The NATS server runs on the machine, with an account whose users have the rights that docs/examples gives them: what the
 * operator, the workers and a flow's owner do here, they do with those.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { openBroker } from "../../src/nats/core/connection.ts";
import type { BrokerConnection } from "../../src/nats/core/jetstream.ts";
import { consumerNames, stateRecordFilter, streamNames, subjectFilters } from "../../src/protocol/names.ts";
import { apiGroup } from "../../src/resource/names.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { Installation, type PodObject } from "../cluster/installation.ts";
import { connectNode } from "../cluster/node.ts";
import { repositoryDir } from "../cluster/paths.ts";
import { waitUntil } from "../cluster/processes.ts";
import { buildProductImage } from "../cluster/product-image.ts";
import { refusal } from "../charts/helm.ts";
import { startServers, type NatsServer, type NatsServers } from "../servers.ts";
import { bodyOf, Flow } from "./flow.ts";

const node = connectNode(inject("nodeKubeconfigPath"));
const unique = randomBytes(3).toString("hex");
const namespace = `payments-${unique}`;
const operatorNamespace = `timers-${unique}`;
const on = new Installation({ kubeconfigPath: node.kubeconfigPath, operatorNamespace, namespace });
const { version } = JSON.parse(readFileSync(join(repositoryDir, "package.json"), "utf8")) as { readonly version: string };
const passwords = { operator: randomBytes(9).toString("hex"), worker: randomBytes(9).toString("hex"), app: randomBytes(9).toString("hex") };

let servers: NatsServers;
let server: NatsServer;
let flow: Flow;
/** With the operator's rights, to look at what NATS holds. */
let broker: BrokerConnection;

const sizes = Object.fromEntries(["state", "commands", "feedback", "snapshots", "terminals", "resumes"].map((stream) => [stream, { maxBytes: "64Mi" }]));

function spec(changed: { readonly workers?: object } = {}): object {
  return {
    nats: { servers: [server.url], accountName: "PAYMENTS", auth: { userPasswordSecretRef: { name: "nats-operator" } } },
    topology: { streams: sizes },
    sweep: { intervalSeconds: 10 },
    workers: {
      replicas: 2, minReadySeconds: 1, terminationGracePeriodSeconds: 15,
      auth: { userPasswordSecretRef: { name: "nats-worker" } },
      resources: { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "512Mi" } },
      ...changed.workers,
    },
  };
}

function auth(user: keyof typeof passwords) {
  return { kind: "user", user, password: passwords[user] } as const;
}

async function secret(user: "operator" | "worker"): Promise<void> {
  await on.kubectl("create", "secret", "generic", `nats-${user}`, `--from-literal=username=${user}`, `--from-literal=password=${passwords[user]}`);
}

async function countUnder(stream: string, filter: string): Promise<number> {
  let count = 0;
  for await (const batch of broker.jetStream.scan({ stream, filter, batchSize: 500, signal: AbortSignal.timeout(30_000) })) {
    // A marker of a removed record has no body.
    count += batch.filter(({ body }) => body.length > 0).length;
  }
  return count;
}

/** None early, each once for its one generation, each with its bytes. */
function expectWhole(executions: readonly string[]): void {
  const seen = flow.of(executions);
  expect(new Set(seen.map(({ execution, generation, fence }) => `${execution} ${String(generation)} ${String(fence)}`)).size).toBe(executions.length);
  expect(seen.filter(({ latenessMs }) => latenessMs < 0)).toEqual([]);
  expect(seen.filter(({ execution, body }) => Buffer.compare(body, bodyOf(execution)) !== 0)).toEqual([]);
}

async function until(what: string, probe: () => Promise<boolean>): Promise<void> {
  await waitUntil({ what, probe, timeoutMs: 90_000 });
}

async function workerUids(): Promise<readonly string[]> {
  return (await on.workerPods("orders")).map(({ metadata }) => metadata.uid).sort();
}

beforeAll(async () => {
  const account = readFileSync(join(repositoryDir, "docs/examples/nats-account.conf"), "utf8");
  const variables = Object.entries(passwords).map(([user, password]) => `${user.toUpperCase()}_PASSWORD: "${password}"`);
  servers = await startServers({ host: node.hostAddress, config: [...variables, account].join("\n") });
  [server] = servers.servers as [NatsServer];
  await node.loadImage(await buildProductImage());
  for (const name of [namespace, operatorNamespace]) {
    await node.runTool("kubectl", ["create", "namespace", name]);
    await node.runTool("kubectl", ["label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted"]);
  }
  await secret("operator");
  await secret("worker");
});

afterAll(async () => {
  await flow?.[Symbol.asyncDispose]();
  await broker?.close();
  await node.runTool("kubectl", ["delete", "namespace", namespace, operatorNamespace, "--ignore-not-found", "--timeout=120s"]);
  await node.runTool("kubectl", ["delete", "crd", "durabletimers.durabletimer.dev", "--ignore-not-found"]);
  await servers?.stop();
});

describe("installing", () => {
  it("brings an operator that is ready", async () => {
    await on.installOperator({ replicas: 2 });
    const { items } = await on.get<{ readonly items: readonly PodObject[] }>("pods", "--namespace", operatorNamespace);
    expect(items).toHaveLength(2);
  });

  it("brings an image that holds the command line too", async () => {
    const said = await on.kubectl("exec", "--namespace", operatorNamespace, "deployment/durable-timer-operator", "--", "node", "durable-timer", "version");
    expect(said).toBe(`durable-timer ${version}`);
  });

  it("explains the resource", async () => {
    expect(await on.kubectl("explain", "durabletimers")).toContain("DurableTimer owns the durable timers of one NATS account");
    const explained = (await on.kubectl("explain", "dtimer.spec.topology.streams")).replaceAll(/\s+/g, " ");
    expect(explained).toContain("Sizes of the streams. The stream of schedules has no limit: a limit there would evict pending timers.");
    expect(explained).toContain("state <Object> -required- Records of live timers.");
  });

  it("refuses a resource that cannot work, and names the field", async () => {
    const manifest = (bad: object): object => ({ apiVersion: "durabletimer.dev/v1alpha1", kind: "DurableTimer", metadata: { name: "bad" }, spec: { ...spec(), ...bad } });
    expect(await refusal(on.apply(manifest({ admission: { closePercent: 50, reopenPercent: 75 } })))).toContain("spec.admission.reopenPercent");
    expect(await refusal(on.apply(manifest({ topology: { streams: { ...sizes, state: { maxBytes: "1" } } } })))).toContain("spec.topology.streams.state.maxBytes");
    expect(await refusal(on.apply(manifest({ sweeps: {} })))).toContain('unknown field "spec.sweeps"');
  });
});

describe("starting while NATS is away", () => {
  it("holds the gates: no workers are made, and the resource says why", async () => {
    await server.kill();
    await on.installTimer("orders", spec());
    const reachable = await on.untilCondition("orders", { type: "BrokerReachable", status: "False" }, 60_000);
    expect(reachable.reason).toBe("BrokerUnreachable");
    expect(reachable.message).toContain(`connect to ${server.url}`);
    expect(await on.untilCondition("orders", { type: "Ready", status: "Unknown" }, 10_000)).toMatchObject({ reason: "BrokerUnreachable" });
    expect(await on.kubectl("get", "deployments", "--output", "name")).toBe("");
  });

  it("goes on by itself once NATS is there, also when it goes away again in the middle", async () => {
    await server.start();
    await on.untilCondition("orders", { type: "TopologyReady", status: "True" }, 60_000);
    await server.kill();
    await server.start();
    await on.untilCondition("orders", { type: "Ready", status: "True" }, 120_000);
    expect(await on.workerPods("orders")).toHaveLength(2);
    const { status } = await on.timer("orders");
    expect(status?.conditions?.filter(({ type }) => type === "Stalled" || type === "Reconciling")).toEqual([]);
  });

  it("shows itself in a line that a person can read", async () => {
    const [head, row] = (await on.kubectl("get", "durabletimers")).split("\n").map((line) => line.trim().split(/\s{2,}/));
    expect(head).toEqual(["NAME", "READY", "REASON", "WORKERS", "ADMISSION", "FULL%", "AGE"]);
    expect(row?.slice(0, -1)).toEqual(["orders", "True", "Serving", "2/2", "True", "0"]);
    const [wideHead, wideRow] = (await on.kubectl("get", "dtimer", "--output", "wide")).split("\n").map((line) => line.trim().split(/\s{2,}/));
    expect(wideHead).toEqual(["NAME", "READY", "REASON", "WORKERS", "ADMISSION", "FULL%", "RESUME", "NATS", "AGE"]);
    expect(wideRow?.slice(6, 8)).toEqual(["Open", "2.15.2"]);
  });
});

describe("timers", () => {
  it("resume with the bytes that they were started with, and end in the archive", async () => {
    flow = await Flow.connect({ servers: [server.url], auth: auth("app") });
    broker = openBroker({ servers: [server.url], name: "test", auth: auth("operator") }, { clock: systemClock, random: systemRandom });
    const executions = await flow.start("plain", { count: 20, delayMs: 1_000 });
    await flow.untilResumed(executions, 30_000);
    expectWhole(executions);
    await expect.poll(async () => await countUnder(streamNames.terminals, subjectFilters.terminals), { timeout: 30_000 }).toBe(executions.length);
  });

  it("are not lost with a worker's pod that is taken away while they wait", async () => {
    const executions = await flow.start("killed", { count: 100, delayMs: 4_000 });
    await on.deleteWorker("orders");
    await flow.untilResumed(executions, 60_000);
    expectWhole(executions);
    await on.untilCondition("orders", { type: "Ready", status: "True" }, 60_000);
  });

  it("go on while workers are replaced one by one", async () => {
    const before = await workerUids();
    const executions = await flow.start("rolled", { count: 50, delayMs: 8_000 });
    await on.installTimer("orders", spec({ workers: { podTemplate: { metadata: { annotations: { rolled: "once" } } } } }));
    await flow.untilResumed(executions, 60_000);
    expectWhole(executions);
    await until("every worker is new", async () => (await workerUids()).every((uid) => !before.includes(uid)));
  });

  it("wait through a restart of NATS", async () => {
    const executions = await flow.start("restarted", { count: 50, delayMs: 5_000 });
    await server.kill();
    await server.start();
    await flow.untilResumed(executions, 60_000);
    expectWhole(executions);
  });

  it("outlast a longer loss of NATS, which the resource shows and no worker is ended for", async () => {
    const executions = await flow.start("outlasting", { count: 20, delayMs: 10_000 });
    const before = await workerUids();
    await server.kill();
    expect(await on.untilCondition("orders", { type: "Ready", status: "Unknown" }, 90_000)).toMatchObject({ reason: "BrokerUnreachable" });
    await server.start();
    await flow.untilResumed(executions, 60_000);
    expectWhole(executions);
    await on.untilCondition("orders", { type: "Ready", status: "True" }, 60_000);
    expect(await workerUids()).toEqual(before);
    expect(await on.kubectl("get", "pods", "--output", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")).toBe("0 0");
  });

  it("are served by as many workers as kubectl scale asks for", async () => {
    const workers = async (): Promise<number> => (await on.workerPods("orders")).length;
    await on.kubectl("scale", "durabletimer/orders", "--replicas=1");
    await expect.poll(workers, { timeout: 60_000 }).toBe(1);
    await on.kubectl("scale", "durabletimer/orders", "--replicas=2");
    await expect.poll(workers, { timeout: 60_000 }).toBe(2);
    await on.kubectl("wait", "durabletimer/orders", "--for=jsonpath={.status.workers.summary}=2/2", "--timeout=60s");
  });
});

describe("uninstalling the operator and installing it again", () => {
  let waiting: readonly string[];
  let workers: readonly string[];
  let deployment: unknown;

  const generation = async (): Promise<unknown> => (await on.get<{ readonly metadata: { readonly generation: number; readonly uid: string } }>("deployment/orders-worker")).metadata;

  it("leaves definition, resource, workers and streams, and timers go on", async () => {
    await on.untilCondition("orders", { type: "Ready", status: "True" }, 60_000);
    [workers, deployment] = [await workerUids(), await generation()];
    waiting = await flow.start("across", { count: 20, delayMs: 20_000 });
    await on.uninstallOperator();
    expect(await on.kubectl("get", "deployments", "--namespace", operatorNamespace, "--output", "name")).toBe("");
    expect((await on.timer("orders")).status?.owner?.id).toMatch(new RegExp(`/${namespace}/orders$`));
    const executions = await flow.start("alone", { count: 20, delayMs: 1_000 });
    await flow.untilResumed(executions, 30_000);
    expectWhole(executions);
  });

  it("takes them over, now with rights in that namespace alone: no worker is touched, and what waited resumes", async () => {
    await on.installOperator({ watchNamespaces: [namespace] });
    await on.untilCondition("orders", { type: "Ready", status: "True" }, 60_000);
    await flow.untilResumed(waiting, 60_000);
    expectWhole(waiting);
    expect(await workerUids()).toEqual(workers);
    expect(await generation()).toMatchObject({ uid: (deployment as { readonly uid: string }).uid, generation: (deployment as { readonly generation: number }).generation });
  });
});

describe("uninstalling the resource and installing it again", () => {
  it("ends its workers and leaves everything in NATS; the next one of its name takes it over, and timers resume", async () => {
    const incarnations = async (): Promise<unknown> => (await on.timer("orders")).status?.topology?.streams.map(({ name, incarnation }) => `${name} ${incarnation}`);
    const before = await incarnations();
    const executions = await flow.start("kept", { count: 20, delayMs: 5_000 });
    await on.uninstallTimer("orders");
    await until("the workers are gone", async () => (await on.workerPods("orders")).length === 0);
    expect(await countUnder(streamNames.state, stateRecordFilter)).toBeGreaterThanOrEqual(executions.length);
    const submitted = await flow.submit("unattended", { count: 5, delayMs: 1_000 });
    // Helm itself waits for the gates, as it understands conditions.
    await on.installTimer("orders", spec(), ["--wait", "--timeout=120s"]);
    expect((await on.timer("orders")).status?.conditions).toContainEqual(expect.objectContaining({ type: "Ready", status: "True" }));
    await flow.untilResumed([...executions, ...submitted], 60_000);
    expectWhole([...executions, ...submitted]);
    expect(await incarnations()).toEqual(before);
  });
});

describe("an idle installation", () => {
  type StoredObject = PodObject & { readonly kind: string; readonly reportingComponent?: string };

  /** What the API server and NATS hold, in numbers that every write changes. Leases are left out: renewing them is the one thing that goes on. */
  const marks = async (): Promise<Readonly<Record<string, string>>> => {
    const stored = await on.get<{ readonly items: readonly StoredObject[] }>("durabletimers,deployments,replicasets,pods,events,serviceaccounts,secrets,poddisruptionbudgets,configmaps");
    // What the node tells of its pods is not ours.
    const ours = stored.items.filter(({ kind, reportingComponent }) => kind !== "Event" || reportingComponent === `${apiGroup}/operator`);
    const objects = ours.map(({ kind, metadata }): readonly [string, string] => [`${kind} ${metadata.name}`, metadata.resourceVersion]);
    const streams = await Promise.all(Object.values(streamNames).map(streamMark));
    return Object.fromEntries([...objects, ...streams]);
  };

  const streamMark = async (name: string): Promise<readonly [string, string]> => {
    const told = await broker.jetStream.streamState(name);
    if (told.kind === "failed") throw told.failure;
    const { config, messages, bytes, firstSequence, lastSequence } = told.value;
    return [name, JSON.stringify({ config, messages, bytes, firstSequence, lastSequence })];
  };

  it("writes nothing for a minute between two sweeps", async () => {
    await on.installTimer("orders", { ...spec(), sweep: { intervalSeconds: 300 } }, ["--wait", "--timeout=120s"]);
    await until("nothing is written any more", async () => {
      const before = await marks();
      await sleep(5_000);
      return isDeepStrictEqual(before, await marks());
    });
    const before = await marks();
    expect(Object.keys(before).filter((name) => name.startsWith("Event"))).not.toEqual([]);
    await sleep(60_000);
    expect(await marks()).toEqual(before);
  });
});

describe("at the end", () => {
  it("NATS holds one archived record per timer, and nothing that waits, is owed or was refused", async () => {
    const started = await countUnder(streamNames.snapshots, subjectFilters.snapshots);
    expect(started).toBe(new Set(flow.seen.map(({ execution }) => execution)).size);
    await expect.poll(async () => await countUnder(streamNames.terminals, subjectFilters.terminals), { timeout: 30_000 }).toBe(started);
    expect(await countUnder(streamNames.state, stateRecordFilter)).toBe(0);
    const resumes = await broker.jetStream.consumerState(streamNames.resumes, consumerNames.resume);
    expect(resumes).toMatchObject({ kind: "told", value: { pending: 0, ackPending: 0 } });
  });
});
