import { expect, test } from "vitest";
import type { JsonObject } from "../../../src/kube/manifests/json.ts";
import { abandonedFields } from "../../../src/kube/manifests/owned-fields.ts";

const manager = "durable-timer-operator";

const wanted: JsonObject = {
  kind: "Deployment",
  metadata: { labels: { app: "x" } },
  spec: { replicas: 2, template: { spec: { containers: [{ name: "worker", image: "a:1", env: [{ name: "A", value: "1" }] }] } } },
};

function actual(managedFields: readonly unknown[]): JsonObject {
  return { metadata: { managedFields } };
}

const container = (fields: JsonObject): JsonObject => ({ "f:spec": { "f:template": { "f:spec": { "f:containers": { 'k:{"name":"worker"}': { ".": {}, ...fields } } } } } });

const rows: readonly { readonly name: string; readonly fieldsV1: JsonObject; readonly want: readonly string[] }[] = [
  { name: "only what is wanted", fieldsV1: { "f:metadata": { "f:labels": { "f:app": {} } }, "f:spec": { "f:replicas": {} } }, want: [] },
  { name: "a field that is no longer wanted", fieldsV1: { "f:spec": { "f:replicas": {}, "f:paused": {} } }, want: ["Deployment.spec.paused"] },
  { name: "a label that is no longer wanted", fieldsV1: { "f:metadata": { "f:labels": { "f:app": {}, "f:old": {} } } }, want: ["Deployment.metadata.labels.old"] },
  {
    name: "an item that is no longer wanted",
    fieldsV1: container({ "f:env": { 'k:{"name":"A"}': { ".": {}, "f:value": {} }, 'k:{"name":"OLD"}': { ".": {}, "f:value": {} } } }),
    want: ["Deployment.spec.template.spec.containers[worker].env[OLD]"],
  },
  { name: "a field of a wanted item", fieldsV1: container({ "f:image": {}, "f:tty": {} }), want: ["Deployment.spec.template.spec.containers[worker].tty"] },
];

test.each(rows)("applied was $name", ({ fieldsV1, want }) => {
  expect(abandonedFields(wanted, actual([{ manager, operation: "Apply", fieldsV1 }]), manager)).toEqual(want);
});

test("what others wrote, or we in another way, is none of our business", () => {
  const fieldsV1 = { "f:spec": { "f:paused": {} } };
  const managedFields = [
    { manager: "kubectl", operation: "Apply", fieldsV1 },
    { manager, operation: "Update", fieldsV1 },
    { manager, operation: "Apply", subresource: "status", fieldsV1 },
  ];
  expect(abandonedFields(wanted, actual(managedFields), manager)).toEqual([]);
  expect(abandonedFields(wanted, { metadata: {} }, manager)).toEqual([]);
});
