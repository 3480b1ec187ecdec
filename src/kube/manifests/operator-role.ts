/**
 * Everything that the operator may do in Kubernetes, as data: the chart's roles are made from it, and the tests run the
 * operator with exactly these.
 *
 * The resource itself is patched for its finalizer alone. Its namespace is read to know one that is being deleted.
 * Secrets are read by name and never listed or watched. Nothing may be deleted: what belongs to a resource goes with it by
 * its owner reference.
 */
import { apiGroup, resourceNames } from "../../resource/names.ts";

/** As in a Role. */
export type PolicyRule = {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
};

/** In each namespace that is watched, or in all of them. */
export const operatorRules: readonly PolicyRule[] = [
  { apiGroups: [apiGroup], resources: [resourceNames.plural], verbs: ["get", "list", "watch", "patch"] },
  { apiGroups: [apiGroup], resources: [`${resourceNames.plural}/status`], verbs: ["update"] },
  { apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list", "watch", "create", "patch"] },
  { apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: ["get", "create", "patch"] },
  { apiGroups: [""], resources: ["serviceaccounts"], verbs: ["get", "create", "patch"] },
  { apiGroups: [""], resources: ["secrets"], verbs: ["get"] },
  { apiGroups: [""], resources: ["pods"], verbs: ["list"] },
  { apiGroups: [""], resources: ["namespaces"], verbs: ["get"] },
  { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] },
];

/** In the operator's own namespace. A right to create cannot be limited to a name. */
export function leaderElectionRules(leaseName: string): readonly PolicyRule[] {
  return [
    { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
    { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get", "update"], resourceNames: [leaseName] },
  ];
}

/** Cluster-wide, unless the operator is given the cluster's id: reads the uid that names it. */
export const clusterIdentityRules: readonly PolicyRule[] = [
  { apiGroups: [""], resources: ["namespaces"], verbs: ["get"], resourceNames: ["kube-system"] },
];
