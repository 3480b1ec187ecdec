/**
 * The pod template of a DurableTimer's workers.
 *
 * T1 Everything in it follows from the spec and from the image: nothing from the operator's version, from times or from what
 *    the cluster answered, so that an upgrade of the operator restarts no worker.
 * T2 It meets the restricted Pod Security Standard, and the workers have no access to the Kubernetes API.
 * T3 Additions of the resource's author never replace what the operator sets itself, but for the security context, the
 *    spread over nodes, and the service account.
 */
import type { V1Container, V1EnvVar, V1PodSpec, V1PodTemplateSpec, V1Probe, V1Volume, V1VolumeMount } from "@kubernetes/client-node";
import type { DurableTimerSpec } from "../../resource/durable-timer.ts";
import { healthPort, workerConfigVariable, workerMountPaths, workerSelector } from "../../resource/names.ts";
import { authKeys, connectionSecrets } from "../../resource/secrets.ts";
import { workerConfigOf, workerConfigText } from "../../resource/worker-config.ts";
import { isJsonObject, type JsonObject } from "./json.ts";

export type WorkerPodInput = {
  readonly name: string;
  readonly spec: DurableTimerSpec;
  readonly image: string;
  readonly serviceAccountName: string;
  /** Labels of everything that belongs to the resource. */
  readonly labels: Readonly<Record<string, string>>;
};

