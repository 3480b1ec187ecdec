import { describe, expect, it } from "vitest";
import { brokerLossGraceMs, lookAgainMs, resumePauseMs } from "../../../src/base/limits.ts";
import type { EpochMs } from "../../../src/base/units.ts";
import { explainPlan } from "../../../src/operator/plan/explain.ts";
import type { ConsumerFacts, Observed, StreamFacts } from "../../../src/operator/plan/observed.ts";
import { statedPauseUntilMs } from "../../../src/operator/plan/pauses.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import { isSameStatus } from "../../../src/operator/plan/status.ts";
import { stampKeys } from "../../../src/topology/stamp.ts";
import {
  absent, actionTexts, conditionTexts, empty, found, nowMs, oldIncarnation, outage, ownerText, provisionedBroker, readyWorkers, settled, spec, turned,
  unreached, valueOf, withBroker, withConsumer, withData, withFacts, withMetadata, withSpec, withStatus, withStream, withStreamConfig, withWorkers,
} from "./scenes.ts";

type Row = {
  readonly name: string;
  readonly scene: () => Observed;
  /** Every action, in order. */
  readonly actions: readonly string[];
  /** Every condition that turns, as `type status reason`; `no type` for one that goes. */
  readonly turns: readonly string[];
  readonly requeueAfterMs?: number;
  readonly because: string;
};

function check({ scene, actions, turns, requeueAfterMs, because }: Row): void {
  const observed = scene();
  const planned = plan(observed);
  const { requeueAfterMs: requeue } = planned;
  expect({ actions: actionTexts(planned), turns: turned(observed, planned), ...(requeue === undefined ? {} : { requeueAfterMs: requeue }) }, because).toEqual({
    actions,
    turns,
    ...(requeueAfterMs === undefined ? {} : { requeueAfterMs }),
  });
}

