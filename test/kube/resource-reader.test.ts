import { expect, test } from "vitest";
import { observedResource, type StoredTimer } from "../../src/kube/resource-reader.ts";
import { smallestSpec } from "../resource/examples.ts";

const metadata = { namespace: "payments", name: "orders", uid: "u", resourceVersion: "7", generation: 3, annotations: { a: "b" } };

function stored(more: object): StoredTimer {
  return { metadata, spec: smallestSpec, ...more };
}

test("a resource without a status", () => {
  expect(observedResource(stored({}))).toMatchObject({
    kind: "found",
    resource: {
      key: { namespace: "payments", name: "orders" },
      uid: "u",
      generation: 3,
      resourceVersion: "7",
      isDeletionRequested: false,
      finalizers: [],
      annotations: { a: "b" },
      spec: { workers: { replicas: 2 }, topology: { streams: { state: { maxBytes: 10 * 1024 ** 3 } } } },
    },
  });
});

test("a resource that is being deleted", () => {
  const read = observedResource(stored({ metadata: { ...metadata, deletionTimestamp: "2030-01-01T00:00:00Z" } }));
  expect(read).toMatchObject({ kind: "found", resource: { isDeletionRequested: true, deletionRequestedAtMs: Date.UTC(2030, 0, 1) } });
});

test("a spec of another release is invalid, with sorted problems and the status kept", () => {
  const read = observedResource(stored({ spec: { ...smallestSpec, topology: {} }, status: { observedGeneration: 2 } }));
  expect(read).toMatchObject({ kind: "invalid", resource: { status: { observedGeneration: 2 } }, problems: ["spec.topology.streams is required"] });
});

test("a status that cannot be read fails closed, since it guards data", () => {
  const read = observedResource(stored({ status: { observedGeneration: "two" } }));
  expect(read).toMatchObject({ kind: "failed", failure: { kind: "invalid", code: "RESOURCE_INVALID" } });
});
