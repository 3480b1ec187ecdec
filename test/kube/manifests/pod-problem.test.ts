import type { V1Pod } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { podProblem } from "../../../src/kube/manifests/pod-problem.ts";

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
