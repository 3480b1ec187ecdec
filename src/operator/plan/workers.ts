/**
 * Judges the workers (gate WorkersReady).
 *
 * 1. They are first created when the topology is proven. Later that gate holds nothing back: a corrected image or
 *    credential must roll although something else is broken, and losing the broker scales nothing down.
 * 2. A rollout or a scale-up does not close the gate while workers go on working; it is shown as progress.
 * 3. Objects of the same name that belong to somebody else are shown and never taken. Those that are about to go are waited for.
 * 4. Workers that could not start, because a Secret of theirs is missing, are not created; those that run go on.
 */
import { lookAgainMs, secretLookAgainMs } from "../../base/limits.ts";
import type { DurationMs } from "../../base/units.ts";
import type { WantedCondition } from "../../resource/conditions.ts";
import type { DurableTimerStatus } from "../../resource/durable-timer.ts";
import type { Action } from "./action.ts";
import { ownOwnerId } from "./claims.ts";
import { failureMessage, isPassing, shownFailure } from "./failures.ts";
import type { DesiredWorkers, Observed, WorkersFacts } from "./observed.ts";
import { carriedOver, cause, want, wasTrue } from "./verdict.ts";
import type { Cause, Verdict } from "./verdict.ts";

/** The part of the status that describes the workers. */
export type WorkersStatus = NonNullable<DurableTimerStatus["workers"]>;

/** The gate WorkersReady, and what the status shows of the workers. */
export type WorkersVerdict = Verdict & { readonly workers: WorkersStatus | undefined };

/** The workers that the resource wants. */
export function desiredWorkers(observed: Observed): DesiredWorkers {
  const { key, uid, spec } = observed.resource;
  return { key, uid, ownerId: ownOwnerId(observed), spec };
}

/** What the look at the topology means for the first creation: it is there, it may come, or it is not ours to use. */
export type TopologyStanding = "proven" | "unproven" | "foreign";

/** A verdict that is carried over stays what it was: what belonged to somebody else a moment ago still does. */
export function standingFrom(wanted: readonly WantedCondition[]): TopologyStanding {
  const gate = wanted.findLast(({ type }) => type === "TopologyReady");
  if (gate !== undefined && foreignReasons.has(gate.reason)) return "foreign";
  return gate?.status === "True" ? "proven" : "unproven";
}

const foreignReasons: ReadonlySet<string> = new Set(["OwnedByAnother", "AdoptionRefused", "BrokerChanged"]);

/** Judges the workers. */
export function judgeWorkers(observed: Observed, topology: TopologyStanding): WorkersVerdict {
  const { workers: looked } = observed;
  const had = observed.resource.status?.workers;
  if (looked.kind === "failed") return { ...unreadable(observed, looked.failure), workers: had };
  const facts = looked.kind === "found" && looked.value.exists ? looked.value : undefined;
  const foreign = looked.kind === "found" ? looked.value.foreign : [];
  if (foreign.length > 0) {
    const text = `${[...foreign].sort().join(", ")} exist and belong to somebody else; they were not touched.`;
    const stall = cause("WorkersForeign", `${text} Remove them, or rename this resource.`);
    return { wanted: [want("WorkersReady", "False", stall)], actions: [], stall, workers: had };
  }
  const leaving = looked.kind === "found" ? looked.value.leaving : [];
  if (leaving.length > 0) {
    const because = cause("WorkersProgressing", `Waiting until ${[...leaving].sort().join(", ")} of before are gone.`);
    return { wanted: [want("WorkersReady", "False", because)], actions: [], progress: because, requeueAfterMs: lookAgainMs, workers: had };
  }
  if (facts === undefined) return judgeMissing(observed, topology);
  return judgeExisting(observed, facts, topology);
}

function judgeMissing(observed: Observed, topology: TopologyStanding): WorkersVerdict {
  const had = observed.resource.status?.workers;
  const mayCreate = topology === "proven" || (topology === "unproven" && had?.everReady === true);
  if (!mayCreate) {
    return { wanted: [want("WorkersReady", "False", cause("WaitingForTopology"))], actions: [], workers: had };
  }
  const isWanted = observed.resource.spec.workers.replicas > 0;
  const missing = missingSecrets(observed);
  if (isWanted && missing !== undefined) {
    return { wanted: [want("WorkersReady", "False", missing)], actions: [], requeueAfterMs: secretLookAgainMs, workers: had };
  }
  const action: Action = { kind: "ApplyWorkers", desired: desiredWorkers(observed), changes: [], because: "there are none" };
  const because = isWanted ? cause("WorkersProgressing", "The workers are being created.") : scaledToZero;
  return { wanted: [want("WorkersReady", "False", because)], actions: [action], workers: had };
}