/** Renders the pod template. */
export function workerPodTemplate(input: WorkerPodInput): V1PodTemplateSpec {
  const { metadata } = additionsOf(input.spec);
  const annotations = { ...metadata?.annotations };
  return {
    metadata: {
      labels: { ...metadata?.labels, ...input.labels, ...workerSelector(input.name) },
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    spec: podSpec(input),
  };
}

/** Name of the container in the pod. */
export const workerContainerName = "worker";

type Additions = NonNullable<DurableTimerSpec["workers"]["podTemplate"]>;
type SpecAdditions = NonNullable<Additions["spec"]>;

function additionsOf(spec: DurableTimerSpec): Additions {
  return spec.workers.podTemplate ?? {};
}

function podSpec(input: WorkerPodInput): V1PodSpec {
  const additions = additionsOf(input.spec).spec ?? {};
  return {
    serviceAccountName: filled(additions.serviceAccountName) ?? input.serviceAccountName,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: input.spec.workers.terminationGracePeriodSeconds,
    securityContext: merged(podSecurityContext, additions.securityContext ?? {}),
    topologySpreadConstraints: spread(input.name, additions),
    containers: [container(input, additions)],
    volumes: withoutDoubles([...secretVolumes(input.spec), ...theirs<V1Volume>(additions.volumes)], "name"),
    ...placement(additions),
  };
}

/** Fields that are taken over as they are, when they say something. */
function placement(additions: SpecAdditions): Partial<V1PodSpec> {
  const names = ["imagePullSecrets", "priorityClassName", "nodeSelector", "tolerations", "affinity"] as const;
  const said = names.filter((name) => !isEmpty(additions[name]));
  return Object.fromEntries(said.map((name) => [name, additions[name]]));
}

function container(input: WorkerPodInput, additions: SpecAdditions): V1Container {
  const { workers } = input.spec;
  return {
    name: workerContainerName,
    image: input.image,
    imagePullPolicy: workers.imagePullPolicy,
    args: ["worker"],
    env: withoutDoubles([...ownVariables(input.spec), ...theirs<V1EnvVar>(additions.env)], "name"),
    ports: [{ name: healthPortName, containerPort: healthPort, protocol: "TCP" }],
    startupProbe: probe("/livez", { periodSeconds: 2, failureThreshold: 30 }),
    livenessProbe: probe("/livez", { periodSeconds: 10, failureThreshold: 6 }),
    readinessProbe: probe("/readyz", { periodSeconds: 5, failureThreshold: 3 }),
    resources: resourcesOf(workers.resources),
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
    volumeMounts: withoutDoubles([...secretMounts(input.spec), ...theirs<V1VolumeMount>(additions.volumeMounts)], "mountPath"),
  };
}

function ownVariables(spec: DurableTimerSpec): readonly V1EnvVar[] {
  return [{ name: workerConfigVariable, value: workerConfigText(workerConfigOf(spec, workerMountPaths)) }];
}

function probe(path: string, timing: { readonly periodSeconds: number; readonly failureThreshold: number }): V1Probe {
  return { httpGet: { path, port: healthPortName }, timeoutSeconds: 3, ...timing };
}

/** The API wants quantities as text; the resource may hold plain numbers. */
function resourcesOf(resources: DurableTimerSpec["workers"]["resources"]): NonNullable<V1Container["resources"]> {
  const texts = (list: Readonly<Record<string, string | number>>): Record<string, string> =>
    Object.fromEntries(Object.entries(list).map(([name, quantity]) => [name, String(quantity)]));
  return {
    ...(resources.requests === undefined ? {} : { requests: texts(resources.requests) }),
    ...(resources.limits === undefined ? {} : { limits: texts(resources.limits) }),
  };
}

type SecretMount = { readonly volume: string; readonly path: string; readonly secretName: string; readonly keys: readonly string[] };

/** One folder per Secret, with only the keys that are used. A folder follows a rotated Secret; a single file would not. */
function secretMountsOf(spec: DurableTimerSpec): readonly SecretMount[] {
  const { auth, ca, clientCert } = connectionSecrets(spec, "workers");
  const mounts: SecretMount[] = [];
  if (auth !== undefined) mounts.push({ volume: "durable-timer-nats-auth", path: workerMountPaths.auth, secretName: auth.secretName, keys: authKeys(auth) });
  if (ca !== undefined) mounts.push({ volume: "durable-timer-nats-ca", path: workerMountPaths.ca, secretName: ca.secretName, keys: [ca.key] });
  if (clientCert !== undefined) {
    const keys = [clientCert.certKey, clientCert.keyKey];
    mounts.push({ volume: "durable-timer-nats-client-cert", path: workerMountPaths.clientCert, secretName: clientCert.secretName, keys });
  }
  return mounts;
}

function secretVolumes(spec: DurableTimerSpec): readonly V1Volume[] {
  return secretMountsOf(spec).map(({ volume, secretName, keys }) => {
    const items = keys.map((key) => ({ key, path: key }));
    return { name: volume, projected: { defaultMode: secretMode, sources: [{ secret: { name: secretName, items } }] } };
  });
}

function secretMounts(spec: DurableTimerSpec): readonly V1VolumeMount[] {
  return secretMountsOf(spec).map(({ volume, path }) => ({ name: volume, mountPath: path, readOnly: true }));
}

function spread(name: string, additions: SpecAdditions): NonNullable<V1PodSpec["topologySpreadConstraints"]> {
  if (!isEmpty(additions.topologySpreadConstraints)) return theirs(additions.topologySpreadConstraints);
  const labelSelector = { matchLabels: { ...workerSelector(name) } };
  return ["kubernetes.io/hostname", "topology.kubernetes.io/zone"].map((topologyKey) => ({
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: "ScheduleAnyway",
    labelSelector,
  }));
}

/** What the author wrote in Kubernetes' own shapes. The API server judges it when it is applied. */
function theirs<T>(items: readonly unknown[] | undefined): T[] {
  return [...(items ?? [])] as T[];
}

/** Of items with the same `key` field the first one stays. */
function withoutDoubles<T extends object>(items: readonly T[], key: keyof T): T[] {
  return items.filter((item, index) => items.findIndex((other) => other[key] === item[key]) === index);
}

function merged(base: JsonObject, over: JsonObject): JsonObject {
  const entries = Object.entries(over).map(([name, value]): readonly [string, unknown] => {
    const below = base[name];
    return [name, isJsonObject(below) && isJsonObject(value) ? merged(below, value) : value];
  });
  return { ...base, ...Object.fromEntries(entries) };
}

function filled(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : text;
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return true;
  return Array.isArray(value) ? value.length === 0 : isJsonObject(value) && Object.keys(value).length === 0;
}

const healthPortName = "health";
/** Read for the owner and the group, which is the pod's fsGroup. */
const secretMode = 0o440;
/** The user that the image is made for. */
const userId = 65_532;
const podSecurityContext: JsonObject = {
  runAsNonRoot: true,
  runAsUser: userId,
  runAsGroup: userId,
  fsGroup: userId,
  fsGroupChangePolicy: "OnRootMismatch",
  seccompProfile: { type: "RuntimeDefault" },
};