const stamp = (ownerId: string, more: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> => ({
  [stampKeys.ownerId]: ownerId, [stampKeys.ownerUid]: "uid-9", [stampKeys.incarnation]: oldIncarnation, [stampKeys.layoutVersion]: "1", ...more,
});
const filled = (messages: number) => (stream: StreamFacts): StreamFacts => ({ ...stream, messages, lastSequence: 9, firstSequence: 10 - messages });
const paused = (untilMs: number) => (consumer: ConsumerFacts): ConsumerFacts => ({ ...consumer, isPaused: true, pausedUntilMs: untilMs as EpochMs });
const share = (percent: number, ofBytes: number) => (stream: StreamFacts): StreamFacts => ({ ...stream, bytes: (ofBytes * percent) / 100 });
const gibibyte = 1024 ** 3;
const lostBroker = [
  "TopologyReady Unknown BrokerUnreachable", "WorkersReady Unknown BrokerUnreachable", "ResumeOpen Unknown BrokerUnreachable",
  "AdmissionOpen Unknown BrokerUnreachable", "ReplicasHealthy Unknown BrokerUnreachable", "CapacityOK Unknown BrokerUnreachable",
];

describe("a settled resource", () => {
  const rows: readonly Row[] = [
    { name: "as desired: no actions", scene: settled, actions: [], turns: [], because: "a pass that changes nothing writes nothing" },
    { name: "as desired with three replicas: no actions", scene: () => settled({ topology: { replicas: 3 } }), actions: [], turns: [], because: "replicas change how streams are made, not whether they are right" },
    { name: "as desired with data in it: no actions", scene: () => withData(settled()), actions: [], turns: [], because: "data is not drift" },
    { name: "as desired with a placement: no actions", scene: () => settled({ topology: { placement: { cluster: "eu-1", tags: ["ssd"] } } }), actions: [], turns: [], because: "the server reports what was asked for" },
    { name: "as desired with an admission that is closed: no actions", scene: () => withConsumer(settled({ admission: { state: "Closed" } }), "start", paused(statedPauseUntilMs)), actions: [], turns: [], because: "the pause is there already" },
    { name: "as desired with resumes that are paused: no actions", scene: () => withConsumer(settled({ resume: { state: "Paused" } }), "resume", paused(statedPauseUntilMs)), actions: [], turns: [], because: "the pause is there already" },
  ];
  it.each(rows)("$name", check);

  it("gives the same status again, so that nothing is written", () => {
    for (const scene of [settled(), withData(settled()), settled({ topology: { replicas: 3 } })]) {
      expect(isSameStatus(scene.resource.status, plan(scene).status)).toBe(true);
    }
  });

  it("has no events", () => {
    expect(plan(settled()).events).toEqual([]);
  });

  it("survives being saved as JSON", () => {
    const scene = withData(settled());
    expect(plan(JSON.parse(JSON.stringify(scene)) as Observed)).toEqual(plan(scene));
  });
});

describe("provisioning", () => {
  const everything = [
    "Create stream KV_DURABLE_TIMER_STATE",
    "Write the owner's key c1/payments/orders",
    "Create stream DURABLE_TIMER_SNAPSHOTS",
    "Create stream DURABLE_TIMER_TERMINALS",
    "Create stream DURABLE_TIMER_SCHEDULES",
    "Create consumer DURABLE_TIMER_WAKE_SERVICE on DURABLE_TIMER_SCHEDULES",
    "Create stream DURABLE_TIMER_RESUMES",
    "Create consumer NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME on DURABLE_TIMER_RESUMES, paused until 2026-11-30T20:10:00.000Z",
    "Create stream DURABLE_TIMER_FEEDBACK",
    "Create consumer DURABLE_TIMER_FEEDBACK_SERVICE on DURABLE_TIMER_FEEDBACK",
    "Create stream DURABLE_TIMER_COMMANDS",
    "Create consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS",
  ];
  const firstTurns = [
    "Ready False Provisioning", "BrokerReachable True Connected", "BrokerCompatible True Compatible", "TopologyReady False Provisioning",
    "WorkersReady False WaitingForTopology", "ResumeOpen False WaitingForTopology", "Reconciling True Provisioning",
    "CredentialsValid True CredentialsValid", "InSync False Provisioning", "Paused False NotPaused",
  ];
  const proven = (): Observed => withConsumer({ ...empty(), broker: provisionedBroker(spec()) }, "resume", paused(nowMs + resumePauseMs));
  const completingTurns = [...firstTurns.slice(0, 7), "ReplicasHealthy True SingleReplica", ...firstTurns.slice(7)];
  const rows: readonly Row[] = [
    { name: "an empty account gets everything, STATE first and COMMANDS last", scene: empty, actions: everything, turns: firstTurns, because: "creating STATE is the claim, and COMMANDS is the door" },
    { name: "what a crash left half made is completed", scene: () => withStream(withStream(proven(), "commands", undefined), "feedback", undefined), actions: everything.slice(8), turns: completingTurns, because: "a plan continues from what is there" },
    { name: "the owner's key is written when the crash came before it", scene: () => withBroker(withStream(proven(), "commands", undefined), (broker) => ({ ...broker, ownerKey: absent })), actions: [everything[1] ?? "", ...everything.slice(10)], turns: completingTurns, because: "without COMMANDS no start was ever accepted, so nothing was lost" },
    {
      name: "workers are created by the pass that found everything in place",
      scene: proven,
      actions: ["Create the workers"],
      turns: [
        "Ready False WorkersProgressing", "BrokerReachable True Connected", "BrokerCompatible True Compatible", "TopologyReady True Provisioned",
        "WorkersReady False WorkersProgressing", "ResumeOpen False WaitingForWorkers", "Reconciling True WorkersProgressing",
        "AdmissionOpen True Open", "ReplicasHealthy True SingleReplica", "CapacityOK True BelowSoftLimit", "CredentialsValid True CredentialsValid",
        "InSync True InSync", "Paused False NotPaused",
      ],
      because: "only a look proves the topology",
    },
  ];
  it.each(rows)("$name", check);

  it("gives new streams the fresh incarnation and our stamp", () => {
    const [first] = plan(empty()).actions;
    expect(first?.kind === "CreateStream" ? first.config["metadata"] : undefined).toEqual({
      [stampKeys.ownerId]: ownerText, [stampKeys.ownerUid]: "uid-1", [stampKeys.incarnation]: "newlife000", [stampKeys.layoutVersion]: "1",
    });
  });

  it("reads well", async () => {
    await expect(explainPlan(plan(empty()))).toMatchFileSnapshot("../../golden/plan-empty-account.txt");
    await expect(explainPlan(plan(settled()))).toMatchFileSnapshot("../../golden/plan-settled.txt");
  });
});

describe("the broker", () => {
  const compatFalse = (reason: string): readonly string[] => [
    `Ready False ${reason}`, `BrokerCompatible False ${reason}`, "TopologyReady Unknown WaitingForBroker", "ResumeOpen Unknown WaitingForBroker", `Stalled True ${reason}`,
    "AdmissionOpen Unknown WaitingForBroker", "ReplicasHealthy Unknown WaitingForBroker", "CapacityOK Unknown WaitingForBroker", "InSync Unknown WaitingForBroker",
  ];
  const rows: readonly Row[] = [
    { name: "a loss shorter than the grace flips nothing", scene: () => unreached(settled(), outage, 10_000), actions: [], turns: [], requeueAfterMs: brokerLossGraceMs - 10_000, because: "the broker is usually back before anyone could act" },
    {
      name: "a longer loss makes the other gates Unknown",
      scene: () => unreached(settled(), outage, 30_000),
      actions: [],
      turns: ["Ready Unknown BrokerUnreachable", "BrokerReachable False BrokerUnreachable", "BrokerCompatible Unknown BrokerUnreachable", ...lostBroker.slice(0, 3), "Reconciling True BrokerUnreachable", ...lostBroker.slice(3), "CredentialsValid Unknown BrokerUnreachable", "InSync Unknown BrokerUnreachable"],
      because: "not knowing is not the same as knowing that timers do not run",
    },
    {
      name: "a broker that was never reached is shown at once",
      scene: () => unreached(empty(), outage, 0),
      actions: [],
      turns: [
        "Ready Unknown BrokerUnreachable", "BrokerReachable False BrokerUnreachable", "BrokerCompatible Unknown BrokerUnreachable", ...lostBroker.slice(0, 3),
        "Reconciling True BrokerUnreachable", ...lostBroker.slice(3), "CredentialsValid Unknown BrokerUnreachable", "InSync Unknown BrokerUnreachable", "Paused False NotPaused",
      ],
      because: "the grace protects a state that was good",
    },
    {
      name: "refused credentials are shown at once",
      scene: () => unreached(settled(), { kind: "denied", code: "BROKER_AUTH", message: "connect" }, 1_000),
      actions: [],
      turns: [
        "Ready Unknown CredentialsRefused", "BrokerReachable False CredentialsRefused", "BrokerCompatible Unknown BrokerUnreachable", ...lostBroker.slice(0, 3),
        "Reconciling True CredentialsRefused", ...lostBroker.slice(3), "CredentialsValid False CredentialsRefused", "InSync Unknown BrokerUnreachable",
      ],
      because: "a definite answer needs no grace",
    },
    {
      name: "JetStream that is off is an incompatible broker",
      scene: () => unreached(settled(), { kind: "denied", code: "JETSTREAM_DISABLED", message: "ask for the account" }, 0),
      actions: [],
      turns: [...compatFalse("JetStreamDisabled").slice(0, 8), "CredentialsValid Unknown BrokerUnreachable", "InSync Unknown WaitingForBroker"],
      because: "the server was reached and can never do the work",
    },
    { name: "a server below the floor is refused", scene: () => withFacts(settled(), { version: "2.14.3" }), actions: [], turns: compatFalse("BrokerTooOld"), because: "older servers lose schedules" },
    { name: "a server at the floor is accepted", scene: () => withFacts(settled(), { version: "2.14.4", apiLevel: 4 }), actions: [], turns: [], because: "the floor is inclusive" },
    { name: "a pre-release above the floor is accepted", scene: () => withFacts(settled(), { version: "2.15.0-RC.1" }), actions: [], turns: [], because: "only the numbers count" },
    { name: "a version that cannot be read is refused", scene: () => withFacts(settled(), { version: "dev" }), actions: [], turns: compatFalse("BrokerTooOld"), because: "what is not known to work is not used" },
    { name: "a cluster with an older server is refused", scene: () => withFacts(settled(), { apiLevel: 3 }), actions: [], turns: compatFalse("BrokerTooOld"), because: "the API level is the lowest of the cluster" },
    { name: "the guarded account is accepted", scene: () => settled({ nats: { accountName: "PAYMENTS" } }), actions: [], turns: [], because: "the guard names this account" },
    { name: "another account is not touched", scene: () => ({ ...withFacts(settled({ nats: { accountName: "PAYMENTS" } }), { accountName: "OTHER" }) }), actions: [], turns: compatFalse("WrongAccount"), because: "an edited server list must not build an empty twin" },
    {
      name: "an account that does not tell its name is not touched under a guard",
      scene: () => withBroker(settled({ nats: { accountName: "PAYMENTS" } }), (broker) => ({ ...broker, facts: { ...broker.facts, accountName: undefined as never } })),
      actions: [], turns: compatFalse("AccountUnknown"), because: "a guard that cannot be checked does not hold",
    },
    { name: "more replicas than a single server holds are refused", scene: () => withFacts(settled({ topology: { replicas: 3 } }), { isClustered: false }), actions: [], turns: compatFalse("ReplicasExceedCluster"), because: "some servers accept it and do not start afterwards" },
    { name: "more replicas than servers are refused", scene: () => withFacts(settled({ topology: { replicas: 3 } }), { serverCount: 2 }), actions: [], turns: compatFalse("ReplicasExceedCluster"), because: "the cluster cannot place them" },
    {
      name: "missing credentials are named",
      scene: () => { const { broker: _broker, ...scene } = empty(); return { ...scene, connection: { kind: "missing", problems: ["Secret dt-operator does not exist."] } }; },
      actions: [],
      turns: [
        "Ready Unknown CredentialsMissing", "BrokerReachable False CredentialsMissing", "BrokerCompatible Unknown BrokerUnreachable",
        ...["TopologyReady", "WorkersReady", "ResumeOpen"].map((type) => `${type} Unknown CredentialsMissing`), "Reconciling True CredentialsMissing",
        ...["AdmissionOpen", "ReplicasHealthy", "CapacityOK"].map((type) => `${type} Unknown CredentialsMissing`),
        "CredentialsValid False CredentialsMissing", "InSync Unknown CredentialsMissing", "Paused False NotPaused",
      ],
      because: "the Secret may be applied a moment later: patience, not a person",
    },
    { name: "a Secret that went does not end a session", scene: () => ({ ...settled(), connection: { kind: "missing", problems: ["Secret dt-operator does not exist."] } }), actions: [], turns: ["CredentialsValid False CredentialsMissing"], because: "the open connection still works" },
    { name: "a cluster that does not tell its Secrets changes nothing", scene: () => { const { broker: _broker, ...scene } = settled(); return { ...scene, connection: { kind: "failed", failure: { kind: "transient", code: "CLUSTER_UNREACHABLE", message: "read a Secret" } } }; }, actions: [], turns: [], because: "the broker may be well" },
    { name: "workers are corrected although the broker is away", scene: () => withWorkers(unreached(settled(), outage, 10_000), { drift: ["image"] }), actions: ["Update the workers (image)"], turns: ["Reconciling True WorkersProgressing"], requeueAfterMs: brokerLossGraceMs - 10_000, because: "a fix of credentials or image must still roll" },
    { name: "shared credentials are pointed out", scene: () => withSpec(settled(), { nats: { auth: { credentialsSecretRef: { name: "dt" } } } }), actions: [], turns: ["CredentialsValid True WorkersShareCredentials"], because: "workers need fewer rights than the operator" },
    { name: "a small max_payload is accepted and told", scene: () => withFacts(settled(), { payloadBytesMax: 65_536 }), actions: [], turns: [], because: "it lowers our limit, which is not a fault" },
  ];
  it.each(rows)("$name", check);

  it("says what a small max_payload leaves", () => {
    const { status } = plan(withFacts(settled(), { payloadBytesMax: 65_536 }));
    expect(status.conditions?.find(({ type }) => type === "BrokerCompatible")?.message).toBe("The broker's max_payload lowers the largest start to 32768 bytes.");
  });

  it("keeps what the status remembers while the broker is away", () => {
    const scene = withData(settled());
    const { conditions: _before, ...had } = scene.resource.status ?? { conditions: [] };
    const { conditions: _after, ...has } = plan(unreached(scene, outage, 60_000)).status;
    expect(has).toEqual(had);
  });
});

describe("ownership", () => {
  const refused = (reason: string): readonly string[] => [
    `Ready False ${reason}`, `TopologyReady False ${reason}`, "ResumeOpen False WaitingForTopology", `Stalled True ${reason}`,
    "AdmissionOpen Unknown NotObserved", "ReplicasHealthy Unknown NotObserved", "CapacityOK Unknown NotObserved", "InSync Unknown NotObserved",
  ];
  const foreign = stamp("c2/payments/orders");
  const allForeign = (observed: Observed, metadata: Readonly<Record<string, string>>): Observed =>
    (["state", "commands", "feedback", "snapshots", "terminals", "schedules", "resumes"] as const).reduce((scene, role) => withMetadata(scene, role, metadata), observed);
  const names = ["KV_DURABLE_TIMER_STATE", "DURABLE_TIMER_SNAPSHOTS", "DURABLE_TIMER_TERMINALS", "DURABLE_TIMER_SCHEDULES", "DURABLE_TIMER_RESUMES", "DURABLE_TIMER_FEEDBACK", "DURABLE_TIMER_COMMANDS"];
  const rows: readonly Row[] = [
    { name: "a STATE of another owner is not touched", scene: () => withMetadata(settled(), "state", foreign), actions: [], turns: refused("OwnedByAnother"), because: "the stamp in STATE wins" },
    { name: "another owner's other stream is not touched", scene: () => withMetadata(settled(), "terminals", foreign), actions: [], turns: refused("OwnedByAnother"), because: "half of a topology is of no use" },
    { name: "a stream of nobody is not taken by default", scene: () => withMetadata(settled(), "state", {}), actions: [], turns: refused("AdoptionRefused"), because: "a name alone proves nothing" },
    { name: "IfUnowned does not take what somebody owns", scene: () => withMetadata(settled({ topology: { adoption: { policy: "IfUnowned" } } }), "state", foreign), actions: [], turns: refused("OwnedByAnother"), because: "the policy speaks of streams of nobody" },
    { name: "FromOwner does not take from a third", scene: () => withMetadata(settled({ topology: { adoption: { policy: "FromOwner", fromOwner: "c3/x/y" } } }), "state", foreign), actions: [], turns: refused("OwnedByAnother"), because: "only the named owner is meant" },
    { name: "a layout of a newer version is not touched", scene: () => withMetadata(settled(), "state", stamp(ownerText, { [stampKeys.layoutVersion]: "2" })), actions: [], turns: refused("StreamIncompatible"), because: "an older operator would take the change back for ever" },
    {
      name: "FromOwner takes every stream of the named owner over",
      scene: () => { const scene = withStatus(allForeign(settled({ topology: { adoption: { policy: "FromOwner", fromOwner: "c2/payments/orders" } } }), foreign), (status) => ({ ...status, observedGeneration: 3, topology: undefined as never })); return scene; },
      actions: names.map((name) => `Take over stream ${name} from c2/payments/orders`), turns: ["Reconciling True Provisioning", "InSync False Drifted"], because: "the policy names this owner",
    },
    {
      name: "IfUnowned takes streams of nobody over",
      scene: () => withStatus(allForeign(settled({ topology: { adoption: { policy: "IfUnowned" } } }), {}), (status) => ({ ...status, observedGeneration: 3, topology: undefined as never })),
      actions: names.map((name) => `Take over stream ${name} from nobody`), turns: ["Reconciling True Provisioning", "InSync False Drifted"], because: "nobody claims them",
    },
    {
      name: "a re-created resource finds its own streams",
      scene: () => { const scene = settled(); return withStatus({ ...scene, resource: { ...scene.resource, uid: "uid-2" } }, () => empty().resource.status); },
      actions: [...names.slice(0, 4).map((name) => `Update stream ${name} (metadata)`), "Update consumer DURABLE_TIMER_WAKE_SERVICE on DURABLE_TIMER_SCHEDULES (metadata)",
        "Update stream DURABLE_TIMER_RESUMES (metadata)", "Update consumer NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME on DURABLE_TIMER_RESUMES (metadata)",
        "Update stream DURABLE_TIMER_FEEDBACK (metadata)", "Update consumer DURABLE_TIMER_FEEDBACK_SERVICE on DURABLE_TIMER_FEEDBACK (metadata)",
        "Update stream DURABLE_TIMER_COMMANDS (metadata)", "Update consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS (metadata)"],
      turns: ["Ready False Provisioning", "BrokerReachable True Connected", "BrokerCompatible True Compatible", "TopologyReady False Provisioning", "WorkersReady True WorkersAvailable", "ResumeOpen True Open", "Reconciling True Provisioning", "AdmissionOpen True Open", "ReplicasHealthy True SingleReplica", "CapacityOK True BelowSoftLimit", "CredentialsValid True CredentialsValid", "InSync False Drifted", "Paused False NotPaused"],
      because: "the owner id is the same; only the uid in the stamp follows",
    },
  ];
  it.each(rows)("$name", check);

  it("keeps the incarnation of what it takes over", () => {
    const scene = withStatus(allForeign(settled({ topology: { adoption: { policy: "FromOwner", fromOwner: "c2/payments/orders" } } }), foreign), () => empty().resource.status);
    const marks = plan(scene).actions.map((action) => (action.kind === "AdoptStream" ? (action.config["metadata"] as Record<string, string>)[stampKeys.incarnation] : undefined));
    expect(new Set(marks)).toEqual(new Set([oldIncarnation]));
  });

  it("sees no loss in streams of nobody that held data and were just stamped", () => {
    const adopting = withStatus(allForeign(withData(settled({ topology: { adoption: { policy: "IfUnowned" } } })), {}), () => empty().resource.status);
    const after = plan(adopting);
    const stamped = withStatus({ ...adopting, broker: withData(settled()).broker ?? provisionedBroker(spec()) }, () => after.status);
    const restamped = allForeign(stamped, stamp(ownerText, { [stampKeys.incarnation]: "newlife000", [stampKeys.ownerUid]: "uid-1" }));
    expect(plan(restamped).status.incidents).toEqual([]);
  });
});

describe("losses", () => {
  const incident = ["Ready False TopologyLost", "TopologyReady False TopologyLost"];
  const around = ["Stalled True TopologyLost", "AdmissionOpen Unknown NotObserved", "CapacityOK Unknown NotObserved", "InSync Unknown NotObserved"];
  const idOf = (observed: Observed): string => plan(observed).status.incidents?.[0]?.id ?? "none";
  const acknowledged = (observed: Observed): Observed => ({ ...observed, resource: { ...observed.resource, spec: spec({ acknowledge: [idOf(observed)] }) } });
  const without = (role: "state" | "commands" | "feedback" | "snapshots" | "terminals" | "resumes" | "schedules"): Observed => withStream(withData(settled()), role, undefined);
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
    { name: "a STATE without the owner's key was emptied", scene: () => withBroker(withData(settled()), (broker) => ({ ...broker, ownerKey: absent, hasStateRecords: false })), actions: [], turns: [...incident, "Stalled True TopologyLost", "InSync Unknown NotObserved"], because: "the key was written at its creation" },
    { name: "an empty SNAPSHOTS beside records was emptied", scene: () => withStream(withData(settled()), "snapshots", filled(0)), actions: [], turns: [...incident, "Stalled True TopologyLost", "InSync Unknown NotObserved"], because: "each record has its snapshot (I3)" },
    { name: "an empty SNAPSHOTS without records is fine", scene: () => withBroker(withStream(withData(settled()), "snapshots", filled(0)), (broker) => ({ ...broker, hasStateRecords: false })), actions: [], turns: [], because: "every timer has ended" },
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
    { name: "an acknowledged emptied STATE gets its key again", scene: () => acknowledged(withBroker(withData(settled()), (broker) => ({ ...broker, ownerKey: absent, hasStateRecords: false }))), actions: ["Write the owner's key c1/payments/orders"], turns: ["Ready False Provisioning", "TopologyReady False Provisioning", "Reconciling True Provisioning", "InSync False Provisioning"], because: "a person accepted the loss" },
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

  it("keeps an incident's id while the facts last", () => {
    const first = without("state");
    const again = withStatus(first, () => plan(first).status);
    expect(idOf(again)).toBe(idOf(first));
    const emptied = withBroker(withData(settled()), (broker) => ({ ...broker, ownerKey: absent, hasStateRecords: false }));
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
      name: "an asynchronous SCHEDULES cannot become replicated in place",
      scene: () => withFacts(withSpec(settled(), { topology: { replicas: 3 } }), { isClustered: true, serverCount: 3 }),
      actions: ["KV_DURABLE_TIMER_STATE", "DURABLE_TIMER_SNAPSHOTS", "DURABLE_TIMER_TERMINALS", "DURABLE_TIMER_RESUMES", "DURABLE_TIMER_FEEDBACK", "DURABLE_TIMER_COMMANDS"].map((name) => `Update stream ${name} (num_replicas)`),
      turns: ["Ready False ImmutableFieldChanged", "TopologyReady False ImmutableFieldChanged", "Stalled True ImmutableFieldChanged", "InSync False DriftIgnored"],
      because: "servers refuse it; the others are scaled",
    },
    { name: "fewer replicas keep SCHEDULES as it is", scene: () => withSpec(settled({ topology: { replicas: 3 } }), { topology: { replicas: 1 } }), actions: ["KV_DURABLE_TIMER_STATE", "DURABLE_TIMER_SNAPSHOTS", "DURABLE_TIMER_TERMINALS", "DURABLE_TIMER_SCHEDULES", "DURABLE_TIMER_RESUMES", "DURABLE_TIMER_FEEDBACK", "DURABLE_TIMER_COMMANDS"].map((name) => `Update stream ${name} (num_replicas)`), turns: repairing, because: "a stream is never re-created to make it faster" },
    {
      name: "a placement and replicas change one after the other",
      scene: () => withStreamConfig(withSpec(settled({ topology: { replicas: 3 } }), { topology: { replicas: 5, placement: { cluster: "eu-1" } } }), "schedules", { num_replicas: 5, placement: { cluster: "eu-1" } }),
      actions: ["KV_DURABLE_TIMER_STATE", "DURABLE_TIMER_SNAPSHOTS", "DURABLE_TIMER_TERMINALS", "DURABLE_TIMER_RESUMES", "DURABLE_TIMER_FEEDBACK", "DURABLE_TIMER_COMMANDS"].flatMap((name) => [`Update stream ${name} (placement, num_replicas)`, `Update stream ${name} (placement, num_replicas)`]),
      turns: repairing,
      because: "servers refuse both in one (10123)",
    },
    { name: "a stream that does not answer holds everything", scene: () => withBroker(withSpec(settled(), { topology: { streams: { terminals: { maxBytes: "30Gi" } } } }), (broker) => ({ ...broker, streams: { ...broker.streams, state: { kind: "failed", failure: { kind: "transient", code: "BROKER_TIMEOUT", message: "look at KV_DURABLE_TIMER_STATE" } } } })), actions: [], turns: ["Reconciling True ProgressingWithRetry"], requeueAfterMs: lookAgainMs, because: "what does not answer may well be there" },
    { name: "a stream that may not be looked at is shown", scene: () => withBroker(settled(), (broker) => ({ ...broker, streams: { ...broker.streams, state: { kind: "failed", failure: { kind: "denied", code: "BROKER_PERMISSION", message: "look at KV_DURABLE_TIMER_STATE" } } } })), actions: [], turns: ["Ready False PermissionDenied", "TopologyReady False PermissionDenied", "Stalled True PermissionDenied", "InSync Unknown NotObserved"], because: "it needs other rights" },
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

describe("workers", () => {
  const progressing = ["Reconciling True WorkersProgressing"];
  const notReady = (reason: string): readonly string[] => [`Ready False ${reason}`, `WorkersReady False ${reason}`];
  const fresh = (): Observed => withStatus(settled(), (status) => ({ ...status, observedGeneration: 3, conditions: (status?.conditions ?? []).map((condition) => (condition.type === "WorkersReady" ? { ...condition, status: "False" as const, reason: "WorkersProgressing" } : condition)) }));
  const rows: readonly Row[] = [
    { name: "a template that differs rolls, and nothing flips", scene: () => withWorkers(settled(), { drift: ["spec.template.spec.containers[0].image"] }), actions: ["Update the workers (spec.template.spec.containers[0].image)"], turns: progressing, because: "a rollout replaces workers one by one" },
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
    { name: "scaling up flips nothing", scene: () => withWorkers(withSpec(settled(), { workers: { replicas: 5 } }), { drift: ["spec.replicas"] }), actions: ["Update the workers (spec.replicas)"], turns: progressing, because: "the workers that are there go on" },
    { name: "foreign objects are refused", scene: () => withWorkers(settled(), { foreign: ["Deployment orders-worker"] }), actions: [], turns: [...notReady("WorkersForeign"), "Stalled True WorkersForeign"], because: "a name is no claim" },
    { name: "deleted workers come back although the topology is broken", scene: () => withWorkers(withStream(withData(settled()), "commands", undefined), { exists: false }), actions: ["Create the workers"], turns: ["Ready False TopologyLost", "TopologyReady False TopologyLost", "WorkersReady False WorkersProgressing", "Stalled True TopologyLost", "AdmissionOpen Unknown NotObserved", "CapacityOK Unknown NotObserved", "InSync Unknown NotObserved"], because: "the gate holds the first creation only" },
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

describe("resumes and admission", () => {
  const startup = (remainingMs: number): Observed => withStatus(withConsumer(settled(), "resume", paused(nowMs + remainingMs)), (status) => ({ ...status, observedGeneration: 3, resume: { consumer: "NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME", everOpened: false }, conditions: (status?.conditions ?? []).map((condition) => (condition.type === "ResumeOpen" ? { ...condition, status: "False" as const, reason: "WaitingForWorkers" } : condition)) }));
  const neverReady = (remainingMs: number): Observed => withWorkers(startup(remainingMs), { readyReplicas: 0 });
  const pauseText = "Pause consumer NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME on DURABLE_TIMER_RESUMES until";
  const openText = "Open consumer NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME on DURABLE_TIMER_RESUMES";
  const held = ["Ready False ResumePaused", "ResumeOpen False ResumePaused"];
  const workersDown = ["Ready False WorkersProgressing", "WorkersReady False WorkersProgressing", "Reconciling True WorkersProgressing"];
  const rows: readonly Row[] = [
    { name: "the first opening follows the other gates", scene: () => startup(400_000), actions: [openText], turns: ["Ready False Provisioning", "ResumeOpen False Provisioning", "Reconciling True Provisioning"], because: "every gate before it is open" },
    { name: "while a gate is closed the pause stays", scene: () => neverReady(400_000), actions: [], turns: workersDown, because: "more than half of it is left" },
    { name: "a pause about to end is extended", scene: () => neverReady(200_000), actions: [`${pauseText} 2026-11-30T20:10:00.000Z`], turns: workersDown, because: "the gate is still closed" },
    { name: "a pause that ended by itself counts as opened", scene: () => withConsumer(neverReady(1), "resume", (consumer) => ({ ...consumer, isPaused: false })), actions: [], turns: [...workersDown.slice(0, 2), "ResumeOpen True Open", ...workersDown.slice(2)], because: "without an operator it opens by itself" },
    { name: "once opened, lost workers do not close it", scene: () => withWorkers(settled(), { readyReplicas: 0 }), actions: [], turns: workersDown, because: "resumes that are stored may well be delivered" },
    { name: "somebody's long pause before the first opening stays", scene: () => startup(3_600_000), actions: [], turns: held, because: "no pause of ours is that long" },
    { name: "somebody's pause after the opening is shown and stays", scene: () => withConsumer(settled(), "resume", paused(nowMs + 1_000)), actions: [], turns: held, because: "after the opening a pause is somebody's wish" },
    { name: "a pause that the spec asks for", scene: () => withSpec(settled(), { resume: { state: "Paused" } }), actions: [`${pauseText} 2200-01-01T00:00:00.000Z`], turns: held, because: "spec.resume.state is Paused" },
    { name: "a pause that the spec asks for overrides somebody's", scene: () => withConsumer(withSpec(settled(), { resume: { state: "Paused" } }), "resume", paused(nowMs + 1_000)), actions: [`${pauseText} 2200-01-01T00:00:00.000Z`], turns: held, because: "the spec's pause must not end by itself" },
    { name: "the spec's pause ends with the spec", scene: () => withConsumer(settled(), "resume", paused(statedPauseUntilMs)), actions: [openText], turns: ["Ready False Provisioning", "ResumeOpen False Provisioning", "Reconciling True Provisioning"], because: "its end tells that it was ours" },
    { name: "the spec's pause falls back to the gate before the first opening", scene: () => withConsumer(neverReady(1), "resume", paused(statedPauseUntilMs)), actions: [`${pauseText} 2026-11-30T20:10:00.000Z`], turns: workersDown, because: "it was never open" },
    { name: "a missing resume consumer is created paused when the spec says so", scene: () => withConsumer(settled({ resume: { state: "Paused" } }), "resume", undefined), actions: ["Create consumer NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME on DURABLE_TIMER_RESUMES, paused until 2200-01-01T00:00:00.000Z"], turns: ["Ready False Provisioning", "TopologyReady False Provisioning", "ResumeOpen False WaitingForTopology", "Reconciling True Provisioning", "InSync False Provisioning"], because: "not one resume may slip out" },
    { name: "closed admission pauses the start consumer", scene: () => withSpec(settled(), { admission: { state: "Closed" } }), actions: ["Pause consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS until 2200-01-01T00:00:00.000Z"], turns: ["AdmissionOpen False ClosedBySpec"], because: "an emergency stop is no rollout" },
    { name: "open admission lifts the pause that the spec set", scene: () => withConsumer(settled(), "start", paused(statedPauseUntilMs)), actions: ["Open consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS"], turns: [], because: "its end tells that it was ours" },
    { name: "somebody's pause of the start consumer is shown and stays", scene: () => withConsumer(settled(), "start", paused(nowMs + 60_000)), actions: [], turns: ["AdmissionOpen False ConsumerPaused"], because: "it is somebody's wish" },
    { name: "an emergency stop comes before a repair", scene: () => withStreamConfig(withSpec(settled(), { admission: { state: "Closed" } }), "terminals", { max_bytes: 5 }), actions: ["Pause consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS until 2200-01-01T00:00:00.000Z", "Update stream DURABLE_TIMER_TERMINALS (max_bytes)"], turns: ["Reconciling True Provisioning", "AdmissionOpen False ClosedBySpec", "InSync False Drifted"], because: "a repair that fails must not hold it up" },
    { name: "a missing start consumer is created paused when admission is closed", scene: () => withConsumer(settled({ admission: { state: "Closed" } }), "start", undefined), actions: ["Create consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS, paused until 2200-01-01T00:00:00.000Z"], turns: ["Ready False Provisioning", "TopologyReady False Provisioning", "Reconciling True Provisioning", "InSync False Provisioning"], because: "not one start may slip in" },
  ];
  it.each(rows)("$name", check);

  it("pauses by the broker's clock", () => {
    const ahead = withBroker(neverReady(200_000), (broker) => ({ ...broker, brokerTimeMs: (nowMs + 5_000) as EpochMs }));
    expect(actionTexts(plan(ahead))).toEqual([`${pauseText} 2026-11-30T20:10:05.000Z`]);
  });
});

describe("capacity", () => {
  const rows: readonly Row[] = [
    { name: "a full live stream closes admission", scene: () => withStream(settled(), "state", share(86, 10 * gibibyte)), actions: [], turns: ["AdmissionOpen False ClosedByCapacity", "CapacityOK False AboveSoftLimit"], because: "what is accepted must have room to end" },
    { name: "a full backlog is no reason to close admission", scene: () => withStream(settled(), "commands", share(95, 2 * gibibyte)), actions: [], turns: ["CapacityOK False AboveSoftLimit"], because: "taking starts is what empties it" },
    { name: "below the closing limit nothing turns", scene: () => withStream(settled(), "state", share(84, 10 * gibibyte)), actions: [], turns: [], because: "the limit is 85 %" },
    { name: "a full account closes admission", scene: () => withFacts(settled(), { storageBytes: 90, storageBytesMax: 100 }), actions: [], turns: ["AdmissionOpen False ClosedByCapacity", "CapacityOK False AboveSoftLimit"], because: "streams without a limit share it" },
    { name: "a replica that is offline is shown", scene: () => withStream(settled({ topology: { replicas: 3 } }), "state", (stream) => ({ ...stream, replicas: stream.replicas.map((replica, index) => ({ ...replica, isOffline: index === 0 })) })), actions: [], turns: ["ReplicasHealthy False ReplicaOffline"], because: "one more loss would stop the stream" },
    { name: "a replica that lags is shown", scene: () => withStream(settled({ topology: { replicas: 3 } }), "state", (stream) => ({ ...stream, replicas: stream.replicas.map((replica) => ({ ...replica, isCurrent: false })) })), actions: [], turns: ["ReplicasHealthy False ReplicasBehind"], because: "it cannot take over" },
    { name: "a stream without a leader is shown", scene: () => withStream(settled({ topology: { replicas: 3 } }), "state", ({ leader: _leader, ...stream }) => stream), actions: [], turns: ["ReplicasHealthy False NoLeader"], because: "it takes no writes" },
  ];
  it.each(rows)("$name", check);

  it("opens again only below the lower limit", () => {
    const closing = withStream(settled(), "state", share(86, 10 * gibibyte));
    const closed = withStatus(closing, () => plan(closing).status);
    const lower = withStream(closed, "state", share(76, 10 * gibibyte));
    expect(conditionTexts(plan(lower).status)).toContain("AdmissionOpen False ClosedByCapacity");
    expect(conditionTexts(plan(withStream(closed, "state", share(74, 10 * gibibyte))).status)).toContain("AdmissionOpen True Open");
  });

  it("moves percentages in steps, and not while they are near the last one", () => {
    const at = (observed: Observed, percent: number): Observed => {
      const scene = withStream(observed, "state", share(percent, 10 * gibibyte));
      return withStatus(scene, () => plan(scene).status);
    };
    const shown = [42, 45.5, 46.5, 44.5, 38.9].reduce<{ scene: Observed; percents: readonly (number | undefined)[] }>(
      ({ scene, percents }, percent) => {
        const next = at(scene, percent);
        return { scene: next, percents: [...percents, next.resource.status?.capacity?.worstPercent] };
      },
      { scene: settled(), percents: [] },
    );
    expect(shown.percents).toEqual([40, 40, 45, 45, 35]);
  });
});

describe("a resource's own life", () => {
  it("changes nothing while it is paused, and says so", () => {
    const scene = withStreamConfig({ ...settled(), resource: { ...settled().resource, annotations: { "durabletimer.dev/paused": "true" } } }, "terminals", { max_bytes: 5 });
    const planned = plan(scene);
    expect({ actions: planned.actions, turns: turned(scene, planned) }).toEqual({ actions: [], turns: ["InSync False Drifted", "Paused True PausedByAnnotation"] });
    expect(planned.events).toEqual([{ severity: "Normal", reason: "Paused", message: "The operator looks and reports, and changes nothing." }]);
  });

  it("leaves everything in NATS when it is deleted", () => {
    const scene = settled();
    const planned = plan({ ...scene, resource: { ...scene.resource, isDeletionRequested: true } });
    expect({ actions: planned.actions, turns: turned(scene, planned) }).toEqual({ actions: [], turns: ["Ready False Deleting", "Reconciling True Deleting"] });
  });

  it("shows an unfinished look beside what it keeps", () => {
    expect(turned(settled(), plan({ ...settled(), workers: absent }))).toEqual(["Ready False WorkersProgressing", "WorkersReady False WorkersProgressing", "Reconciling True WorkersProgressing"]);
  });

  it("counts timers from the sweep's summary, to two digits", () => {
    const scene = withBroker(settled(), (broker) => ({ ...broker, sweepSummary: found(JSON.stringify({ waiting: 1_234_567, elapsed: 340, overdue: 0 })) }));
    const busy = withConsumer(scene, "resume", (consumer) => ({ ...consumer, pending: 12_345, waitingPulls: 0 }));
    expect(plan(busy).status.timers).toEqual({ waiting: "1.2M", awaitingFeedback: "340", overdue: "0", resumesPending: "12k", resumePullers: "Absent" });
  });

  it("ignores a summary that it cannot read", () => {
    const scene = withBroker(settled(), (broker) => ({ ...broker, sweepSummary: found("{not json") }));
    expect(plan(scene).status.timers).toEqual(valueOf(found(plan(settled()).status.timers)));
  });
});
