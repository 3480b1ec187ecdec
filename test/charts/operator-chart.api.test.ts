/** The operator's chart as it renders, and what the API server says to it. Installing is tested in helm-life.api.test.ts. */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { readOperatorSettings } from "../../src/bin/operator-settings.ts";
import type { PolicyRule } from "../../src/kube/manifests/operator-role.ts";
import { clusterIdentityRules, leaderElectionRules, operatorRules } from "../../src/kube/manifests/operator-role.ts";
import { customResourceDefinition } from "../../src/resource/crd.ts";
import { bringClientTools, clientToolPath } from "../cluster/client-tools.ts";
import { runCommand } from "../cluster/commands.ts";
import { inventory, refusal, render, type Manifest, type Values } from "./helm.ts";

const kubeconfigPath = inject("kubeconfigPath");
const unique = randomBytes(4).toString("hex");
const namespace = `chart-${unique}`;
const [teamA, teamB] = [`chart-a-${unique}`, `chart-b-${unique}`];

type Row = { readonly name: string; readonly values: Values; readonly want: readonly string[]; readonly because: string };

const clusterName = `${namespace}:durable-timer-operator`;
const always = [
  "CustomResourceDefinition durabletimers.durabletimer.dev",
  `Deployment ${namespace}/durable-timer-operator`,
  `Role ${namespace}/durable-timer-operator-leader-election`,
  `RoleBinding ${namespace}/durable-timer-operator-leader-election`,
  `ServiceAccount ${namespace}/durable-timer-operator`,
];
const forPeople = [`ClusterRole ${clusterName}:edit`, `ClusterRole ${clusterName}:view`];
const identity = [`ClusterRole ${clusterName}:cluster-identity`, `ClusterRoleBinding ${clusterName}:cluster-identity`];
const clusterWide = [`ClusterRole ${clusterName}`, `ClusterRoleBinding ${clusterName}`];
const perNamespace = [teamA, teamB].flatMap((team) => [`Role ${team}/${clusterName}`, `RoleBinding ${team}/${clusterName}`]);

const rows: readonly Row[] = [
  {
    name: "the defaults",
    values: {},
    want: [...always, ...forPeople, ...identity, ...clusterWide],
    because: "without a list of namespaces the operator looks after all of them",
  },
  {
    name: "two namespaces",
    values: { watchNamespaces: [teamA, teamB] },
    want: [...always, ...forPeople, ...identity, ...perNamespace],
    because: "rights are given where they are used, and nowhere else",
  },
  {
    name: "two namespaces, for somebody who may create nothing on the whole cluster",
    values: { watchNamespaces: [teamA, teamB], clusterId: "eu-1", rbac: { aggregate: false }, crds: { enabled: false } },
    want: [...always.slice(1), ...perNamespace],
    because: "a tenant's administrator installs it too, once the definition is there",
  },
  {
    name: "several replicas",
    values: { replicas: 2 },
    want: [...always, ...forPeople, ...identity, ...clusterWide, `PodDisruptionBudget ${namespace}/durable-timer-operator`],
    because: "a node that is drained must leave one of them",
  },
  {
    name: "rights and account from elsewhere",
    values: { rbac: { create: false }, serviceAccount: { create: false, name: "ours" } },
    want: always.slice(0, 2),
    because: "some clusters keep rights in other hands",
  },
  {
    name: "everything that a pod may be given",
    values: {
      podLabels: { team: "payments", "app.kubernetes.io/name": "not-ours" },
      podAnnotations: { note: "kept" },
      imagePullSecrets: [{ name: "registry" }],
      priorityClassName: "system-cluster-critical",
      nodeSelector: { "kubernetes.io/os": "linux" },
      tolerations: [{ key: "dedicated", operator: "Exists" }],
      affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "topology.kubernetes.io/zone", whenUnsatisfiable: "ScheduleAnyway" }],
      extraEnv: [{ name: "NODE_OPTIONS", value: "--enable-source-maps" }],
      podSecurityContext: { fsGroup: 65_532 },
      serviceAccount: { annotations: { "example.com/role": "timers" } },
      image: { digest: `sha256:${"a".repeat(64)}` },
    },
    want: [...always, ...forPeople, ...identity, ...clusterWide],
    because: "the API server judges Kubernetes' own shapes",
  },
  {
    name: "a network policy and a dashboard",
    values: {
      networkPolicy: {
        enabled: true,
        metricsFrom: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } } }],
        egress: [{ ports: [{ port: 443, protocol: "TCP" }, { port: 4222, protocol: "TCP" }, { port: 53, protocol: "UDP" }] }],
      },
      dashboard: { enabled: true },
    },
    want: [...always, ...forPeople, ...identity, ...clusterWide, `ConfigMap ${namespace}/durable-timer-operator-dashboard`, `NetworkPolicy ${namespace}/durable-timer-operator`],
    because: "monitoring of the Prometheus operator's own kinds is shown in monitoring.api.test.ts",
  },
];

