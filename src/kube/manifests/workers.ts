/** The objects that run the workers of one DurableTimer: a ServiceAccount, a PodDisruptionBudget and a Deployment. */
import type { V1Deployment, V1ObjectMeta, V1PodDisruptionBudget, V1ServiceAccount } from "@kubernetes/client-node";
import { utf8, hex } from "../../base/bytes.ts";
import type { Sha256 } from "../../base/sha256.ts";
import type { DesiredWorkers } from "../../operator/plan/observed.ts";
import { annotationNames, apiVersion, childNames, kind, labelNames, labelValues, workerSelector } from "../../resource/names.ts";
import { stableJson } from "./json.ts";
import { workerPodTemplate } from "./worker-pod.ts";

/** Everything that is applied for one resource. */
export type WorkerObjects = {
  readonly serviceAccount: V1ServiceAccount;
  readonly podDisruptionBudget: V1PodDisruptionBudget;
  readonly deployment: V1Deployment;
};

export type RenderOptions = {
  /** The image of resources that name none. */
  readonly defaultImage: string;
  readonly sha256: Sha256;
};

/** Renders the objects. The same input gives the same bytes. */
export function renderWorkers(desired: DesiredWorkers, options: RenderOptions): WorkerObjects {
  const names = childNames(desired.key.name);
  const metadata = (name: string): V1ObjectMeta => childMetadata(desired, name);
  return {
    serviceAccount: { apiVersion: "v1", kind: "ServiceAccount", metadata: metadata(names.serviceAccount), automountServiceAccountToken: false },
    podDisruptionBudget: {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: metadata(names.podDisruptionBudget),
      spec: {
        maxUnavailable: 1,
        selector: { matchLabels: { ...workerSelector(desired.key.name) } },
        // A worker that is not ready helps nobody: it must not keep its node from being drained.
        unhealthyPodEvictionPolicy: "AlwaysAllow",
      },
    },
    deployment: renderDeployment(desired, options, metadata(names.deployment)),
  };
}

/** The image that the workers of this resource run. */
export function workerImageOf(desired: DesiredWorkers, defaultImage: string): string {
  const { image } = desired.spec.workers;
  return image === undefined || image === "" ? defaultImage : image;
}

function renderDeployment(desired: DesiredWorkers, options: RenderOptions, metadata: V1ObjectMeta): V1Deployment {
  const { key, spec } = desired;
  const template = workerPodTemplate({
    name: key.name,
    spec,
    image: workerImageOf(desired, options.defaultImage),
    serviceAccountName: childNames(key.name).serviceAccount,
    labels: labelsOf(key.name),
  });
  // For people and for status: what decides about an update is the comparison of fields, in drift.ts.
  const templateHash = hex(options.sha256(utf8(stableJson(template)))).slice(0, hashCharsMax);
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { ...metadata, annotations: { [annotationNames.templateHash]: templateHash } },
    spec: {
      replicas: spec.workers.replicas,
      selector: { matchLabels: { ...workerSelector(key.name) } },
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      minReadySeconds: spec.workers.minReadySeconds,
      progressDeadlineSeconds: spec.workers.progressDeadlineSeconds,
      template,
    },
  };
}

function childMetadata(desired: DesiredWorkers, name: string): V1ObjectMeta {
  return {
    name,
    namespace: desired.key.namespace,
    labels: labelsOf(desired.key.name),
    // Without blockOwnerDeletion, which would ask for one more right and change nothing.
    ownerReferences: [{ apiVersion, kind, name: desired.key.name, uid: desired.uid, controller: true }],
  };
}

function labelsOf(name: string): Record<string, string> {
  return {
    [labelNames.name]: labelValues.name,
    [labelNames.instance]: name,
    [labelNames.component]: labelValues.workerComponent,
    [labelNames.managedBy]: labelValues.managedBy,
    [labelNames.durableTimer]: name,
  };
}

const hashCharsMax = 12;
