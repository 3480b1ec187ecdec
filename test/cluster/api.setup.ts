/**
 * Global set-up of the vitest project "api": one control plane for the whole run.
 *
 * Tests read the administrator's kubeconfig path by `inject("kubeconfigPath")`. When the
 * environment variable DURABLE_TIMER_TEST_KUBECONFIG names one (from `up.ts`, say), that control
 * plane is used and left running; otherwise one is started here, ended here, and the variable is
 * set for child processes of the tests. Files share it: use a namespace of your own per file.
 */
import type { TestProject } from "vitest/node";
import type { ControlPlane } from "./control-plane.ts";
import { startControlPlane } from "./control-plane.ts";
import { toolsMissing } from "./tools.ts";

declare module "vitest" {
  // The only way to tell vitest's types what `inject` returns is to extend this interface.
  interface ProvidedContext {
    readonly kubeconfigPath: string;
  }
}

let controlPlane: ControlPlane | undefined;

/** Called by vitest before the first test file of the project. */
export async function setup(project: TestProject): Promise<void> {
  const given = process.env[KUBECONFIG_VARIABLE];
  if (given !== undefined && given !== "") {
    project.provide("kubeconfigPath", given);
    return;
  }
  const missing = toolsMissing("api");
  if (missing.length > 0) {
    throw new Error(`The API server tier needs:\n${missing.map(({ tool, remedy }) => `  ${tool}: ${remedy}`).join("\n")}`);
  }
  controlPlane = await startControlPlane({
    report: (line) => {
      console.log(line);
    },
  });
  process.env[KUBECONFIG_VARIABLE] = controlPlane.kubeconfigPath;
  project.provide("kubeconfigPath", controlPlane.kubeconfigPath);
}

/** Called by vitest after the last test file, also when tests failed or were interrupted. */
export async function teardown(): Promise<void> {
  if (controlPlane === undefined) return;
  delete process.env[KUBECONFIG_VARIABLE];
  await controlPlane.stop();
  controlPlane = undefined;
}

const KUBECONFIG_VARIABLE = "DURABLE_TIMER_TEST_KUBECONFIG";
