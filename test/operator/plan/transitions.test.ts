import { describe, expect, it } from "vitest";
import { plan } from "../../../src/operator/plan/plan.ts";
import { actionEvent, restoredEvents, transitionEvents } from "../../../src/operator/plan/transitions.ts";
import type { Condition, ConditionType } from "../../../src/resource/conditions.ts";
import type { DurableTimerStatus } from "../../../src/resource/durable-timer.ts";
import { empty, settled, withSpec, withStreamConfig, withWorkers } from "./scenes.ts";

type Short = readonly [type: ConditionType, status: Condition["status"], reason: string, message?: string];

function status(...conditions: readonly Short[]): DurableTimerStatus {
  return {
    observedGeneration: 1,
    conditions: conditions.map(([type, is, reason, message = ""]) => ({ type, status: is, reason, message, lastTransitionTime: "2026-11-30T20:00:00Z" })),
  };
}

describe("transitionEvents", () => {
  const rows: readonly { readonly name: string; readonly before: DurableTimerStatus; readonly after: DurableTimerStatus; readonly want: readonly string[]; readonly because: string }[] = [
    { name: "nothing turned", before: status(["Ready", "True", "Serving"]), after: status(["Ready", "True", "Serving"]), want: [], because: "a state that lasts makes no event" },
    { name: "only a message changed", before: status(["Ready", "False", "Provisioning", "a"]), after: status(["Ready", "False", "Provisioning", "b"]), want: [], because: "the same thing is still so" },
    { name: "the first look finds a gate waiting", before: status(["TopologyReady", "Unknown", "NotObserved"]), after: status(["TopologyReady", "False", "Provisioning"]), want: [], because: "it is the ordinary way up" },
    { name: "a resource becomes Ready", before: status(["Ready", "False", "Provisioning"]), after: status(["Ready", "True", "Serving"]), want: ["Normal Ready Serving"], because: "people wait for it" },
    { name: "a resource is no longer Ready", before: status(["Ready", "True", "Serving"]), after: status(["Ready", "False", "TopologyLost", "It went."]), want: ["Warning NotReady Ready: It went."], because: "people are woken by it" },
    { name: "Ready changes its reason while it is False", before: status(["Ready", "False", "Provisioning"]), after: status(["Ready", "False", "WorkersProgressing"]), want: [], because: "it repeats its gate" },
    { name: "the broker is lost", before: status(["BrokerReachable", "True", "Connected"]), after: status(["BrokerReachable", "False", "BrokerUnreachable", "connect."]), want: ["Warning BrokerLost BrokerReachable: connect."], because: "nothing can be done without it" },
    { name: "the broker is back", before: status(["BrokerReachable", "False", "BrokerUnreachable"]), after: status(["BrokerReachable", "True", "Connected"]), want: ["Normal BrokerRecovered Connected"], because: "the incident's end is part of its timeline" },
    { name: "the broker is found at the first look", before: status(["BrokerReachable", "Unknown", "NotObserved"]), after: status(["BrokerReachable", "True", "Connected"]), want: [], because: "it never was away" },
    { name: "the gates behind a lost broker are Unknown", before: status(["TopologyReady", "True", "Provisioned"]), after: status(["TopologyReady", "Unknown", "BrokerUnreachable"]), want: [], because: "not knowing is no news of its own" },
    { name: "workers become available", before: status(["WorkersReady", "False", "WorkersProgressing"]), after: status(["WorkersReady", "True", "WorkersAvailable"]), want: ["Normal WorkersAvailable WorkersAvailable"], because: "a gate opens" },
    { name: "workers fail", before: status(["WorkersReady", "False", "WorkersProgressing"]), after: status(["WorkersReady", "False", "WorkersFailing", "ImagePullBackOff"]), want: ["Warning WorkersFailing WorkersReady: ImagePullBackOff"], because: "the pod's own words save a search" },
    { name: "resumes open", before: status(["ResumeOpen", "False", "WaitingForWorkers"]), after: status(["ResumeOpen", "True", "Open"]), want: ["Normal ResumeOpened Open"], because: "the last gate opens" },
    { name: "resumes are paused", before: status(["ResumeOpen", "True", "Open"]), after: status(["ResumeOpen", "False", "ResumePaused", "By spec."]), want: ["Normal ResumePaused ResumeOpen: By spec."], because: "somebody wished it" },
    { name: "admission closes", before: status(["AdmissionOpen", "True", "Open"]), after: status(["AdmissionOpen", "False", "ClosedByCapacity", "Full."]), want: ["Warning AdmissionClosed AdmissionOpen: Full."], because: "new timers wait" },
    { name: "admission opens", before: status(["AdmissionOpen", "False", "ClosedByCapacity"]), after: status(["AdmissionOpen", "True", "Open"]), want: ["Normal AdmissionOpened Open"], because: "new timers are taken" },
    { name: "a stall", before: status(), after: status(["Stalled", "True", "TopologyLost", "It went."]), want: ["Warning Stalled It went."], because: "a person is needed" },
    { name: "the end of a stall", before: status(["Stalled", "True", "TopologyLost"]), after: status(), want: [], because: "what comes instead has its own event" },
    { name: "a pause", before: status(["Paused", "False", "NotPaused"]), after: status(["Paused", "True", "PausedByAnnotation", "Hands off."]), want: ["Normal Paused Hands off."], because: "somebody wished it" },
    { name: "the end of a pause", before: status(["Paused", "True", "PausedByAnnotation"]), after: status(["Paused", "False", "NotPaused"]), want: ["Normal Continued The pause was taken back."], because: "the operator acts again" },
    { name: "an unowned condition turns", before: status(["CapacityOK", "True", "BelowSoftLimit"]), after: status(["CapacityOK", "False", "AboveSoftLimit", "Full."]), want: ["Warning ConditionChanged CapacityOK: Full."], because: "every bad turn is told" },
    { name: "progress", before: status(), after: status(["Reconciling", "True", "Provisioning"], ["InSync", "False", "Drifted"]), want: [], because: "gates and repairs tell it already" },
    { name: "another owner", before: status(["TopologyReady", "True", "Provisioned"]), after: status(["TopologyReady", "False", "OwnedByAnother", "Theirs."]), want: ["Warning OwnedByAnother TopologyReady: Theirs."], because: "it has a reason of its own" },
  ];
  it.each(rows)("$name", ({ before, after, want, because }) => {
    expect(transitionEvents(before, after).map(({ severity, reason, message }) => `${severity} ${reason} ${message}`), because).toEqual(want);
  });

  it("tells of an incident when it is raised and when it is settled", () => {
    const incident = { id: "lost-state-1", kind: "TopologyLost", message: "It went." };
    const [without, open] = [status(), { ...status(), incidents: [incident] }];
    expect(transitionEvents(without, open)).toEqual([{ severity: "Warning", reason: "IncidentRaised", message: "It went." }]);
    expect(transitionEvents(open, open)).toEqual([]);
    expect(transitionEvents(open, without)).toEqual([{ severity: "Normal", reason: "IncidentAcknowledged", message: "Incident lost-state-1 is settled." }]);
  });
});

