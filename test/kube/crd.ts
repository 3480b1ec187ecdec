// Brings the generated CRD to the shared API server, whoever comes first.

import { customResourceDefinition } from "../../src/resource/crd.ts";
import { apiVersion, crdName, kind, resourceNames } from "../../src/resource/names.ts";
import { ApiRefusal, callApiAs } from "../cluster/api.ts";
import { waitUntil } from "../cluster/processes.ts";

const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

export async function installCrd(kubeconfigPath: string): Promise<void> {
  const body = customResourceDefinition();
  try {
    await callApiAs(kubeconfigPath, { method: "POST", path: crdPath, body });
  } catch (error) {
    if (!(error instanceof ApiRefusal && error.reason === "AlreadyExists")) throw error;
    await callApiAs(kubeconfigPath, { method: "PATCH", path: `${crdPath}/${crdName}`, body: { spec: body["spec"] } });
  }
  await waitUntil({ what: "the CRD is served", probe: async () => await isServed(kubeconfigPath), timeoutMs: 30_000 });
}

export function timersPath(namespace: string): string {
  return `/apis/${apiVersion}/namespaces/${namespace}/${resourceNames.plural}`;
}

/** A DurableTimer as a person would apply it. */
export function timerManifest(name: string, spec: unknown): object {
  return { apiVersion, kind, metadata: { name }, spec };
}

async function isServed(kubeconfigPath: string): Promise<boolean> {
  try {
    await callApiAs(kubeconfigPath, { method: "GET", path: timersPath("default") });
    return true;
  } catch (error) {
    if (error instanceof ApiRefusal && error.status === 404) return false;
    throw error;
  }
}
