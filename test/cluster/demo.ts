/**
 * `npm run demo:cluster`: the story of `npm run demo` on a real cluster. It brings up a node of its own on this machine, builds and
 * loads the image, installs the operator with helm, applies a DurableTimer with kubectl, plays the demo's timers while one worker's
 * pod is deleted, counts in NATS, and takes everything down again.
 *
 * 1. It exits with 0 only when the table is right.
 * 2. Nothing stays behind, also when it is interrupted.
 * 3. With DURABLE_TIMER_TEST_NODE_KUBECONFIG it uses the node that is up (`up.ts --node`) and leaves it running.
 */
import { parse } from "yaml";
import { GateWatch } from "../../src/bin/demo-gates.ts";
import { playAndCount } from "../../src/bin/demo-story.ts";
import { gateTypes } from "../../src/resource/conditions.ts";
import { startServers, type NatsServers } from "../servers.ts";
import { Installation } from "./installation.ts";
import { connectNode, startNode, type NodeHandle } from "./node.ts";
import { buildProductImage } from "./product-image.ts";
import { toolsMissing } from "./tools.ts";

const givenKubeconfig = process.env["DURABLE_TIMER_TEST_NODE_KUBECONFIG"];
const READY_MS_MAX = 120_000;

await main();

async function main(): Promise<void> {
  const beganAtMs = Date.now();
  const cleanup = new AsyncDisposableStack();
  const interruption = Promise.withResolvers<never>();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      interruption.reject(new Error(`interrupted by ${signal}`));
    });
  }
  let isRight = false;
  try {
    isRight = await Promise.race([runDemo(cleanup), interruption.promise]);
  } catch (error) {
    say(`\n${error instanceof Error ? error.message : String(error)}`);
  }
  say("Taking everything down");
  await cleanup.disposeAsync();
  say(`${isRight ? "The table is right" : "The demo did NOT end as it should"}; took ${seconds(beganAtMs)}`);
  process.exit(isRight ? 0 : 1);
}

async function runDemo(cleanup: AsyncDisposableStack): Promise<boolean> {
  const missing = toolsMissing("node");
  if (missing.length > 0) throw new Error(`demo:cluster needs\n${missing.map(({ tool, remedy }) => `  ${tool}: ${remedy}`).join("\n")}`);
  const node = await step("A cluster of one node: etcd, API server, controllers, scheduler, kubelet, containerd", () => openNode(cleanup));
  await step("The image, built from the Dockerfile and loaded into the node", async () => {
    await node.loadImage(await buildProductImage());
  });
  const servers = await step("A NATS server on this machine, where pods reach it", () => openServers(node, cleanup));
  const on = new Installation({ kubeconfigPath: node.kubeconfigPath, operatorNamespace: "durable-timer", namespace: "demo" });
  // A node that goes away takes this with it; one that was there before should look as it did.
  if (givenKubeconfig !== undefined) cleanup.defer(async () => { await uninstall(node); });
  await step("helm install durable-timer-operator", async () => {
    await on.installOperator();
  });
  await node.runTool("kubectl", ["create", "namespace", "demo"]);
  say(`\n$ kubectl apply --filename - <<EOF\n${manifest(servers)}EOF`);
  say(await on.apply(parse(manifest(servers)) as object));
  await watchGates(on);
  say(`\n$ kubectl get durabletimers,pods\n${await on.kubectl("get", "durabletimers,pods")}`);
  const killWorker = async (): Promise<{ readonly how: string; readonly which: string }> => ({ how: "pod deleted", which: await on.deleteWorker("demo") });
  const isRight = await playAndCount({ servers: servers.urls, killWorker, say });
  say(`$ kubectl get durabletimers,pods\n${await on.kubectl("get", "durabletimers,pods")}\n`);
  return isRight;
}

async function openNode(cleanup: AsyncDisposableStack): Promise<NodeHandle> {
  if (givenKubeconfig !== undefined) return connectNode(givenKubeconfig);
  const starting = startNode({ report: (line) => { say(`  ${line}`); } });
  // An interruption may come while it starts: it can only be ended once it is there.
  cleanup.defer(async () => {
    const node = await starting.catch(() => undefined);
    await node?.stop();
  });
  return await starting;
}

async function openServers(node: NodeHandle, cleanup: AsyncDisposableStack): Promise<NatsServers> {
  const servers = await startServers({ host: node.hostAddress });
  cleanup.defer(async () => { await servers.stop(); });
  return servers;
}

async function uninstall(node: NodeHandle): Promise<void> {
  await node.runTool("kubectl", ["delete", "namespace", "demo", "durable-timer", "--ignore-not-found", "--timeout=120s"]);
  await node.runTool("kubectl", ["delete", "clusterrole,clusterrolebinding", "--selector", "app.kubernetes.io/part-of=durable-timer"]);
  await node.runTool("kubectl", ["delete", "crd", "durabletimers.durabletimer.dev", "--ignore-not-found"]);
}

/** Prints each gate as it opens. */
async function watchGates(on: Installation): Promise<void> {
  say("");
  const gates = new GateWatch(say);
  const shown = new Set<string>();
  const ready = gates.ready(READY_MS_MAX).finally(() => shown.add("Ready"));
  ready.catch(() => undefined);
  while (!shown.has("Ready")) {
    const conditions = (await on.timer("demo")).status?.conditions ?? [];
    for (const type of [...gateTypes, "Ready"] as const) {
      const condition = conditions.find((candidate) => candidate.type === type && candidate.status === "True");
      if (condition === undefined || shown.has(type)) continue;
      shown.add(type);
      gates.see({ kind: "condition_turned", condition });
    }
  }
  await ready;
}

function manifest({ urls }: NatsServers): string {
  return `apiVersion: durabletimer.dev/v1alpha1
kind: DurableTimer
metadata: {name: demo, namespace: demo}
spec:
  nats: {servers: ["${urls.join('", "')}"]}
  topology:
    streams:
      state: {maxBytes: 64Mi}
      commands: {maxBytes: 64Mi}
      feedback: {maxBytes: 64Mi}
      snapshots: {maxBytes: 64Mi}
      terminals: {maxBytes: 64Mi}
      resumes: {maxBytes: 64Mi}
  workers: {replicas: 2, minReadySeconds: 0, terminationGracePeriodSeconds: 15}
`;
}

async function step<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
  const beganAtMs = Date.now();
  const result = await work();
  say(`${seconds(beganAtMs).padStart(6)}  ${what}`);
  return result;
}

function seconds(sinceMs: number): string {
  return `${((Date.now() - sinceMs) / 1_000).toFixed(0)} s`;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