function judgeExisting(observed: Observed, facts: WorkersFacts, topology: TopologyStanding): WorkersVerdict {
  // Workers follow the servers of the spec: onto somebody else's streams they must not be sent.
  const actions: readonly Action[] =
    facts.drift.length === 0 || topology === "foreign"
      ? []
      : [{ kind: "ApplyWorkers", desired: desiredWorkers(observed), changes: facts.drift, because: "they differ from what the spec wants" }];
  const { gate, ...causes } = shownSecrets(judgeReadiness(observed, facts), missingSecrets(observed));
  return { wanted: [gate], actions, ...causes, workers: workersStatus(observed, facts, gate) };
}

/** What the workers' identity is made of and is not there; undefined when nothing is missing. */
function missingSecrets({ connection }: Observed): Cause | undefined {
  const problems = connection.kind === "resolved" ? (connection.workerProblems ?? []) : [];
  return problems.length === 0 ? undefined : cause("CredentialsMissing", `The workers cannot start: ${[...problems].sort().join("; ")}. Create what spec.workers.auth and spec.nats.tls name.`);
}

/** Running workers go on without a Secret that is gone; it is the reason why others do not start. */
function shownSecrets(readiness: Readiness, missing: Cause | undefined): Readiness {
  const { gate } = readiness;
  const isOther = missing === undefined || gate.reason === "ScaledToZero" || (gate.status === "True" && readiness.progress === undefined);
  if (isOther) return readiness;
  return { gate: gate.status === "True" ? gate : want("WorkersReady", "False", missing), progress: missing, requeueAfterMs: secretLookAgainMs };
}

type Readiness = { readonly gate: WantedCondition; readonly stall?: Cause; readonly progress?: Cause; readonly requeueAfterMs?: DurationMs };

function judgeReadiness({ resource }: Observed, facts: WorkersFacts): Readiness {
  const wanted = resource.spec.workers.replicas;
  if (wanted === 0) return { gate: want("WorkersReady", "False", scaledToZero) };
  const fault = faultOf(facts, wanted);
  const isServing = facts.readyReplicas >= wanted || (wasTrue(resource.status, "WorkersReady") && facts.readyReplicas > 0);
  if (fault === undefined) return { gate: available };
  return { gate: isServing ? available : want("WorkersReady", "False", fault.because), [fault.kind]: fault.because };
}

const available = want("WorkersReady", "True", cause("WorkersAvailable"));

type Fault = { readonly kind: "stall" | "progress"; readonly because: Cause };

/** What is not as it should be; undefined when every wanted worker is there, ready and of the current template. */
function faultOf(facts: WorkersFacts, wanted: number): Fault | undefined {
  if (facts.hasExceededDeadline) {
    const message = `The rollout of the workers makes no progress. ${facts.problem}`.trim();
    return { kind: "stall", because: cause("ProgressDeadlineExceeded", message) };
  }
  if (facts.problem !== "" && facts.readyReplicas < wanted) return { kind: "progress", because: cause("WorkersFailing", facts.problem) };
  const isComplete = facts.readyReplicas >= wanted && facts.updatedReplicas >= wanted && facts.replicas === wanted;
  if (isComplete && facts.isObserved && facts.drift.length === 0) return undefined;
  return { kind: "progress", because: cause("WorkersProgressing", "Workers are being started or replaced.") };
}

function workersStatus({ resource }: Observed, facts: WorkersFacts, gate: WantedCondition): WorkersStatus {
  const everReady = gate.status === "True" || resource.status?.workers?.everReady === true;
  return {
    everReady,
    replicas: facts.replicas,
    updatedReplicas: facts.updatedReplicas,
    readyReplicas: facts.readyReplicas,
    summary: `${String(facts.readyReplicas)}/${String(resource.spec.workers.replicas)}`,
    selector: facts.selector,
    image: facts.image,
    templateHash: facts.templateHash,
    problem: facts.problem,
  };
}

function unreadable({ resource }: Observed, failure: Parameters<typeof isPassing>[0]): Verdict {
  if (isPassing(failure)) {
    const progress = cause("ProgressingWithRetry", failureMessage(failure, ""));
    return { wanted: carriedOver(resource.status, ["WorkersReady"]), actions: [], progress, requeueAfterMs: lookAgainMs };
  }
  const { reason, remedy } = shownFailure(failure.code, "WorkersReady");
  const stall = cause(reason, failureMessage(failure, remedy));
  return { wanted: [want("WorkersReady", "False", stall)], actions: [], stall };
}

const scaledToZero = cause("ScaledToZero", "spec.workers.replicas is 0.");
