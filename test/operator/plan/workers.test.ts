import { describe, expect, it } from "vitest";
import type { Observed } from "../../../src/operator/plan/observed.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import { actionTexts, check, empty, readyWorkers, settled, stamp, turned, withConsumer, withData, withFacts, withMetadata, withSpec, withStatus, withStream, withWorkers } from "./scenes.ts";
import type { Row } from "./scenes.ts";

describe("workers", () => {
  const progressing = ["Reconciling True WorkersProgressing"];
  const notReady = (reason: string): readonly string[] => [`Ready False ${reason}`, `WorkersReady False ${reason}`];
  const fresh = (): Observed => withStatus(settled(), (status) => ({ ...status, observedGeneration: 3, conditions: (status?.conditions ?? []).map((condition) => (condition.type === "WorkersReady" ? { ...condition, status: "False" as const, reason: "WorkersProgressing" } : condition)) }));
  const rows: readonly Row[] = [
    { name: "a template that differs rolls, and nothing flips", scene: () => withWorkers(settled(), { drift: ["spec.template.spec.containers[0].image"] }), actions: ["Update the workers (spec.template.spec.containers[0].image)"], turns: [...progressing, "InSync False Drifted"], because: "a rollout replaces workers one by one" },
    { name: "a rollout under way is progress", scene: () => withWorkers(settled(), { updatedReplicas: 1, replicas: 3 }), actions: [], turns: progressing, because: "old and new workers both work" },
    { name: "a change that their controller has not seen is progress", scene: () => withWorkers(settled(), { isObserved: false }), actions: [], turns: progressing, because: "its numbers speak of the template before" },
    { name: "one missing worker of two is progress", scene: () => withWorkers(settled(), { readyReplicas: 1 }), actions: [], turns: progressing, because: "timers go on with the other one" },
    { name: "no ready worker is not ready", scene: () => withWorkers(settled(), { readyReplicas: 0 }), actions: [], turns: [...notReady("WorkersProgressing"), ...progressing], because: "no timer goes on" },
    { name: "the first start waits for every worker", scene: () => withWorkers(fresh(), { readyReplicas: 1 }), actions: [], turns: ["Ready False WorkersProgressing", ...progressing], because: "it was never ready" },
    { name: "failing workers say why", scene: () => withWorkers(settled(), { readyReplicas: 0, problem: "ImagePullBackOff: worker:1" }), actions: [], turns: [...notReady("WorkersFailing"), "Reconciling True WorkersFailing"], because: "the pod's own words save a search" },
    { name: "a failing rollout beside working workers is progress", scene: () => withWorkers(settled(), { updatedReplicas: 1, readyReplicas: 1, problem: "ImagePullBackOff: worker:2" }), actions: [], turns: ["Reconciling True WorkersFailing"], because: "the old ones still work" },
    { name: "a rollout past its deadline is stalled", scene: () => withWorkers(settled(), { updatedReplicas: 1, replicas: 3, hasExceededDeadline: true, problem: "CrashLoopBackOff" }), actions: [], turns: ["Stalled True ProgressDeadlineExceeded"], because: "a person must look, although the old workers work" },
    { name: "a first rollout past its deadline is not ready either", scene: () => withWorkers(fresh(), { readyReplicas: 0, hasExceededDeadline: true }), actions: [], turns: ["Ready False ProgressDeadlineExceeded", "WorkersReady False ProgressDeadlineExceeded", "Stalled True ProgressDeadlineExceeded"], because: "nothing works" },
    { name: "scaled to zero is not ready and not stalled", scene: () => withWorkers(withSpec(settled(), { workers: { replicas: 0 } }), readyWorkers(0)), actions: [], turns: notReady("ScaledToZero"), because: "it is what the spec says" },
    { name: "scaling up flips nothing", scene: () => withWorkers(withSpec(settled(), { workers: { replicas: 5 } }), { drift: ["spec.replicas"] }), actions: ["Update the workers (spec.replicas)"], turns: [...progressing, "InSync False Drifted"], because: "the workers that are there go on" },
    { name: "foreign objects are refused", scene: () => withWorkers(settled(), { foreign: ["Deployment orders-worker"] }), actions: [], turns: [...notReady("WorkersForeign"), "Stalled True WorkersForeign"], because: "a name is no claim" },
    { name: "deleted workers come back although the topology is broken", scene: () => withWorkers(withStream(withData(settled()), "commands", undefined), { exists: false }), actions: ["Create the workers"], turns: ["Ready False TopologyLost", "TopologyReady False TopologyLost", "WorkersReady False WorkersProgressing", "Stalled True TopologyLost", "AdmissionOpen Unknown NotObserved", "CapacityOK Unknown NotObserved", "InSync Unknown NotObserved"], because: "the gate holds the first creation only" },
    { name: "deleted workers do not come back over somebody else's streams", scene: () => withWorkers(withMetadata(settled(), "state", stamp("c2/a/b")), { exists: false }), actions: [], turns: ["Ready False OwnedByAnother", "TopologyReady False OwnedByAnother", "WorkersReady False WaitingForTopology", "ResumeOpen False WaitingForTopology", "Stalled True OwnedByAnother", "AdmissionOpen Unknown NotObserved", "ReplicasHealthy Unknown NotObserved", "CapacityOK Unknown NotObserved", "InSync Unknown NotObserved"], because: "they would take another owner's timers" },
    { name: "workers are not sent into a wrong account", scene: () => withWorkers(withFacts(settled({ nats: { accountName: "PAYMENTS" } }), { accountName: "OTHER" }), { drift: ["servers"] }), actions: [], turns: ["Ready False WrongAccount", "BrokerCompatible False WrongAccount", "TopologyReady Unknown WaitingForBroker", "ResumeOpen Unknown WaitingForBroker", "Stalled True WrongAccount", "AdmissionOpen Unknown WaitingForBroker", "ReplicasHealthy Unknown WaitingForBroker", "CapacityOK Unknown WaitingForBroker", "InSync Unknown WaitingForBroker"], because: "they follow the servers that the spec names" },
    { name: "a cluster that does not answer keeps the last word", scene: () => ({ ...settled(), workers: { kind: "failed", failure: { kind: "transient", code: "CLUSTER_UNREACHABLE", message: "read the workers" } } }), actions: [], turns: ["Reconciling True ProgressingWithRetry"], because: "nothing is known to be wrong" },
    { name: "a cluster that forbids to look is shown", scene: () => ({ ...settled(), workers: { kind: "failed", failure: { kind: "denied", code: "CLUSTER_DENIED", message: "read the workers" } } }), actions: [], turns: [...notReady("WorkersRefused"), "Stalled True WorkersRefused"], because: "the operator's role lacks a right" },
    { name: "workers that were never ready wait for the topology", scene: () => withWorkers(withConsumer(empty(), "resume", undefined), {}), actions: actionTexts(plan(empty())), turns: turned(empty(), plan(empty())), because: "they would find nothing to work on" },
  ];
  it.each(rows)("$name", check);

  it("are remembered to have been ready", () => {
    const down = withWorkers(settled(), { readyReplicas: 0 });
    expect(plan(down).status.workers).toMatchObject({ everReady: true, readyReplicas: 0, summary: "0/2" });
  });
});
