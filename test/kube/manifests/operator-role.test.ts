import { expect, test } from "vitest";
import { clusterIdentityRules, leaderElectionRules, operatorRules } from "../../../src/kube/manifests/operator-role.ts";

const all = [...operatorRules, ...leaderElectionRules("lease"), ...clusterIdentityRules];

test("Secrets are read by name and never listed or watched", () => {
  expect(all.filter(({ resources }) => resources.includes("secrets")).flatMap(({ verbs }) => verbs)).toEqual(["get"]);
});

test("nothing may be deleted, and nothing is granted by a wildcard", () => {
  expect(all.flatMap(({ verbs }) => verbs)).not.toEqual(expect.arrayContaining([expect.stringMatching(/delete|\*/)]));
  expect(all.flatMap(({ apiGroups, resources }) => [...apiGroups, ...resources])).not.toContain("*");
});

test("the only Lease that may be written is the operator's own", () => {
  const rule = leaderElectionRules("lease").find(({ verbs }) => verbs.includes("update"));
  expect(rule?.resourceNames).toEqual(["lease"]);
});
