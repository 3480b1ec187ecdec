import { describe, expect, it } from "vitest";
import { plan } from "../../../src/operator/plan/plan.ts";
import { stampKeys } from "../../../src/topology/stamp.ts";
import { check, empty, oldIncarnation, ownerText, provisionedBroker, settled, spec, stamp, stampedAll, withData, withMetadata, withStatus } from "./scenes.ts";
import type { Row } from "./scenes.ts";

describe("ownership", () => {
  const refused = (reason: string): readonly string[] => [
    `Ready False ${reason}`, `TopologyReady False ${reason}`, "ResumeOpen False WaitingForTopology", `Stalled True ${reason}`,
    "AdmissionOpen Unknown NotObserved", "ReplicasHealthy Unknown NotObserved", "CapacityOK Unknown NotObserved", "InSync Unknown NotObserved",
  ];
  const foreign = stamp("c2/payments/orders");
  const names = ["KV_DURABLE_TIMER_STATE", "DURABLE_TIMER_SNAPSHOTS", "DURABLE_TIMER_TERMINALS", "DURABLE_TIMER_SCHEDULES", "DURABLE_TIMER_RESUMES", "DURABLE_TIMER_FEEDBACK", "DURABLE_TIMER_COMMANDS"];
  const rows: readonly Row[] = [
    { name: "a STATE of another owner is not touched", scene: () => withMetadata(settled(), "state", foreign), actions: [], turns: refused("OwnedByAnother"), because: "the stamp in STATE wins" },
    { name: "another owner's other stream is not touched", scene: () => withMetadata(settled(), "terminals", foreign), actions: [], turns: refused("OwnedByAnother"), because: "half of a topology is of no use" },
    { name: "a stream of nobody is not taken by default", scene: () => withMetadata(settled(), "state", {}), actions: [], turns: refused("AdoptionRefused"), because: "a name alone proves nothing" },
    { name: "IfUnowned does not take what somebody owns", scene: () => withMetadata(settled({ topology: { adoption: { policy: "IfUnowned" } } }), "state", foreign), actions: [], turns: refused("OwnedByAnother"), because: "the policy speaks of streams of nobody" },
    { name: "FromOwner does not take from a third", scene: () => withMetadata(settled({ topology: { adoption: { policy: "FromOwner", fromOwner: "c3/x/y" } } }), "state", foreign), actions: [], turns: refused("OwnedByAnother"), because: "only the named owner is meant" },
    { name: "a layout of a newer version is not touched", scene: () => withMetadata(settled(), "state", stamp(ownerText, { [stampKeys.layoutVersion]: "2" })), actions: [], turns: refused("StreamIncompatible"), because: "an older operator would take the change back for ever" },
    { name: "a layout of a newer version is not taken over", scene: () => withMetadata(settled({ topology: { adoption: { policy: "FromOwner", fromOwner: "c2/payments/orders" } } }), "state", { ...foreign, [stampKeys.layoutVersion]: "2" }), actions: [], turns: refused("StreamIncompatible"), because: "the policy allows the owner, and nobody here knows the layout" },
    {
      name: "FromOwner takes every stream of the named owner over",
      scene: () => { const scene = withStatus(stampedAll(settled({ topology: { adoption: { policy: "FromOwner", fromOwner: "c2/payments/orders" } } }), foreign), (status) => ({ ...status, observedGeneration: 3, topology: undefined as never })); return scene; },
      actions: names.map((name) => `Take over stream ${name} from c2/payments/orders`), turns: ["Reconciling True Provisioning", "InSync False Drifted"], because: "the policy names this owner",
    },
    {
      name: "IfUnowned takes streams of nobody over",
      scene: () => withStatus(stampedAll(settled({ topology: { adoption: { policy: "IfUnowned" } } }), {}), (status) => ({ ...status, observedGeneration: 3, topology: undefined as never })),
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
    const scene = withStatus(stampedAll(settled({ topology: { adoption: { policy: "FromOwner", fromOwner: "c2/payments/orders" } } }), foreign), () => empty().resource.status);
    const marks = plan(scene).actions.map((action) => (action.kind === "AdoptStream" ? (action.config["metadata"] as Record<string, string>)[stampKeys.incarnation] : undefined));
    expect(new Set(marks)).toEqual(new Set([oldIncarnation]));
  });

  it("sees no loss in streams of nobody that held data and were just stamped", () => {
    const adopting = withStatus(stampedAll(withData(settled({ topology: { adoption: { policy: "IfUnowned" } } })), {}), () => empty().resource.status);
    const after = plan(adopting);
    const stamped = withStatus({ ...adopting, broker: withData(settled()).broker ?? provisionedBroker(spec()) }, () => after.status);
    const restamped = stampedAll(stamped, stamp(ownerText, { [stampKeys.incarnation]: "newlife000", [stampKeys.ownerUid]: "uid-1" }));
    expect(plan(restamped).status.incidents).toEqual([]);
  });
});
