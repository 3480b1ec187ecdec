import { describe, expect, it } from "vitest";
import { lookAgainMs } from "../../../src/base/limits.ts";
import { explainPlan } from "../../../src/operator/plan/explain.ts";
import type { Observed, StreamFacts } from "../../../src/operator/plan/observed.ts";
import { statedPauseUntilMs } from "../../../src/operator/plan/pauses.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import { stampKeys } from "../../../src/topology/stamp.ts";
import { absent, check, conditionTexts, empty, found, ownerText, paused, provisionedBroker, settled, spec, stamp, turned, withBroker, withConsumer, withData, withMetadata, withStatus, withStream, withWorkers } from "./scenes.ts";
import type { Row } from "./scenes.ts";

describe("losses", () => {
  const filled = (messages: number) => (stream: StreamFacts): StreamFacts => ({ ...stream, messages, lastSequence: 9, firstSequence: 10 - messages });
  const incident = ["Ready False TopologyLost", "TopologyReady False TopologyLost"];
  const around = ["Stalled True TopologyLost", "AdmissionOpen False ClosedByIncident", "CapacityOK Unknown NotObserved", "InSync Unknown NotObserved"];
  const held = ["Pause consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS until 2200-01-01T00:00:00.000Z"];
  const unreplaced = [...incident, "Stalled True TopologyLost", "AdmissionOpen False ClosedByIncident", "InSync Unknown NotObserved"];
  const idOf = (observed: Observed): string => plan(observed).status.incidents?.[0]?.id ?? "none";
  const acknowledged = (observed: Observed): Observed => ({ ...observed, resource: { ...observed.resource, spec: spec({ acknowledge: [idOf(observed)] }) } });
  const without = (role: "state" | "commands" | "feedback" | "snapshots" | "terminals" | "resumes" | "schedules"): Observed => withStream(withData(settled()), role, undefined);
  const rewound = (isConfirmed: boolean): Observed => ({ ...withData(settled()), rewinds: { commands: { fromSequence: 12, toSequence: 9, isConfirmed } } });
  const timeout = { kind: "failed", failure: { kind: "transient", code: "BROKER_TIMEOUT", message: "read a record" } } as const;
  const rows: readonly Row[] = [
    { name: "a lost STATE is an incident", scene: () => without("state"), actions: held, turns: [...incident, ...around], because: "every live timer was in it" },
    { name: "a lost SNAPSHOTS is an incident", scene: () => without("snapshots"), actions: held, turns: [...incident, ...around], because: "waiting timers have nothing to resume with" },
    { name: "a lost TERMINALS is an incident", scene: () => without("terminals"), actions: held, turns: [...incident, ...around], because: "ended timers could be revived" },
    { name: "a lost COMMANDS is an incident", scene: () => without("commands"), actions: [], turns: [...incident, ...around], because: "acknowledged starts were in it" },
    { name: "a lost FEEDBACK is an incident", scene: () => without("feedback"), actions: held, turns: [...incident, ...around], because: "acknowledged feedback was in it" },
    { name: "a lost RESUMES is an incident", scene: () => without("resumes"), actions: held, turns: [...incident, "ResumeOpen False WaitingForTopology", ...around], because: "owed resumes were in it" },
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
    { name: "another life of a stream that held data is an incident", scene: () => withMetadata(withData(settled()), "terminals", stamp(ownerText, { [stampKeys.incarnation]: "other", [stampKeys.ownerUid]: "uid-1" })), actions: held, turns: unreplaced, because: "somebody deleted it and made it anew" },
    { name: "another life of SCHEDULES is accepted", scene: () => withMetadata(withData(settled()), "schedules", stamp(ownerText, { [stampKeys.incarnation]: "other", [stampKeys.ownerUid]: "uid-1" })), actions: [], turns: [], because: "the workers sweep when its mark changes" },
    { name: "a STATE without the owner's key was emptied", scene: () => withBroker(withData(settled()), (broker) => ({ ...broker, ownerKey: absent, stateRecord: absent })), actions: held, turns: unreplaced, because: "the key was written at its creation" },
    { name: "an empty SNAPSHOTS beside records was emptied", scene: () => withStream(withData(settled()), "snapshots", filled(0)), actions: held, turns: unreplaced, because: "each record has its snapshot (I3)" },
    { name: "an empty SNAPSHOTS beside a record is emptied although no status remembers it", scene: () => withStatus(withStream(withData(settled()), "snapshots", filled(0)), (status) => status && { ...status, topology: { layoutVersion: 1, streams: [] } }), actions: held, turns: unreplaced, because: "a snapshot is written before its record, and was looked at after it" },
    { name: "an empty SNAPSHOTS beside the marker of a removed record is fine", scene: () => withBroker(withStream(withData(settled()), "snapshots", filled(0)), (broker) => ({ ...broker, stateRecord: found({ sequence: 9, isLive: false }) })), actions: [], turns: [], because: "a timer that has ended needs no snapshot" },
    { name: "a stream that lost its end is an incident", scene: () => rewound(true), actions: held, turns: unreplaced, because: "what was acknowledged last is gone" },
    { name: "one look at a lower sequence proves nothing, and another one follows soon", scene: () => rewound(false), actions: [], turns: [], requeueAfterMs: lookAgainMs, because: "a leader that was deposed may have answered" },
    { name: "SCHEDULES may lose its end", scene: () => ({ ...withData(settled()), rewinds: { schedules: { fromSequence: 12, toSequence: 9, isConfirmed: true } } }), actions: [], turns: [], because: "the workers sweep when it does" },
    { name: "an acknowledged rewind is accepted, and admission goes on", scene: () => withConsumer(acknowledged(rewound(true)), "start", paused(statedPauseUntilMs)), actions: ["Open consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS"], turns: [], because: "a person accepted the loss" },
    { name: "an empty SNAPSHOTS without records is fine", scene: () => withBroker(withStream(withData(settled()), "snapshots", filled(0)), (broker) => ({ ...broker, stateRecord: absent })), actions: [], turns: [], because: "every timer has ended" },
    {
      name: "without a status, a missing stream beside COMMANDS is a loss",
      scene: () => withStatus(without("terminals"), () => empty().resource.status),
      actions: held,
      turns: ["AdmissionOpen False ClosedByIncident", "Ready False TopologyLost", "BrokerReachable True Connected", "BrokerCompatible True Compatible", "TopologyReady False TopologyLost", "WorkersReady True WorkersAvailable", "ResumeOpen True Open", "no Reconciling", "Stalled True TopologyLost", "ReplicasHealthy True SingleReplica", "CredentialsValid True CredentialsValid", "Paused False NotPaused"].sort(),
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
    { name: "a stale acknowledgement does nothing", scene: () => { const scene = without("terminals"); return { ...scene, resource: { ...scene.resource, spec: spec({ acknowledge: ["lost-terminals-00000000", "lost-state-1"] }) } }; }, actions: held, turns: [...incident, ...around], because: "an id is bound to its facts" },
    {
      name: "one acknowledged loss does not allow another",
      scene: () => withStream(acknowledged(without("terminals")), "commands", undefined),
      actions: [],
      turns: [...incident, ...around],
      because: "each loss is judged by a person",
    },
    { name: "workers are corrected during an incident", scene: () => withWorkers(without("terminals"), { drift: ["image"] }), actions: [...held, "Update the workers (image)"], turns: [...incident, ...around], because: "a fix must still roll" },
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

  it("binds a loss that no status remembers to the resource and to what is left, and keeps its id while streams are made anew", () => {
    const forgotten = (observed: Observed): Observed => withStatus(observed, () => empty().resource.status);
    const first = forgotten(without("terminals"));
    expect(idOf(first)).toMatch(/^lost-terminals-[0-9a-f]{8}$/);
    expect(idOf({ ...first, resource: { ...first.resource, uid: "uid-2" } }), "a resource that was created again has to be told again").not.toBe(idOf(first));
    const later = withStream(first, "commands", (stream) => ({ ...stream, createdAt: "2026-12-01T00:00:00Z" }));
    expect(idOf(later), "another account, or another life of it").not.toBe(idOf(first));
    const both = forgotten(withStream(without("terminals"), "state", undefined));
    const remade = forgotten(withBroker(both, (broker) => ({ ...broker, streams: { ...broker.streams, state: provisionedBroker(spec(), "newlife000").streams.state } })));
    const idsOf = (observed: Observed): readonly string[] => (plan(observed).status.incidents ?? []).map(({ id }) => id);
    expect(idsOf(both)).toHaveLength(2);
    expect(idsOf(both)).toEqual(expect.arrayContaining([...idsOf(remade)].filter((id) => id.startsWith("lost-terminals"))));
  });

  it("remembers a rewind over a restart of the operator, until it is acknowledged or the stream has another life", () => {
    const { rewinds: _rewinds, ...restarted } = withStatus(rewound(true), () => plan(rewound(true)).status);
    expect(plan(restarted).status.incidents).toEqual(plan(rewound(true)).status.incidents);
    const settledAgain = { ...restarted, resource: { ...restarted.resource, spec: spec({ acknowledge: [idOf(rewound(true))] }) } };
    expect(plan(settledAgain).status.incidents).toEqual([]);
    const restored = withStream(restarted, "commands", (stream) => ({ ...stream, createdAt: "2026-12-01T00:00:00Z" }));
    expect(plan(restored).status.incidents).toEqual([]);
  });

  it("gives another rewind of the same stream another id", () => {
    const again = { ...rewound(true), rewinds: { commands: { fromSequence: 11, toSequence: 4, isConfirmed: true } } };
    expect(idOf(again)).not.toBe(idOf(rewound(true)));
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
    expect(events.map(({ reason }) => reason)).toEqual(["NotReady", "ConditionChanged", "Stalled", "AdmissionClosed", "IncidentRaised"]);
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
