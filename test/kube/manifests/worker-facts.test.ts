import type { V1Deployment, V1Pod } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { podProblem } from "../../../src/kube/manifests/pod-problem.ts";
import { hasUnreadyPods, selectorText, workersFacts } from "../../../src/kube/manifests/worker-facts.ts";
import { annotationNames } from "../../../src/resource/names.ts";

function deployment(status: V1Deployment["status"], generation = 3): V1Deployment {
  return {
    metadata: { name: "w", generation, annotations: { [annotationNames.templateHash]: "abc" } },
    spec: { replicas: 2, selector: {}, template: { spec: { containers: [{ name: "worker", image: "a:1" }] } } },
    ...(status === undefined ? {} : { status }),
  };
}

const sight = { drift: [], foreign: [], exists: true, pods: [], selector: { b: "2", a: "1" } };

test("a rollout that is complete", () => {
  const status = { observedGeneration: 3, replicas: 2, updatedReplicas: 2, readyReplicas: 2 };
  expect(workersFacts({ ...sight, deployment: deployment(status) })).toEqual({
    exists: true, drift: [], foreign: [],
    replicas: 2, updatedReplicas: 2, readyReplicas: 2,
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

test("pods are looked at only while something is not ready", () => {
  expect(hasUnreadyPods(deployment({ replicas: 2, updatedReplicas: 2, readyReplicas: 2 }))).toBe(false);
  expect(hasUnreadyPods(deployment({ replicas: 3, updatedReplicas: 2, readyReplicas: 2 }))).toBe(true);
  expect(hasUnreadyPods(deployment({ replicas: 2, updatedReplicas: 1, readyReplicas: 2 }))).toBe(true);
  expect(hasUnreadyPods(deployment(undefined))).toBe(true);
});

test("a selector's text does not depend on the order of its labels", () => {
  expect(selectorText({ b: "2", a: "1" })).toBe(selectorText({ a: "1", b: "2" }));
});

function pod(container: object, more: object = {}): V1Pod {
  return { metadata: { name: "p" }, status: { containerStatuses: [{ name: "worker", image: "a:1", imageID: "", ready: false, restartCount: 4, ...container }] }, ...more };
}

const waiting = (reason: string, message = "back-off 5m0s"): object => ({ state: { waiting: { reason, message } } });
const died = (exitCode: number, reason: string): object => ({ state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: { terminated: { exitCode, reason } } });
const unschedulable: V1Pod = { status: { conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes" }] } };

const rows: readonly { readonly name: string; readonly pods: readonly V1Pod[]; readonly want: string; readonly because: string }[] = [
  { name: "no pods", pods: [], want: "", because: "there is nothing to tell" },
  { name: "an image being refused", pods: [pod(waiting("ErrImagePull"))], want: "worker: image cannot be pulled: a:1", because: "the image is what to fix" },
  { name: "the same, backing off", pods: [pod(waiting("ImagePullBackOff"))], want: "worker: image cannot be pulled: a:1", because: "the two states alternate" },
  { name: "a missing Secret", pods: [pod(waiting("CreateContainerConfigError", 'secret "x" not found'))], want: 'worker: cannot be created: secret "x" not found', because: "the message names it" },
  { name: "a crash loop", pods: [pod(died(1, "Error"))], want: "worker: exits with code 1", because: "the code is stable, the message counts" },
  { name: "a killed container", pods: [pod(died(137, "OOMKilled"))], want: "worker: ran out of memory", because: "137 says less" },
  { name: "a container that runs again", pods: [pod({ state: { running: {} }, lastState: { terminated: { exitCode: 2 } } })], want: "worker: exits with code 2", because: "it is not ready yet" },
  { name: "a ready container that died once", pods: [pod({ ready: true, lastState: { terminated: { exitCode: 2 } } })], want: "", because: "that is over" },
  { name: "no room", pods: [unschedulable], want: "no node can take a worker", because: "the scheduler's message counts nodes" },
  { name: "the gravest of several", pods: [unschedulable, pod(died(1, "Error")), pod(waiting("InvalidImageName"))], want: "worker: image has no valid name: a:1", because: "one text, whatever the order" },
  { name: "a pod on its way out", pods: [{ ...pod(died(1, "Error")), metadata: { deletionTimestamp: new Date(0) } }], want: "", because: "it is going anyway" },
  { name: "a container that is being created", pods: [pod(waiting("ContainerCreating"))], want: "", because: "that is no problem yet" },
];

test.each(rows)("$name", ({ pods, want, because }) => {
  expect(podProblem(pods), because).toBe(want);
});
