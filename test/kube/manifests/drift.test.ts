import { expect, test } from "vitest";
import { driftOf } from "../../../src/kube/manifests/drift.ts";
import type { JsonObject } from "../../../src/kube/manifests/json.ts";

const manager = "durable-timer-operator";

const wanted: JsonObject = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "w", labels: { app: "x" }, ownerReferences: [{ apiVersion: "g/v1", kind: "K", name: "n", uid: "u", controller: true }] },
  spec: {
    replicas: 2,
    template: {
      spec: {
        automountServiceAccountToken: false,
        tolerations: [{ key: "dedicated", operator: "Exists" }],
        containers: [
          {
            name: "worker",
            image: "a:1",
            args: ["worker"],
            env: [{ name: "A", value: "1" }, { name: "B", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
            resources: { requests: { cpu: "1000m", memory: "1024Mi" } },
            volumeMounts: [{ name: "v", mountPath: "/v", readOnly: true }],
          },
        ],
      },
    },
  },
};

/** What an API server makes of it: defaults, its own spelling of quantities, and no empty values. */
const stored: JsonObject = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "w", uid: "1", resourceVersion: "5", generation: 1, labels: { app: "x" }, ownerReferences: [{ apiVersion: "g/v1", kind: "K", name: "n", uid: "u", controller: true }] },
  spec: {
    replicas: 2,
    revisionHistoryLimit: 10,
    template: {
      metadata: {},
      spec: {
        automountServiceAccountToken: false,
        dnsPolicy: "ClusterFirst",
        tolerations: [{ key: "dedicated", operator: "Exists" }],
        containers: [
          {
            name: "worker",
            image: "a:1",
            args: ["worker"],
            env: [{ name: "A", value: "1" }, { name: "B", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } } }],
            resources: { requests: { cpu: "1", memory: "1Gi" } },
            volumeMounts: [{ name: "v", mountPath: "/v", readOnly: true }],
            terminationMessagePath: "/dev/termination-log",
          },
        ],
      },
    },
  },
  status: { replicas: 2 },
};

/** A copy of what is stored with one value replaced, or removed when it is undefined. */
function changed(path: readonly (string | number)[], value: unknown): JsonObject {
  const copy = structuredClone(stored);
  const last = path.at(-1) ?? "";
  const parent = path.slice(0, -1).reduce<unknown>((node, step) => (node as Record<string | number, unknown>)[step], copy) as Record<string | number, unknown>;
  if (value === undefined) Reflect.deleteProperty(parent, last);
  else parent[last] = value;
  return copy;
}

const podSpec = ["spec", "template", "spec"];
const container = [...podSpec, "containers", 0];
const variableA = { name: "A", value: "1" };
const variableB = { name: "B", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } } };

const rows: readonly { readonly name: string; readonly actual: JsonObject; readonly want: readonly string[]; readonly because: string }[] = [
  { name: "stored as wanted", actual: stored, want: [], because: "defaults and spelling are the server's" },
  { name: "scaled by hand", actual: changed(["spec", "replicas"], 5), want: ["Deployment.spec.replicas"], because: "the resource is the target of scaling" },
  { name: "another image", actual: changed([...container, "image"], "b:1"), want: ["Deployment.spec.template.spec.containers[worker].image"], because: "the template is ours" },
  { name: "lost labels", actual: changed(["metadata", "labels"], undefined), want: ["Deployment.metadata.labels"], because: "labels are ours" },
  { name: "a variable changed", actual: changed([...container, "env", 0, "value"], "2"), want: ["Deployment.spec.template.spec.containers[worker].env[A].value"], because: "items are found by their name" },
  { name: "variables in another order", actual: changed([...container, "env"], [variableB, variableA]), want: [], because: "the list is a map" },
  { name: "a variable of somebody else", actual: changed([...container, "env", 2], { name: "C", value: "3" }), want: [], because: "applying would not remove it" },
  { name: "a toleration more", actual: changed([...podSpec, "tolerations", 1], { key: "x" }), want: ["Deployment.spec.template.spec.tolerations"], because: "this list is replaced as a whole" },
  { name: "other arguments", actual: changed([...container, "args"], ["cli"]), want: ["Deployment.spec.template.spec.containers[worker].args"], because: "arguments are ours" },
  { name: "less memory", actual: changed([...container, "resources", "requests", "memory"], "1G"), want: ["Deployment.spec.template.spec.containers[worker].resources.requests.memory"], because: "1G is not 1Gi" },
  { name: "a token mounted", actual: changed([...podSpec, "automountServiceAccountToken"], true), want: ["Deployment.spec.template.spec.automountServiceAccountToken"], because: "false is a wish as well" },
  { name: "false left out by the server", actual: changed([...podSpec, "automountServiceAccountToken"], undefined), want: [], because: "an empty value may be left out" },
  { name: "another owner", actual: changed(["metadata", "ownerReferences", 0, "uid"], "u2"), want: ["Deployment.metadata.ownerReferences[u]"], because: "the owner's uid tells incarnations apart" },
];

test.each(rows)("$name", ({ actual, want, because }) => {
  expect(driftOf(wanted, actual, manager), because).toEqual(want);
});

test("an object that is not there differs as a whole", () => {
  expect(driftOf(wanted, undefined, manager)).toEqual(["Deployment"]);
});

test("what we applied once and no longer want is reported together with what differs", () => {
  const managedFields = [{ manager, operation: "Apply", fieldsV1: { "f:spec": { "f:replicas": {}, "f:paused": {} } } }];
  const spec = { ...(stored["spec"] as JsonObject), replicas: 9 };
  const actual = { ...stored, spec, metadata: { ...(stored["metadata"] as JsonObject), managedFields } };
  expect(driftOf(wanted, actual, manager)).toEqual(["Deployment.spec.paused", "Deployment.spec.replicas"]);
});
