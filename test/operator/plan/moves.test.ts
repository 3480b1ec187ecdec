import { describe, expect, it } from "vitest";
import type { Observed } from "../../../src/operator/plan/observed.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import { actionTexts, check, empty, provisionedBroker, settled, spec, streamRoles, withBroker, withData, withFacts, withStatus, withWorkers } from "./scenes.ts";
import type { Row } from "./scenes.ts";

/** The connection leads to an account in which there is nothing. */
function elsewhere(observed: Observed, accountName = "OTHER"): Observed {
  const nothing = empty().broker ?? observed.broker;
  return withFacts({ ...observed, ...(nothing === undefined ? {} : { broker: nothing }) }, { accountName });
}

const idOf = (observed: Observed): string => plan(observed).status.incidents?.[0]?.id ?? "none";
const acknowledged = (observed: Observed): Observed => ({ ...observed, resource: { ...observed.resource, spec: spec({ acknowledge: [idOf(observed)] }) } });

describe("moves to another broker", () => {
  const told = [
    "Ready False BrokerChanged", "TopologyReady False BrokerChanged", "ResumeOpen False WaitingForTopology", "Stalled True BrokerChanged",
    "AdmissionOpen Unknown NotObserved", "ReplicasHealthy Unknown NotObserved", "CapacityOK Unknown NotObserved", "InSync Unknown NotObserved",
  ];
  const rows: readonly Row[] = [
    { name: "servers that lead to another account are one incident, and nothing is made there", scene: () => elsewhere(withData(settled())), actions: [], turns: told, because: "an empty twin would look healthy while every timer is in the account of before" },
    { name: "workers stay where the timers are", scene: () => withWorkers(elsewhere(withData(settled())), { drift: ["configuration"] }), actions: [], turns: told, because: "they would find nothing to work on" },
    { name: "another cluster is a move as well", scene: () => withFacts(elsewhere(withData(settled()), "PAYMENTS"), { clusterName: "eu-2", isClustered: true, serverCount: 3 }), actions: [], turns: told, because: "accounts of two clusters may have one name" },
    { name: "a stale acknowledgement does nothing", scene: () => { const scene = elsewhere(withData(settled())); return { ...scene, resource: { ...scene.resource, spec: spec({ acknowledge: [idOf(elsewhere(withData(settled()), "THIRD"))] }) } }; }, actions: [], turns: told, because: "it spoke of another account" },
  ];
  it.each(rows)("$name", check);

  it("are none when the streams came along", () => {
    const renamed = withFacts(withData(settled()), { accountName: "RENAMED" });
    expect(plan(renamed)).toMatchObject({ actions: [], status: { incidents: [], broker: { accountName: "RENAMED" } } });
  });

  it("are none before anything was held", () => {
    const moved = plan(elsewhere(settled()));
    expect(moved.status.incidents).toEqual([]);
    expect(actionTexts(moved)).toContain("Create stream KV_DURABLE_TIMER_STATE");
  });

  it("keep the broker of before in the status until a person accepts the other one", () => {
    const scene = elsewhere(withData(settled()));
    const next = withStatus(scene, () => plan(scene).status);
    expect(next.resource.status?.broker?.accountName).toBe("PAYMENTS");
    expect(idOf(next)).toBe(idOf(scene));
  });

  it("go on there once acknowledged, also when the creation is cut off anywhere", () => {
    const scene = acknowledged(elsewhere(withData(settled())));
    expect(actionTexts(plan(scene)).filter((text) => text.startsWith("Create stream"))).toHaveLength(7);
    const full = provisionedBroker(spec(), "newlife000");
    for (let count = 1; count <= streamRoles.length; count += 1) {
      const made = creation.slice(0, count);
      const partly = withBroker(withStatus(scene, () => plan(scene).status), (broker) => ({
        ...broker, ownerKey: full.ownerKey, streams: { ...broker.streams, ...Object.fromEntries(made.map((role) => [role, full.streams[role]])) },
      }));
      const again = withStatus(partly, () => plan(partly).status);
      expect({ count, incidents: plan(again).status.incidents, stalled: plan(again).status.conditions?.some(({ type }) => type === "Stalled") }).toEqual({ count, incidents: [], stalled: false });
    }
  });

  it("end when everything is there: the status then speaks of the new broker", () => {
    const scene = acknowledged(elsewhere(withData(settled())));
    const { accountName = "" } = { accountName: "OTHER" };
    const there = withFacts({ ...scene, broker: provisionedBroker(spec(), "newlife000") }, { accountName });
    const once = withStatus(there, () => plan(there).status);
    const twice = plan(once);
    expect(twice).toMatchObject({ actions: [], status: { incidents: [], broker: { accountName: "OTHER" } } });
  });
});

const creation = ["state", "snapshots", "terminals", "schedules", "resumes", "feedback", "commands"] as const;
