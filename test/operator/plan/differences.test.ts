import { describe, expect, it } from "vitest";
import { lookAgainMs } from "../../../src/base/limits.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import { check, gibibyte, settled, share, withBroker, withConsumer, withFacts, withSpec, withStream, withStreamConfig } from "./scenes.ts";
import type { Row } from "./scenes.ts";

describe("differences", () => {
  const repairing = ["Reconciling True Provisioning", "InSync False Drifted"];
  const creating = ["Ready False Provisioning", "TopologyReady False Provisioning", "Reconciling True Provisioning", "InSync False Provisioning"];
  const rows: readonly Row[] = [
    { name: "a raised limit is an update in place", scene: () => withSpec(settled(), { topology: { streams: { terminals: { maxBytes: "30Gi" } } } }), actions: ["Update stream DURABLE_TIMER_TERMINALS (max_bytes)"], turns: repairing, because: "the timers go on meanwhile, so that nothing flips" },
    { name: "a limit that somebody changed is put back", scene: () => withStreamConfig(settled(), "terminals", { max_bytes: 5 }), actions: ["Update stream DURABLE_TIMER_TERMINALS (max_bytes)"], turns: repairing, because: "drift is repaired" },
    { name: "an expiry that somebody set is taken back", scene: () => withStreamConfig(settled(), "state", { max_age: 1_000_000_000 }), actions: ["Update stream KV_DURABLE_TIMER_STATE (max_age)"], turns: repairing, because: "live data has no expiry (I10)" },
    { name: "a description that somebody set stays", scene: () => withStreamConfig(settled(), "state", { description: "ours", compression: "s2" }), actions: [], turns: [], because: "only our own fields are compared" },
    { name: "another storage is reported and not touched", scene: () => withStreamConfig(settled(), "terminals", { storage: "memory" }), actions: [], turns: ["Ready False ImmutableFieldChanged", "TopologyReady False ImmutableFieldChanged", "Stalled True ImmutableFieldChanged", "InSync False DriftIgnored"], because: "no server changes it in place, and nothing is deleted to change it" },
    { name: "another ack policy is reported and not touched", scene: () => withConsumer(settled(), "wake", (consumer) => ({ ...consumer, config: { ...consumer.config, ack_policy: "none" } })), actions: [], turns: ["Ready False ConsumerIncompatible", "TopologyReady False ConsumerIncompatible", "Stalled True ConsumerIncompatible", "InSync False DriftIgnored"], because: "no server changes it in place" },
    { name: "a missing consumer is made anew", scene: () => withConsumer(settled(), "wake", undefined), actions: ["Create consumer DURABLE_TIMER_WAKE_SERVICE on DURABLE_TIMER_SCHEDULES"], turns: creating, because: "acknowledged messages are already gone, so that it starts where the last one was" },
    { name: "a missing resume consumer starts open once it was open", scene: () => withConsumer(settled(), "resume", undefined), actions: ["Create consumer NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME on DURABLE_TIMER_RESUMES"], turns: [...creating.slice(0, 2), "ResumeOpen False WaitingForTopology", ...creating.slice(2)], because: "the gate was passed long ago" },
    { name: "a changed ack wait is an update in place", scene: () => withSpec(settled(), { resume: { ackWaitSeconds: 90 } }), actions: ["Update consumer NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME on DURABLE_TIMER_RESUMES (ack_wait)"], turns: repairing, because: "the spec says so" },
    { name: "a consumer limit that somebody changed is put back", scene: () => withConsumer(settled(), "start", (consumer) => ({ ...consumer, config: { ...consumer.config, max_ack_pending: 1 } })), actions: ["Update consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS (max_ack_pending)"], turns: repairing, because: "drift is repaired" },
    { name: "a SCHEDULES that is not asynchronous stays as it is", scene: () => withStreamConfig(settled(), "schedules", { persist_mode: "default", allow_atomic: true }), actions: [], turns: [], because: "it is only slower" },
    {
      name: "an asynchronous SCHEDULES waits for the others before it is made anew",
      scene: () => withFacts(withSpec(settled(), { topology: { replicas: 3 } }), { isClustered: true, serverCount: 3 }),
      actions: ["KV_DURABLE_TIMER_STATE", "DURABLE_TIMER_SNAPSHOTS", "DURABLE_TIMER_TERMINALS", "DURABLE_TIMER_RESUMES", "DURABLE_TIMER_FEEDBACK", "DURABLE_TIMER_COMMANDS"].map((name) => `Update stream ${name} (num_replicas)`),
      turns: ["Reconciling True Migrating", "InSync False Drifted"],
      requeueAfterMs: lookAgainMs,
      because: "a server that is missing shows on a stream that stays",
    },
    { name: "a smaller size that everything fits in is an update", scene: () => withStream(withSpec(settled(), { topology: { streams: { terminals: { maxBytes: "10Gi" } } } }), "terminals", share(40, 20 * gibibyte)), actions: ["Update stream DURABLE_TIMER_TERMINALS (max_bytes)"], turns: repairing, because: "it fits" },
    { name: "a smaller size that something might not fit in is refused", scene: () => withStream(withSpec(settled(), { topology: { streams: { terminals: { maxBytes: "10Gi" } } } }), "terminals", share(41, 20 * gibibyte)), actions: [], turns: ["Ready False SizeBelowUse", "TopologyReady False SizeBelowUse", "Stalled True SizeBelowUse", "InSync False DriftIgnored"], because: "a server evicts what does not fit, and something may be stored meanwhile" },
    { name: "a larger size of a full stream is an update", scene: () => withStream(withSpec(settled(), { topology: { streams: { terminals: { maxBytes: "30Gi" } } } }), "terminals", share(70, 20 * gibibyte)), actions: ["Update stream DURABLE_TIMER_TERMINALS (max_bytes)"], turns: repairing, because: "that is the remedy" },
    { name: "fewer replicas keep SCHEDULES as it is", scene: () => withSpec(settled({ topology: { replicas: 3 } }), { topology: { replicas: 1 } }), actions: ["KV_DURABLE_TIMER_STATE", "DURABLE_TIMER_SNAPSHOTS", "DURABLE_TIMER_TERMINALS", "DURABLE_TIMER_SCHEDULES", "DURABLE_TIMER_RESUMES", "DURABLE_TIMER_FEEDBACK", "DURABLE_TIMER_COMMANDS"].map((name) => `Update stream ${name} (num_replicas)`), turns: repairing, because: "a stream is never re-created to make it faster" },
    {
      name: "a placement and replicas change one after the other",
      scene: () => withStreamConfig(withSpec(settled({ topology: { replicas: 3 } }), { topology: { replicas: 5, placement: { cluster: "eu-1" } } }), "schedules", { num_replicas: 5, placement: { cluster: "eu-1" } }),
      actions: ["KV_DURABLE_TIMER_STATE", "DURABLE_TIMER_SNAPSHOTS", "DURABLE_TIMER_TERMINALS", "DURABLE_TIMER_RESUMES", "DURABLE_TIMER_FEEDBACK", "DURABLE_TIMER_COMMANDS"].flatMap((name) => [`Update stream ${name} (placement, num_replicas)`, `Update stream ${name} (placement, num_replicas)`]),
      turns: repairing,
      because: "servers refuse both in one (10123)",
    },
    { name: "a stream that does not answer holds everything", scene: () => withBroker(withSpec(settled(), { topology: { streams: { terminals: { maxBytes: "30Gi" } } } }), (broker) => ({ ...broker, streams: { ...broker.streams, state: { kind: "failed", failure: { kind: "transient", code: "BROKER_TIMEOUT", message: "look at KV_DURABLE_TIMER_STATE" } } } })), actions: [], turns: ["Reconciling True ProgressingWithRetry"], requeueAfterMs: lookAgainMs, because: "what does not answer may well be there" },
    { name: "a stream that may not be looked at is shown", scene: () => withBroker(settled(), (broker) => ({ ...broker, streams: { ...broker.streams, state: { kind: "failed", failure: { kind: "denied", code: "BROKER_PERMISSION", message: "look at KV_DURABLE_TIMER_STATE" } } } })), actions: [], turns: ["Ready False PermissionDenied", "BrokerCompatible False PermissionDenied", "TopologyReady Unknown WaitingForBroker", "Stalled True PermissionDenied", "InSync Unknown WaitingForBroker"], because: "it needs other rights, as a refused write does" },
  ];
  it.each(rows)("$name", check);

  it("sends a whole configuration with ours laid over it", () => {
    const scene = withStreamConfig(withSpec(settled(), { topology: { streams: { terminals: { maxBytes: "30Gi" } } } }), "terminals", { description: "kept" });
    const [action] = plan(scene).actions;
    const config = action?.kind === "UpdateStream" ? action.config : {};
    expect([config["description"], config["max_bytes"], config["compression"]]).toEqual(["kept", 30 * gibibyte, "none"]);
  });

  it("calls it a repair only when the spec did not change", () => {
    const drifted = plan(withStreamConfig(settled(), "terminals", { max_bytes: 5 })).actions;
    const asked = plan(withSpec(settled(), { topology: { streams: { terminals: { maxBytes: "30Gi" } } } })).actions;
    expect([...drifted, ...asked].map((action) => action.kind === "UpdateStream" && action.isRepair)).toEqual([true, false]);
  });
});
