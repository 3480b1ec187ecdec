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
  readonly ownerReferences?: readonly OwnerReference[];
  readonly managedFields?: readonly ManagedFields[];
};

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

export type KubeObject = { readonly metadata: ObjectMeta };

export type ObjectList<T> = {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly T[];
};

/** A kind of object at the API server. */
export type ApiResource = { readonly group: string; readonly version: string; readonly plural: string };

/** Under this name the API server records what the operator applies. It may never change: fields would get a second owner. */
export const fieldManager = "durable-timer-operator";

export const durableTimers: ApiResource = { group: apiGroup, version: apiVersionName, plural: resourceNames.plural };
export const deployments: ApiResource = { group: "apps", version: "v1", plural: "deployments" };
export const podDisruptionBudgets: ApiResource = { group: "policy", version: "v1", plural: "poddisruptionbudgets" };
export const serviceAccounts: ApiResource = { group: "", version: "v1", plural: "serviceaccounts" };
export const secrets: ApiResource = { group: "", version: "v1", plural: "secrets" };
export const pods: ApiResource = { group: "", version: "v1", plural: "pods" };
export const namespaces: ApiResource = { group: "", version: "v1", plural: "namespaces" };
export const leases: ApiResource = { group: "coordination.k8s.io", version: "v1", plural: "leases" };
export const events: ApiResource = { group: "events.k8s.io", version: "v1", plural: "events" };

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
