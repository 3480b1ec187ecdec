/**
 * Starts a bed that stays until `down.ts` ends it, for a person to look around in:
 * `node test/cluster/up.ts` a control plane, `node test/cluster/up.ts --node` a cluster of one node.
 */
import { bringClientTools, clientToolPath } from "./client-tools.ts";
import { startControlPlane } from "./control-plane.ts";
import { NODE_RUN, endNode, startNode } from "./node.ts";
import { isRunning } from "./processes.ts";
import { findRun } from "./runs.ts";

const withNode = process.argv.includes("--node");
const startedAtMs = Date.now();
const name = withNode ? NODE_RUN : "up";
const kubeconfigPath = (await findRunning()) ?? (await start());
console.log(`Up after ${((Date.now() - startedAtMs) / 1000).toFixed(1)} s. In a shell:

  export KUBECONFIG=${kubeconfigPath}
  ${clientToolPath("kubectl")} get namespaces

Run tests against it with ${withNode ? "DURABLE_TIMER_TEST_NODE_KUBECONFIG" : "DURABLE_TIMER_TEST_KUBECONFIG"} set to the same path.
End it with: node test/cluster/down.ts ${name}`);

/** A bed that is up is left alone; what remains of one, after a restart of the machine say, is ended. */
async function findRunning(): Promise<string | undefined> {
  const run = await findRun(name);
  if (run === undefined) return undefined;
  if (run.state.processes.every(isRunning)) return run.state.facts["kubeconfigPath"];
  await (withNode ? endNode(run) : run.end());
  return undefined;
}

async function start(): Promise<string> {
  await bringClientTools(report);
  const started = withNode ? await startNode({ keptBy: "state", report }) : await startControlPlane({ name, keptBy: "state", report });
  return started.kubeconfigPath;
}

function report(line: string): void {
  console.log(line);
}