describe("restoredEvents", () => {
  it("names each stream", () => {
    expect(restoredEvents(["A", "B"]).map(({ message }) => message)).toEqual(["Stream A was restored from a backup.", "Stream B was restored from a backup."]);
  });
});

describe("actionEvent", () => {
  it("tells what was created", () => {
    const events = plan(empty()).actions.flatMap((action) => actionEvent(action) ?? []);
    expect(events.slice(0, 2)).toEqual([
      { severity: "Normal", reason: "StreamCreated", message: "Created stream KV_DURABLE_TIMER_STATE." },
      { severity: "Normal", reason: "StreamCreated", message: "Created stream DURABLE_TIMER_SNAPSHOTS." },
    ]);
    expect(events).toHaveLength(11);
  });

  it("tells a repair from a change that the spec asked for", () => {
    const drifted = plan(withStreamConfig(settled(), "terminals", { max_bytes: 5 })).actions;
    const asked = plan(withSpec(settled(), { resume: { ackWaitSeconds: 90 } })).actions;
    expect([...drifted, ...asked].map((action) => actionEvent(action)?.reason)).toEqual(["DriftRepaired", "ConsumerUpdated"]);
  });

  it("tells new workers from updated ones", () => {
    const scenes = [withWorkers(settled(), { exists: false }), withWorkers(settled(), { drift: ["image"] })];
    expect(scenes.flatMap((scene) => plan(scene).actions.map((action) => actionEvent(action)?.message))).toEqual(["Created the workers.", "Updated image of the workers."]);
  });
});
