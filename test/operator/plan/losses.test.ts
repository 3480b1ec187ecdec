import { describe, expect, it } from "vitest";
import { explainPlan } from "../../../src/operator/plan/explain.ts";
import type { Observed, StreamFacts } from "../../../src/operator/plan/observed.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import { stampKeys } from "../../../src/topology/stamp.ts";
import { absent, check, conditionTexts, empty, ownerText, provisionedBroker, settled, spec, stamp, turned, withBroker, withData, withMetadata, withStatus, withStream, withWorkers } from "./scenes.ts";
import type { Row } from "./scenes.ts";

describe("losses", () => {
  const filled = (messages: number) => (stream: StreamFacts): StreamFacts => ({ ...stream, messages, lastSequence: 9, firstSequence: 10 - messages });
  const incident = ["Ready False TopologyLost", "TopologyReady False TopologyLost"];
  const around = ["Stalled True TopologyLost", "AdmissionOpen Unknown NotObserved", "CapacityOK Unknown NotObserved", "InSync Unknown NotObserved"];
  const idOf = (observed: Observed): string => plan(observed).status.incidents?.[0]?.id ?? "none";
  const acknowledged = (observed: Observed): Observed => ({ ...observed, resource: { ...observed.resource, spec: spec({ acknowledge: [idOf(observed)] }) } });
  const without = (role: "state" | "commands" | "feedback" | "snapshots" | "terminals" | "resumes" | "schedules"): Observed => withStream(withData(settled()), role, undefined);
  const timeout = { kind: "failed", failure: { kind: "transient", code: "BROKER_TIMEOUT", message: "read a record" } } as const;
  const rows: readonly Row[] = [
    { name: "a lost STATE is an incident", scene: () => without("state"), actions: [], turns: [...incident, ...around], because: "every live timer was in it" },
    { name: "a lost SNAPSHOTS is an incident", scene: () => without("snapshots"), actions: [], turns: [...incident, ...around], because: "waiting timers have nothing to resume with" },
    { name: "a lost TERMINALS is an incident", scene: () => without("terminals"), actions: [], turns: [...incident, ...around], because: "ended timers could be revived" },
    { name: "a lost COMMANDS is an incident", scene: () => without("commands"), actions: [], turns: [...incident, ...around], because: "acknowledged starts were in it" },
    { name: "a lost FEEDBACK is an incident", scene: () => without("feedback"), actions: [], turns: [...incident, ...around], because: "acknowledged feedback was in it" },
    { name: "a lost RESUMES is an incident", scene: () => without("resumes"), actions: [], turns: [...incident, "ResumeOpen False WaitingForTopology", ...around], because: "owed resumes were in it" },
    {
      name: "a lost SCHEDULES is made anew",
      scene: () => without("schedules"),
      actions: ["Create stream DURABLE_TIMER_SCHEDULES", "Create consumer DURABLE_TIMER_WAKE_SERVICE on DURABLE_TIMER_SCHEDULES"],
      turns: ["Ready False Provisioning", "TopologyReady False Provisioning", "Reconciling True Provisioning", "AdmissionOpen Unknown NotObserved", "CapacityOK Unknown NotObserved", "InSync False Provisioning"],
      because: "it is derived from STATE",
    },
    {
      name: "a stream that never held data is made anew",
      scene: () => withStream(settled(), "commands", undefined),
      actions: ["Create stream DURABLE_TIMER_COMMANDS", "Create consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS"],
      turns: ["Ready False Provisioning", "TopologyReady False Provisioning", "Reconciling True Provisioning", "AdmissionOpen Unknown NotObserved", "CapacityOK Unknown NotObserved", "InSync False Provisioning"],
      because: "nothing was lost",
    },
    { name: "another life of a stream that held data is an incident", scene: () => withMetadata(withData(settled()), "terminals", stamp(ownerText, { [stampKeys.incarnation]: "other", [stampKeys.ownerUid]: "uid-1" })), actions: [], turns: [...incident, "Stalled True TopologyLost", "InSync Unknown NotObserved"], because: "somebody deleted it and made it anew" },
    { name: "another life of SCHEDULES is accepted", scene: () => withMetadata(withData(settled()), "schedules", stamp(ownerText, { [stampKeys.incarnation]: "other", [stampKeys.ownerUid]: "uid-1" })), actions: [], turns: [], because: "the workers sweep when its mark changes" },
    { name: "a STATE without the owner's key was emptied", scene: () => withBroker(withData(settled()), (broker) => ({ ...broker, ownerKey: absent, stateRecord: absent })), actions: [], turns: [...incident, "Stalled True TopologyLost", "InSync Unknown NotObserved"], because: "the key was written at its creation" },
    { name: "an empty SNAPSHOTS beside records was emptied", scene: () => withStream(withData(settled()), "snapshots", filled(0)), actions: [], turns: [...incident, "Stalled True TopologyLost", "InSync Unknown NotObserved"], because: "each record has its snapshot (I3)" },
    { name: "an empty SNAPSHOTS without records is fine", scene: () => withBroker(withStream(withData(settled()), "snapshots", filled(0)), (broker) => ({ ...broker, stateRecord: absent })), actions: [], turns: [], because: "every timer has ended" },
    {
      name: "without a status, a missing stream beside COMMANDS is a loss",
      scene: () => withStatus(without("terminals"), () => empty().resource.status),
      actions: [],
      turns: ["Ready False TopologyLost", "BrokerReachable True Connected", "BrokerCompatible True Compatible", "TopologyReady False TopologyLost", "WorkersReady True WorkersAvailable", "ResumeOpen True Open", "no Reconciling", "Stalled True TopologyLost", "ReplicasHealthy True SingleReplica", "CredentialsValid True CredentialsValid", "Paused False NotPaused"].sort(),
      because: "COMMANDS is created last, so that the stream was there",
    },
    {
      name: "an acknowledged loss is made anew",
      scene: () => acknowledged(without("terminals")),
      actions: ["Create stream DURABLE_TIMER_TERMINALS"],
      turns: ["Ready False Provisioning", "TopologyReady False Provisioning", "Reconciling True Provisioning", "AdmissionOpen Unknown NotObserved", "CapacityOK Unknown NotObserved", "InSync False Provisioning"],
      because: "a person accepted the loss",
    },
    { name: "an acknowledged other life is accepted", scene: () => acknowledged(withMetadata(withData(settled()), "terminals", stamp(ownerText, { [stampKeys.incarnation]: "other", [stampKeys.ownerUid]: "uid-1" }))), actions: [], turns: [], because: "a person accepted the loss" },
    { name: "an acknowledged emptied STATE gets its key again", scene: () => acknowledged(withBroker(withData(settled()), (broker) => ({ ...broker, ownerKey: absent, stateRecord: absent }))), actions: ["Write the owner's key c1/payments/orders"], turns: ["Ready False Provisioning", "TopologyReady False Provisioning", "Reconciling True Provisioning", "InSync False Provisioning"], because: "a person accepted the loss" },
    { name: "a stale acknowledgement does nothing", scene: () => { const scene = without("terminals"); return { ...scene, resource: { ...scene.resource, spec: spec({ acknowledge: ["lost-terminals-00000000", "lost-state-1"] }) } }; }, actions: [], turns: [...incident, ...around], because: "an id is bound to its facts" },
    {
      name: "one acknowledged loss does not allow another",
      scene: () => withStream(acknowledged(without("terminals")), "commands", undefined),
      actions: [],
      turns: [...incident, ...around],
      because: "each loss is judged by a person",
    },
    { name: "workers are corrected during an incident", scene: () => withWorkers(without("terminals"), { drift: ["image"] }), actions: ["Update the workers (image)"], turns: [...incident, ...around], because: "a fix must still roll" },
  ];
  it.each(rows)("$name", ({ turns, ...row }) => check({ ...row, turns: sameOrder(row.scene(), turns) }));

  it("does not lose its memory of a lost stream", () => {
    const scene = without("commands");
    expect(plan(scene).status.topology).toEqual(scene.resource.status?.topology);
  });

  it("clears no incident when STATE's records could not be read", () => {
    const emptied = withStream(withData(settled()), "snapshots", filled(0));
    const shown = withStatus(emptied, () => plan(emptied).status);
    const unread = withBroker(shown, (broker) => ({ ...broker, stateRecord: timeout }));
    expect(idOf(shown)).toMatch(/^emptied-snapshots-/);
    expect(plan(unread).status.incidents).toEqual(shown.resource.status?.incidents);
    expect(conditionTexts(plan(unread).status)).toEqual(expect.arrayContaining(incident));
  });

  it("makes no COMMANDS without a status when STATE's records could not be read", () => {
    const forgotten = withStatus(withStream(withData(settled()), "commands", undefined), () => empty().resource.status);
    expect(plan(forgotten).actions.filter(({ kind }) => kind !== "ApplyWorkers")).toEqual([]);
    expect(plan(withBroker(forgotten, (broker) => ({ ...broker, stateRecord: timeout }))).actions).toEqual([]);
  });

  it("keeps an incident's id while the facts last", () => {
    const first = without("state");
    const again = withStatus(first, () => plan(first).status);
    expect(idOf(again)).toBe(idOf(first));
    const emptied = withBroker(withData(settled()), (broker) => ({ ...broker, ownerKey: absent, stateRecord: absent }));
    const moved = withStream(withStatus(emptied, () => plan(emptied).status), "state", (stream) => ({ ...stream, lastSequence: 77 }));
    expect(idOf(moved)).toBe(idOf(emptied));
  });

  it("gives the next loss of the same stream another id", () => {
    const other = withStatus(without("terminals"), (status) => ({
      ...status,
      observedGeneration: 3,
      topology: { layoutVersion: 1, streams: (status?.topology?.streams ?? []).map((entry) => ({ ...entry, incarnation: "secondlife" })) },
    }));
    expect(idOf(withStream(other, "terminals", undefined))).not.toBe(idOf(without("terminals")));
  });

  it("accepts what an acknowledgement made, even when the pass after it was lost", () => {
    const scene = acknowledged(without("terminals"));
    const remade = withBroker(scene, (broker) => ({ ...broker, streams: { ...broker.streams, terminals: provisionedBroker(spec(), "newlife000").streams.terminals } }));
    const { status } = plan(remade);
    expect({ incidents: status.incidents, terminals: status.topology?.streams.find(({ name }) => name === "DURABLE_TIMER_TERMINALS")?.incarnation }).toEqual({ incidents: [], terminals: "newlife000" });
  });

  it("tells of a restore from a backup once, and loses nothing by it", () => {
    const scene = withStream(withData(settled()), "state", (stream) => ({ ...stream, createdAt: "2026-12-01T00:00:00Z" }));
    const first = plan(scene);
    expect(first.events).toEqual([{ severity: "Normal", reason: "Restored", message: "Stream KV_DURABLE_TIMER_STATE was restored from a backup." }]);
    expect(plan(withStatus(scene, () => first.status)).events).toEqual([]);
  });

  it("raises the incident as an event", () => {
    const { events } = plan(without("commands"));
    expect(events.map(({ reason }) => reason)).toEqual(["NotReady", "ConditionChanged", "Stalled", "IncidentRaised"]);
  });

  it("reads well", async () => {
    await expect(explainPlan(plan(without("commands"))).replace(/lost-commands-[0-9a-f]{8}/g, "lost-commands-<facts>")).toMatchFileSnapshot("../../golden/plan-lost-commands.txt");
  });
});

/** Turns in the order in which conditions are listed, whatever order a row names them in. */
function sameOrder(observed: Observed, turns: readonly string[]): readonly string[] {
  const actual = turned(observed, plan(observed));
  const known = actual.filter((text) => turns.includes(text));
  return [...known, ...turns.filter((text) => !actual.includes(text))];
}
