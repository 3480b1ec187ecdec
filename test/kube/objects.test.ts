import { expect, test } from "vitest";
import { apiResources, collectionPath, controllerOf, objectPath } from "../../src/kube/objects.ts";

const rows = [
  { path: collectionPath(apiResources.pods), want: "/api/v1/pods", because: "the core group has a root of its own" },
  { path: collectionPath(apiResources.deployments, "n"), want: "/apis/apps/v1/namespaces/n/deployments", because: "others are below their group" },
  { path: objectPath(apiResources.namespaces, { name: "kube-system" }), want: "/api/v1/namespaces/kube-system", because: "objects of the cluster have no namespace" },
  { path: objectPath(apiResources.durableTimers, { namespace: "n", name: "a/b" }), want: "/apis/durabletimer.dev/v1alpha1/namespaces/n/durabletimers/a%2Fb", because: "a name never becomes a path" },
];

test.each(rows)("$want", ({ path, want, because }) => {
  expect(path, because).toBe(want);
});

test("of several owners only one controls", () => {
  const owner = { apiVersion: "v1", kind: "K", name: "a", uid: "1" };
  expect(controllerOf({ ownerReferences: [owner, { ...owner, uid: "2", controller: true }] })?.uid).toBe("2");
  expect(controllerOf({ ownerReferences: [owner] })).toBeUndefined();
  expect(controllerOf({})).toBeUndefined();
});
