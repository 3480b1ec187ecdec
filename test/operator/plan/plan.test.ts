import { describe, expect, it } from "vitest";
import { resumePauseMs } from "../../../src/base/limits.ts";
import type { Observed } from "../../../src/operator/plan/observed.ts";
import { statedPauseUntilMs } from "../../../src/operator/plan/pauses.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import { isSameStatus } from "../../../src/operator/plan/status.ts";
import { stampKeys } from "../../../src/topology/stamp.ts";
import { absent, check, empty, nowMs, ownerText, paused, provisionedBroker, settled, spec, turned, withBroker, withConsumer, withData, withStream, withStreamConfig } from "./scenes.ts";
import type { Row } from "./scenes.ts";

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
});
