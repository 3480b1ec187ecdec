// A namespace for one test file on the shared API server, and a service account in it with exactly the rights given.

import { randomBytes } from "node:crypto";
import { callApiAs, type ApiRequest } from "../cluster/api.ts";
import { writeServiceAccountKubeconfig } from "../cluster/control-plane.ts";
import { waitUntil } from "../cluster/processes.ts";

export type PolicyRule = {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
};

export type TestNamespace = {
  readonly name: string;
  /** One call as the administrator. */
  admin<Answer = unknown>(call: ApiRequest): Promise<Answer>;
  /** Creates a service account that may do this in this namespace (and nothing else), and returns its kubeconfig. */
  accountWith(name: string, rules: readonly PolicyRule[]): Promise<string>;
  /** Gives an account of this namespace rights on the whole cluster, until the namespace is deleted. */
  grantClusterWide(account: string, rules: readonly PolicyRule[]): Promise<void>;
  delete(): Promise<void>;
};

export async function createNamespace(kubeconfigPath: string, prefix: string): Promise<TestNamespace> {
  const name = `${prefix}-${randomBytes(4).toString("hex")}`;
  const admin = async <Answer = unknown>(call: ApiRequest): Promise<Answer> => await callApiAs<Answer>(kubeconfigPath, call);
  await admin({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name } } });
  const accountWith = async (account: string, rules: readonly PolicyRule[]): Promise<string> => {
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${name}`;
    await admin({ method: "POST", path: `/api/v1/namespaces/${name}/serviceaccounts`, body: { metadata: { name: account } } });
    await admin({ method: "POST", path: `${rbac}/roles`, body: { metadata: { name: account }, rules } });
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: account };
    const subjects = [{ kind: "ServiceAccount", namespace: name, name: account }];
    await admin({ method: "POST", path: `${rbac}/rolebindings`, body: { metadata: { name: account }, roleRef, subjects } });
    const path = await writeServiceAccountKubeconfig(kubeconfigPath, { namespace: name, name: account });
    await waitUntil({ what: "the role is in force", probe: async () => await mayDo(path, name, rules), timeoutMs: 30_000 });
    return path;
  };
  const granted: string[] = [];
  const grantClusterWide = async (account: string, rules: readonly PolicyRule[]): Promise<void> => {
    const grant = `${name}-${account}`;
    await admin({ method: "POST", path: `${clusterRbac}/clusterroles`, body: { metadata: { name: grant }, rules } });
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: grant };
    const subjects = [{ kind: "ServiceAccount", namespace: name, name: account }];
    await admin({ method: "POST", path: `${clusterRbac}/clusterrolebindings`, body: { metadata: { name: grant }, roleRef, subjects } });
    granted.push(`${clusterRbac}/clusterrolebindings/${grant}`, `${clusterRbac}/clusterroles/${grant}`);
  };
  const remove = async (): Promise<void> => {
    for (const path of [...granted, `/api/v1/namespaces/${name}`]) await admin({ method: "DELETE", path });
  };
  return { name, admin, accountWith, grantClusterWide, delete: remove };
}

const clusterRbac = "/apis/rbac.authorization.k8s.io/v1";

/** Asks the API server itself whether the last rule has arrived in its authorizer. */
async function mayDo(kubeconfigPath: string, namespace: string, rules: readonly PolicyRule[]): Promise<boolean> {
  const rule = rules.at(-1);
  const [resource = "", subresource] = (rule?.resources[0] ?? "").split("/");
  const resourceAttributes = { namespace, group: rule?.apiGroups[0], resource, subresource, verb: rule?.verbs[0], name: rule?.resourceNames?.[0] };
  const body = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: { resourceAttributes } };
  const review = await callApiAs<{ readonly status: { readonly allowed: boolean } }>(kubeconfigPath, {
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    body,
  });
  return review.status.allowed;
}
