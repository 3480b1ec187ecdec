// A namespace with the CRD and an operator's cluster port in it, which has exactly the rights that the chart gives.

import { inject } from "vitest";
import { kubeApi, type KubeApi } from "../../src/kube/api.ts";
import { KubeCluster } from "../../src/kube/cluster.ts";
import { KubeConnection } from "../../src/kube/connection.ts";
import { operatorRules } from "../../src/kube/manifests/operator-role.ts";
import type { DesiredWorkers, ObservedResource } from "../../src/operator/plan/observed.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { FakeLog } from "../fakes/log.ts";
import { patched, type Patch } from "../resource/examples.ts";
import { installCrd, timerManifest, timersPath } from "./crd.ts";
import { createNamespace, type TestNamespace } from "./namespace.ts";

/** Any stored object, as far as these tests look at it. */
export type Stored = {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string; readonly generation: number; readonly ownerReferences?: readonly object[] };
  readonly spec?: Readonly<Record<string, unknown>>;
};

export type ClusterBed = {
  readonly namespace: TestNamespace;
  readonly api: KubeApi;
  readonly cluster: KubeCluster;
  readonly log: FakeLog;
  /** Reads any object as the administrator. */
  get(path: string): Promise<Stored>;
  /** Creates a resource as a person would, and reads it as the operator. */
  createTimer(name: string, patch?: Patch): Promise<ObservedResource>;
  observed(name: string): Promise<ObservedResource>;
  close(): Promise<void>;
};

export async function openClusterBed(prefix: string): Promise<ClusterBed> {
  const adminPath = inject("kubeconfigPath");
  await installCrd(adminPath);
  const namespace = await createNamespace(adminPath, prefix);
  const connection = new KubeConnection({ kind: "file", path: await namespace.accountWith("operator", operatorRules) });
  const [api, log] = [kubeApi(connection), new FakeLog()];
  const cluster = new KubeCluster({
    api, log,
    clock: systemClock, random: systemRandom, sha256: systemSha256,
    clusterId: "c1", namespaces: [namespace.name], defaultImage: "registry.example/durable-timer:1", instance: "operator-0",
    confirmLead: async () => ({ kind: "done" }),
  });
  const observed = async (name: string): Promise<ObservedResource> => {
    const read = await cluster.readResource({ namespace: namespace.name, name });
    if (read.kind !== "found") throw new Error(`expected to find ${name}: ${JSON.stringify(read)}`);
    return read.resource;
  };
  return {
    namespace, api, cluster, log, observed,
    get: async (path) => await namespace.admin<Stored>({ method: "GET", path }),
    createTimer: async (name, patch = {}) => {
      await namespace.admin({ method: "POST", path: timersPath(namespace.name), body: timerManifest(name, patched(patch)) });
      return await observed(name);
    },
    close: async () => {
      await connection.close();
      await namespace.delete();
    },
  };
}

/** What a plan asks of the cluster port for a resource. */
export function desired({ key, uid, spec }: ObservedResource): DesiredWorkers {
  return { key, uid, spec, ownerId: `c1/${key.namespace}/${key.name}` };
}
