import type { V1Deployment } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { hasUnreadyPods, selectorText, workersFacts } from "../../../src/kube/manifests/worker-facts.ts";
import { annotationNames } from "../../../src/resource/names.ts";

function deployment(status: V1Deployment["status"], generation = 3): V1Deployment {
  return {
    metadata: { name: "w", generation, annotations: { [annotationNames.templateHash]: "abc" } },
    spec: { replicas: 2, selector: {}, template: { spec: { containers: [{ name: "worker", image: "a:1" }] } } },
    ...(status === undefined ? {} : { status }),
  };
}

const sight = { drift: [], foreign: [], leaving: [], exists: true, pods: [], selector: { b: "2", a: "1" } };

test("a rollout that is complete", () => {
  const status = { observedGeneration: 3, replicas: 2, updatedReplicas: 2, readyReplicas: 2 };
  expect(workersFacts({ ...sight, deployment: deployment(status) })).toEqual({
    exists: true, drift: [], foreign: [], leaving: [],
    wantedReplicas: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2,
    isObserved: true, hasExceededDeadline: false,
    selector: "a=1,b=2", image: "a:1", templateHash: "abc", problem: "",
  });
});

test("a status of an earlier generation is not observed, and neither is none", () => {
  expect(workersFacts({ ...sight, deployment: deployment({ observedGeneration: 2 }) }).isObserved).toBe(false);
  expect(workersFacts({ ...sight, deployment: deployment(undefined) }).isObserved).toBe(false);
  expect(workersFacts({ ...sight, exists: false })).toMatchObject({ exists: false, isObserved: false, replicas: 0, image: "" });
});

test("a rollout that is stuck, and pods that are refused before they exist", () => {
  const conditions = [
    { type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded" },
    { type: "ReplicaFailure", status: "True", reason: "FailedCreate", message: 'pods "orders-worker-5d8f-x7k2p" is forbidden: exceeded quota' },
  ];
  const facts = workersFacts({ ...sight, deployment: deployment({ conditions }) });
  expect(facts.hasExceededDeadline).toBe(true);
  expect(facts.problem, "the random name of a pod would change the status for ever").toBe("pods are refused: forbidden: exceeded quota");
});

test("a pod that is not ready tells why, unless pods are refused before they exist", () => {
  const died = { name: "worker", image: "a:1", imageID: "", ready: false, restartCount: 1, state: { terminated: { exitCode: 1 } } };
  const pods = [{ status: { containerStatuses: [died] } }];
  expect(workersFacts({ ...sight, deployment: deployment({}), pods }).problem).toBe("worker: exits with code 1");
  const conditions = [{ type: "ReplicaFailure", status: "True", message: "no quota" }];
  expect(workersFacts({ ...sight, deployment: deployment({ conditions }), pods }).problem).toBe("pods are refused: no quota");
});

test("pods are looked at only while something is not ready", () => {
  expect(hasUnreadyPods(deployment({ replicas: 2, updatedReplicas: 2, readyReplicas: 2 }))).toBe(false);
  expect(hasUnreadyPods(deployment({ replicas: 3, updatedReplicas: 2, readyReplicas: 2 }))).toBe(true);
  expect(hasUnreadyPods(deployment({ replicas: 2, updatedReplicas: 1, readyReplicas: 2 }))).toBe(true);
  expect(hasUnreadyPods(deployment(undefined))).toBe(true);
});

test("a selector's text does not depend on the order of its labels", () => {
  expect(selectorText({ b: "2", a: "1" })).toBe(selectorText({ a: "1", b: "2" }));
});