async function rendered(values: Values): Promise<readonly Manifest[]> {
  return await render({ chart: "durable-timer-operator", name: "durable-timer-operator", namespace, values });
}

async function kubectl(...args: readonly string[]): Promise<string> {
  return await runCommand(clientToolPath("kubectl"), args, { env: { KUBECONFIG: kubeconfigPath } });
}

/** Lets the API server judge the objects as it would for real; unknown fields and warnings are errors. Returns what would happen. */
async function dryRun(objects: readonly Manifest[]): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "dry-run-"));
  try {
    const path = join(dir, "objects.json");
    await writeFile(path, JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
    // Another file of tests may have brought the definition already.
    return await kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "--filename", path);
  } finally {
    await rm(dir, { recursive: true });
  }
}

type PodTemplate = { readonly metadata: object; readonly spec: { readonly containers: readonly { readonly image: string; readonly env: readonly { readonly name: string; readonly value?: string }[] }[] } };
type Selecting = { readonly selector: { readonly matchLabels: Readonly<Record<string, string>> }; readonly template: PodTemplate };

function deploymentOf(objects: readonly Manifest[]): Selecting {
  const deployment = objects.find(({ kind }) => kind === "Deployment");
  return deployment?.["spec"] as Selecting;
}

/** The variables of the operator's container as its program reads them, with the one by which Kubernetes lets every pod know that it is one. */
async function environmentOf(values: Values): Promise<Readonly<Record<string, string | undefined>>> {
  const [container] = deploymentOf(await rendered(values)).template.spec.containers;
  return { KUBERNETES_SERVICE_HOST: "10.0.0.1", ...Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value])) };
}

function rulesOf(objects: readonly Manifest[], name: string): readonly PolicyRule[] {
  return objects.filter(({ kind, metadata }) => /Role$/.test(kind) && metadata.name === name).flatMap((role) => role["rules"] as readonly PolicyRule[]);
}

beforeAll(async () => {
  await bringClientTools(() => undefined);
  for (const name of [namespace, teamA, teamB]) await kubectl("create", "namespace", name);
  await kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted");
});

afterAll(async () => {
  await kubectl("delete", "namespace", namespace, teamA, teamB, "--wait=false");
});

describe("what the operator's chart creates", () => {
  it.each(rows)("is as wanted and accepted by the API server: $name", async ({ values, want, because }) => {
    const objects = await rendered(values);
    expect(inventory(objects), because).toEqual([...want].sort());
    expect((await dryRun(objects)).trim().split("\n"), because).toHaveLength(want.length);
  });

  it("gives every object the standard labels, and selects by those that never change", async () => {
    const objects = await rendered({ replicas: 2 });
    const standard = ["app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"];
    const unlabelled = objects.filter(({ metadata }) => !standard.every((label) => label in (metadata.labels ?? {})));
    expect(inventory(unlabelled)).toEqual([]);
    const selector = { "app.kubernetes.io/name": "durable-timer-operator", "app.kubernetes.io/instance": "durable-timer-operator" };
    expect(deploymentOf(objects).selector.matchLabels).toEqual(selector);
    const budget = objects.find(({ kind }) => kind === "PodDisruptionBudget");
    expect((budget?.["spec"] as Selecting).selector.matchLabels).toEqual(selector);
  });

  it("is a pod that the restricted Pod Security Standard admits", async () => {
    const { template } = deploymentOf(await rendered({}));
    const pod: Manifest = { ...template, apiVersion: "v1", kind: "Pod", metadata: { ...template.metadata, name: "operator", namespace } };
    // The account exists once the chart is installed; the namespace's own may stand in for it here.
    const admitted = { ...pod, spec: { ...template.spec, serviceAccountName: "default" } };
    expect(await dryRun([admitted])).toContain("pod/operator serverside-applied");
    const privileged = { ...admitted, spec: { ...admitted.spec, securityContext: {} } };
    expect(await refusal(dryRun([privileged]))).toContain('violates PodSecurity "restricted:latest"');
  });

  it("holds the definition that the sources give", async () => {
    const definition = (await rendered({})).find(({ kind }) => kind === "CustomResourceDefinition");
    expect(definition?.["spec"]).toEqual(customResourceDefinition()["spec"]);
    expect(definition?.metadata.annotations).toEqual({ "helm.sh/resource-policy": "keep" });
    const deletable = (await rendered({ crds: { keep: false } })).find(({ kind }) => kind === "CustomResourceDefinition");
    expect(deletable?.metadata.annotations).toBeUndefined();
  });
});

