/**
 * Global set-up of the vitest project "e2e": one node for the whole run.
 *
 * Tests reach it by `connectNode(inject("nodeKubeconfigPath"))`. When the environment variable
 * DURABLE_TIMER_TEST_NODE_KUBECONFIG names the kubeconfig of a node of this machine (from
 * `up.ts --node`), that one is used and left running; otherwise one is started and ended here.
 */
import type { TestProject } from "vitest/node";
import type { NodeBed } from "./node.ts";
import { startNode } from "./node.ts";

declare module "vitest" {
  // The only way to tell vitest's types what `inject` returns is to extend this interface.
  interface ProvidedContext {
    readonly nodeKubeconfigPath: string;
  }
}

let node: NodeBed | undefined;

/** Called by vitest before the first test file of the project. */
export async function setup(project: TestProject): Promise<void> {
  const given = process.env["DURABLE_TIMER_TEST_NODE_KUBECONFIG"];
  if (given !== undefined && given !== "") {
    project.provide("nodeKubeconfigPath", given);
    return;
  }
  node = await startNode({
    report: (line) => {
      console.log(line);
    },
  });
  project.provide("nodeKubeconfigPath", node.kubeconfigPath);
}

/** Called by vitest after the last test file, also when tests failed or were interrupted. */
export async function teardown(): Promise<void> {
  await node?.stop();
  node = undefined;
}
