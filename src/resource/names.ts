/** Every name that this product has in Kubernetes. Names in NATS are in protocol/names.ts. */

export const apiGroup = "durabletimer.dev";
export const apiVersionName = "v1alpha1";
/** As in `apiVersion:` of a manifest. */
export const apiVersion = `${apiGroup}/${apiVersionName}` as const;
export const kind = "DurableTimer";

/** Names in the API, as in the CRD. */
export const resourceNames = {
  kind,
  listKind: `${kind}List`,
  plural: "durabletimers",
  singular: "durabletimer",
  shortNames: ["dtimer"],
  categories: ["durabletimers"],
} as const;

/** Name of the CRD itself. */
export const crdName = `${resourceNames.plural}.${apiGroup}` as const;

/** Labels on what the operator creates. */
export const labelNames = {
  /** Name of the DurableTimer; with the component it selects its workers' pods. */
  durableTimer: `${apiGroup}/name`,
  name: "app.kubernetes.io/name",
  instance: "app.kubernetes.io/instance",
  component: "app.kubernetes.io/component",
  managedBy: "app.kubernetes.io/managed-by",
} as const;

/** Values of those labels that are the same for every resource. */
export const labelValues = {
  name: "durable-timer",
  workerComponent: "worker",
  operatorComponent: "operator",
  managedBy: "durable-timer-operator",
} as const;

/** Annotations that people or the operator set. */
export const annotationNames = {
  /** "true": the operator looks and reports, and changes nothing. */
  paused: `${apiGroup}/paused`,
  /** Any new value asks for a pass now. */
  reconcileNow: `${apiGroup}/reconcile-now`,
  /** On the workers' objects: hash of what was rendered. */
  templateHash: `${apiGroup}/template-hash`,
} as const;

/** Holds a resource in deletion until its streams are deleted; set for the deletion policy Delete alone. */
export const streamsFinalizer = `${apiGroup}/streams`;

/** The environment variable in which a worker finds its configuration; see worker-config.ts. */
export const workerConfigVariable = "DURABLE_TIMER_WORKER_CONFIG";

/** The environment variable in which a starter of workers may give each a name of its own; a pod's is its host's. */
export const workerNameVariable = "DURABLE_TIMER_WORKER_NAME";

/** Variables with this prefix belong to the operator and may not be set in a pod template. */
export const reservedVariablePrefix = "DURABLE_TIMER_";

/** Where the Secrets of a worker are mounted. Folders, not single files, because only those follow a rotation. */
export const workerMountPaths = {
  auth: "/etc/durable-timer/nats-auth",
  ca: "/etc/durable-timer/nats-ca",
  clientCert: "/etc/durable-timer/nats-client-cert",
} as const;

/** Port of a worker's probes and metrics, and of the operator's. */
export const healthPort = 8080;

/** Names of the objects that the operator creates for a DurableTimer, in its namespace. */
export function childNames(name: string): ChildNames {
  const workers = `${name}-worker`;
  return { deployment: workers, serviceAccount: workers, podDisruptionBudget: workers };
}

/** Names by kind of object. */
export type ChildNames = { readonly deployment: string; readonly serviceAccount: string; readonly podDisruptionBudget: string };

/** Labels that select the workers' pods of one resource. They are constant: a selector can never be changed. */
export function workerSelector(name: string): Readonly<Record<string, string>> {
  return { [labelNames.component]: labelValues.workerComponent, [labelNames.durableTimer]: name };
}
