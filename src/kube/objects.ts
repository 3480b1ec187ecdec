/** Kubernetes objects as this room handles them, and where the API server keeps them. */
import { apiGroup, apiVersionName, resourceNames } from "../resource/names.ts";

/** The metadata that is used. Objects are plain JSON, as the server sent them. */
export type ObjectMeta = {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly deletionTimestamp?: string;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
  readonly managedFields?: readonly ManagedFields[];
};

/** An object that another one belongs to, in the same namespace. */
export type OwnerReference = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
};

/** Which fields a manager has applied; see manifests/owned-fields.ts. */
export type ManagedFields = {
  readonly manager?: string;
  readonly operation?: string;
  readonly subresource?: string;
  readonly fieldsV1?: unknown;
};

/** Any object, reduced to what all of them have. */
export type KubeObject = { readonly metadata: ObjectMeta };

/** A page of a list; with `continue` there is another one. */
export type ObjectList<T> = {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly T[];
};

/** A kind of object at the API server. */
export type ApiResource = { readonly group: string; readonly version: string; readonly plural: string };

/** Under this name the API server records what the operator applies. It may never change: fields would get a second owner. */
export const fieldManager = "durable-timer-operator";

/** The kinds that the operator reads or writes. */
export const apiResources = {
  durableTimers: { group: apiGroup, version: apiVersionName, plural: resourceNames.plural },
  deployments: { group: "apps", version: "v1", plural: "deployments" },
  podDisruptionBudgets: { group: "policy", version: "v1", plural: "poddisruptionbudgets" },
  serviceAccounts: { group: "", version: "v1", plural: "serviceaccounts" },
  secrets: { group: "", version: "v1", plural: "secrets" },
  pods: { group: "", version: "v1", plural: "pods" },
  namespaces: { group: "", version: "v1", plural: "namespaces" },
  leases: { group: "coordination.k8s.io", version: "v1", plural: "leases" },
  events: { group: "events.k8s.io", version: "v1", plural: "events" },
} as const satisfies Readonly<Record<string, ApiResource>>;

/** Path of all objects of a kind, in one namespace or (without one) everywhere. */
export function collectionPath(resource: ApiResource, namespace?: string): string {
  const root = resource.group === "" ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const scope = namespace === undefined ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${root}${scope}/${resource.plural}`;
}

/** Path of one object. */
export function objectPath(resource: ApiResource, key: { readonly namespace?: string; readonly name: string }): string {
  return `${collectionPath(resource, key.namespace)}/${encodeURIComponent(key.name)}`;
}

/** The owner that controls an object, if one does. */
export function controllerOf(meta: Pick<ObjectMeta, "ownerReferences">): OwnerReference | undefined {
  return meta.ownerReferences?.find((reference) => reference.controller === true);
}
