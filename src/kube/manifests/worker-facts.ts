/** What the API server says about the workers of one DurableTimer, as facts for the plan. */
import type { V1Deployment, V1Pod } from "@kubernetes/client-node";
import type { WorkersFacts } from "../../operator/plan/observed.ts";
import { annotationNames } from "../../resource/names.ts";
import { podProblem } from "./pod-problem.ts";
import { workerContainerName } from "./worker-pod.ts";

export type WorkersSight = {
  readonly drift: readonly string[];
  readonly foreign: readonly string[];
  readonly leaving: readonly string[];
  /** Some object of ours exists. */
  readonly exists: boolean;
  /** Absent when there is none of ours. */
  readonly deployment?: V1Deployment;
  /** Looked at only while something is not ready. */
  readonly pods: readonly V1Pod[];
  /** Labels that the pods have. */
  readonly selector: Readonly<Record<string, string>>;
};

/** Facts of what was seen; zero and empty where there is nothing. */
export function workersFacts(sight: WorkersSight): WorkersFacts {
  const { drift, foreign, leaving, exists, deployment, selector } = sight;
  return {
    exists,
    drift,
    foreign,
    leaving,
    ...rollout(deployment),
    selector: selectorText(selector),
    image: workerContainer(deployment)?.image ?? "",
    templateHash: deployment?.metadata?.annotations?.[annotationNames.templateHash] ?? "",
    problem: creationProblem(deployment) ?? podProblem(sight.pods),
  };
}

function rollout(deployment: V1Deployment | undefined): Pick<WorkersFacts, "wantedReplicas" | "replicas" | "updatedReplicas" | "readyReplicas" | "isObserved" | "hasExceededDeadline"> {
  const { replicas = 0, updatedReplicas = 0, readyReplicas = 0, observedGeneration = 0 } = deployment?.status ?? {};
  return {
    wantedReplicas: wantedReplicas(deployment),
    replicas,
    updatedReplicas,
    readyReplicas,
    isObserved: deployment !== undefined && observedGeneration >= (deployment.metadata?.generation ?? 1),
    hasExceededDeadline: hasCondition(deployment, "Progressing", "ProgressDeadlineExceeded"),
  };
}

/** The API server's default is one. */
function wantedReplicas(deployment: V1Deployment | undefined): number {
  return deployment === undefined ? 0 : (deployment.spec?.replicas ?? 1);
}

/** A selector as text, as the scale subresource wants it. */
export function selectorText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels).map(([name, value]) => `${name}=${value}`).sort().join(",");
}

/** True while a pod may have something to say. */
export function hasUnreadyPods(deployment: V1Deployment): boolean {
  const wanted = deployment.spec?.replicas ?? 1;
  const { readyReplicas = 0, updatedReplicas = 0, replicas = 0 } = deployment.status ?? {};
  return readyReplicas < wanted || updatedReplicas < wanted || readyReplicas < replicas;
}

type DeploymentCondition = NonNullable<NonNullable<V1Deployment["status"]>["conditions"]>[number];

function conditionOf(deployment: V1Deployment | undefined, type: string): DeploymentCondition | undefined {
  return deployment?.status?.conditions?.find((condition) => condition.type === type);
}

function hasCondition(deployment: V1Deployment | undefined, type: string, reason: string): boolean {
  return conditionOf(deployment, type)?.reason === reason;
}

function workerContainer(deployment: V1Deployment | undefined): { readonly image?: string } | undefined {
  return deployment?.spec?.template.spec?.containers.find(({ name }) => name === workerContainerName);
}

/** Pods that are refused before they exist (quota, admission) are known to the Deployment only. Their random names are cut. */
function creationProblem(deployment: V1Deployment | undefined): string | undefined {
  const failure = conditionOf(deployment, "ReplicaFailure");
  if (failure?.status !== "True") return undefined;
  return `pods are refused: ${(failure.message ?? "").replace(/^pods "[^"]*" (is )?/, "")}`.slice(0, problemCharsMax);
}

const problemCharsMax = 1_024;
