/**
 * Why pods are not ready, in words that stay the same while the reason does: no pod names, no counts, no times, and one
 * name for states that Kubernetes alternates between (ErrImagePull and ImagePullBackOff).
 */
import type { V1ContainerStatus, V1Pod } from "@kubernetes/client-node";

/** The gravest problem of these pods; empty when there is none to tell. */
export function podProblem(pods: readonly V1Pod[]): string {
  const problems = pods.filter((pod) => pod.metadata?.deletionTimestamp === undefined).flatMap(problemsOf);
  return problems.sort((a, b) => a.rank - b.rank || (a.text < b.text ? -1 : 1))[0]?.text ?? "";
}

/** A lower rank is more telling. */
type Problem = { readonly rank: number; readonly text: string };

function problemsOf(pod: V1Pod): readonly Problem[] {
  const containers = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  return [...containers.flatMap(containerProblems), ...schedulingProblems(pod)];
}

function containerProblems(container: V1ContainerStatus): readonly Problem[] {
  const reason = container.state?.waiting?.reason ?? "";
  const imageProblem = imageReasons[reason];
  if (imageProblem !== undefined) return [{ rank: 1, text: `${container.name}: ${imageProblem}: ${container.image}` }];
  // Of these only the first one's message stays the same: it names the Secret or the key that is missing.
  if (reason === "CreateContainerConfigError") return [{ rank: 2, text: `${container.name}: cannot be created: ${container.state?.waiting?.message ?? reason}` }];
  if (startReasons.includes(reason)) return [{ rank: 2, text: `${container.name}: cannot be started: ${reason}` }];
  return exitProblems(container);
}

/** A container that runs again still tells by its last end why it is not ready. */
function exitProblems(container: V1ContainerStatus): readonly Problem[] {
  if (container.ready) return [];
  const end = container.state?.terminated ?? container.lastState?.terminated;
  if (end === undefined) return [];
  if (end.reason === "OOMKilled") return [{ rank: 3, text: `${container.name}: ran out of memory` }];
  return end.exitCode === 0 ? [] : [{ rank: 4, text: `${container.name}: exits with code ${String(end.exitCode)}` }];
}

function schedulingProblems(pod: V1Pod): readonly Problem[] {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
  return scheduled?.status === "False" && scheduled.reason === "Unschedulable" ? [{ rank: 5, text: "no node can take a worker" }] : [];
}

const imageReasons: Readonly<Record<string, string>> = {
  ErrImagePull: "image cannot be pulled",
  ImagePullBackOff: "image cannot be pulled",
  ErrImageNeverPull: "image is not on the node",
  InvalidImageName: "image has no valid name",
};
const startReasons: readonly string[] = ["CreateContainerError", "RunContainerError"];
