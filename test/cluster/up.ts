/**
 * Starts a bed that stays until `down.ts` ends it, for a person to look around in:
 * `node test/cluster/up.ts` a control plane, `node test/cluster/up.ts --node` a cluster of one node.
 */
import { bringClientTools, clientToolPath } from "./client-tools.ts";
import { startControlPlane } from "./control-plane.ts";
import { NODE_RUN, startNode } from "./node.ts";
import { findRun } from "./runs.ts";

const withNode = process.argv.includes("--node");
const startedAtMs = Date.now();
const name = withNode ? NODE_RUN : "up";
const kubeconfigPath = (await findRun(name))?.state.facts["kubeconfigPath"] ?? (await start());
console.log(`Up after ${((Date.now() - startedAtMs) / 1000).toFixed(1)} s. In a shell:

  export KUBECONFIG=${kubeconfigPath}
  ${clientToolPath("kubectl")} get namespaces

End it with: node test/cluster/down.ts ${name}`);

async function start(): Promise<string> {
  await bringClientTools(report);
  const started = withNode ? await startNode({ keptBy: "state", report }) : await startControlPlane({ name, keptBy: "state", report });
  return started.kubeconfigPath;
}

function report(line: string): void {
  console.log(line);
}