describe("the operator's rights", () => {
  it("are those that the operator is tested with, on the whole cluster", async () => {
    const objects = await rendered({});
    expect(rulesOf(objects, clusterName)).toEqual(operatorRules);
    expect(rulesOf(objects, `${clusterName}:cluster-identity`)).toEqual(clusterIdentityRules);
    expect(rulesOf(objects, "durable-timer-operator-leader-election")).toEqual(leaderElectionRules("durable-timer-operator"));
  });

  it("are the same in each namespace that it watches", async () => {
    const objects = await rendered({ watchNamespaces: [teamA] });
    expect(rulesOf(objects.filter(({ kind }) => kind === "Role"), clusterName)).toEqual(operatorRules);
    expect(rulesOf(objects.filter(({ kind }) => kind === "ClusterRole"), clusterName)).toEqual([]);
  });

  it("let it neither list nor watch a Secret, nor delete anything", async () => {
    const all = (await rendered({})).filter(({ metadata: { labels } }) => !Object.keys(labels ?? {}).some((label) => label.includes("aggregate")));
    const rules = all.flatMap((object) => (object["rules"] ?? []) as readonly PolicyRule[]);
    expect(rules.filter(({ resources }) => resources.includes("secrets")).flatMap(({ verbs }) => verbs)).toEqual(["get"]);
    expect(rules.flatMap(({ verbs }) => verbs)).not.toContain("delete");
    expect(rules.flatMap(({ verbs, resources, apiGroups }) => [...verbs, ...resources, ...apiGroups])).not.toContain("*");
  });

  it("belong to the account that the pod runs as", async () => {
    const objects = await rendered({ serviceAccount: { name: "timers" }, watchNamespaces: [teamA] });
    const subjects = objects.filter(({ kind }) => kind.endsWith("Binding")).flatMap((binding) => binding["subjects"]);
    expect(new Set(subjects.map((subject) => JSON.stringify(subject)))).toEqual(new Set([JSON.stringify({ kind: "ServiceAccount", name: "timers", namespace })]));
    expect(deploymentOf(objects).template.spec).toMatchObject({ serviceAccountName: "timers" });
  });
});

describe("what the operator is told", () => {
  it("is read by it as it was meant, without anything else to be set", async () => {
    const environment = await environmentOf({});
    expect(readOperatorSettings(environment)).toMatchObject({
      ok: true,
      settings: { source: { kind: "inCluster" }, watchNamespaces: [], workerImage: "durable-timer:0.1.0", lease: { name: "durable-timer-operator" }, logLevel: "info" },
    });
    expect(readOperatorSettings(environment)).not.toHaveProperty("settings.clusterId");
  });

  it("follows the values", async () => {
    const read = readOperatorSettings(await environmentOf({ watchNamespaces: [teamB, teamA], clusterId: "eu-1", logLevel: "debug", fullnameOverride: "timers" }));
    expect(read).toMatchObject({ ok: true, settings: { watchNamespaces: [teamA, teamB], clusterId: "eu-1", logLevel: "debug", lease: { name: "timers" } } });
  });
});

describe("images", () => {
  it("are two values: another operator leaves the workers' image as it is", async () => {
    const values = { image: { repository: "registry.example/timers", tag: "9.9.9" } };
    expect(deploymentOf(await rendered(values)).template.spec.containers[0]?.image).toBe("registry.example/timers:9.9.9");
    expect(readOperatorSettings(await environmentOf(values))).toMatchObject({ settings: { workerImage: "durable-timer:0.1.0" } });
  });

  it("are named by digest where one is given", async () => {
    const digest = `sha256:${"b".repeat(64)}`;
    const values = { image: { digest }, workerImage: { tag: "ignored", digest } };
    expect(deploymentOf(await rendered(values)).template.spec.containers[0]?.image).toBe(`durable-timer@${digest}`);
    expect(readOperatorSettings(await environmentOf(values))).toMatchObject({ settings: { workerImage: `durable-timer@${digest}` } });
  });
});

describe("values that make no sense are refused by name", () => {
  const refused: readonly { readonly name: string; readonly values: Values; readonly field: string; readonly because: string }[] = [
    { name: "a misspelt field", values: { watchNamespace: ["a"] }, field: "watchNamespace", because: "it would mean the whole cluster" },
    { name: "a misspelt field further down", values: { crds: { kept: false } }, field: "/crds", because: "definitions would be kept against the author's wish" },
    { name: "a text for a number", values: { replicas: "two" }, field: "/replicas", because: "it would reach the API server as it is" },
    { name: "a name that no namespace has", values: { watchNamespaces: ["Team A"] }, field: "/watchNamespaces/0", because: "the role could not be created" },
    { name: "workers without a version", values: { workerImage: { tag: "" } }, field: "/workerImage", because: "they would run whatever is newest" },
    { name: "half a digest", values: { image: { digest: "sha256:ab" } }, field: "/image/digest", because: "nothing can be pulled by it" },
    { name: "a level that logs do not have", values: { logLevel: "verbose" }, field: "/logLevel", because: "the operator would not start" },
    { name: "a variable of the operator's own", values: { extraEnv: [{ name: "DURABLE_TIMER_WORKER_IMAGE" }] }, field: "/extraEnv/0/name", because: "two of one name contradict each other" },
  ];

  it.each(refused)("$name", async ({ values, field, because }) => {
    expect(await refusal(rendered(values)), because).toContain(field);
  });
});
