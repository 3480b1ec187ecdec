import { describe, expect, it } from "vitest";
import type { EpochMs } from "../../../src/base/units.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import { firstStatus, invalidStatus, isSameStatus } from "../../../src/operator/plan/status.ts";
import { gateTypes } from "../../../src/resource/conditions.ts";
import { statusSchema } from "../../../src/resource/status.ts";
import { conditionTexts, empty, nowMs, outage, settled, unreached, withData, withSpec, withStatus, withStream, withWorkers } from "./scenes.ts";

describe("the status", () => {
  it("fits its schema in every scene, and survives being stored", () => {
    const scenes = [empty(), settled(), withData(settled()), withStream(withData(settled()), "state", undefined), unreached(settled(), outage, 60_000), settled({ topology: { replicas: 3 } })];
    for (const scene of scenes) {
      const { status } = plan(scene);
      const stored = statusSchema.parse(JSON.parse(JSON.stringify(status)));
      expect(isSameStatus(stored, status)).toBe(true);
    }
  });

  it("speaks of the generation that it was made from", () => {
    const { status } = plan(withSpec(settled(), { resume: { ackWaitSeconds: 90 } }));
    expect({ observed: status.observedGeneration, of: new Set(status.conditions?.map(({ observedGeneration }) => observedGeneration)) }).toEqual({ observed: 4, of: new Set([4]) });
  });

  it("moves a transition time only when its status flips", () => {
    const later = { ...settled(), nowMs: (nowMs + 3_600_000) as EpochMs };
    const times = (status: typeof later.resource.status): readonly (string | undefined)[] => ["WorkersReady", "TopologyReady"].map((type) => status?.conditions?.find((one) => one.type === type)?.lastTransitionTime);
    expect(times(plan(withWorkers(later, { readyReplicas: 0 })).status)).toEqual(["2026-11-30T21:00:00Z", "2026-11-30T20:00:00Z"]);
    expect(isSameStatus(later.resource.status, plan(later).status)).toBe(true);
  });

  it("remembers whose streams they are", () => {
    expect(plan(settled()).status.owner).toEqual({ id: "c1/payments/orders", uid: "uid-1" });
  });

  it("says what the broker is", () => {
    expect(plan(settled()).status.broker).toEqual({ accountName: "PAYMENTS", version: "2.15.2", apiLevel: 5 });
  });

  it("keeps parts that a newer operator wrote and this one does not know", () => {
    const scene = withStatus(settled(), (status) => ({ ...status, forecast: { step: "Recreating" } }) as typeof status);
    expect(plan(scene).status).toMatchObject({ forecast: { step: "Recreating" } });
  });
});

describe("firstStatus", () => {
  it("shows everything as Unknown and the look as under way", () => {
    const texts = conditionTexts(firstStatus({ generation: 1 }, nowMs));
    expect(texts.filter((text) => !text.endsWith("Unknown NotObserved"))).toEqual(["Reconciling True NotObserved"]);
    expect(["Ready", ...gateTypes].every((type) => texts.includes(`${type} Unknown NotObserved`))).toBe(true);
  });
});

describe("invalidStatus", () => {
  it("names the fields in a fixed order and keeps what runs", () => {
    const { resource } = settled();
    const status = invalidStatus(resource, ["spec.b is wrong.", "spec.a is wrong."], nowMs);
    expect(status.conditions?.find(({ type }) => type === "Stalled")?.message).toBe("spec.a is wrong. spec.b is wrong.");
    expect(conditionTexts(status)).toEqual(expect.arrayContaining(["Ready False SpecInvalid", "WorkersReady True WorkersAvailable"]));
    expect(status.topology).toEqual(resource.status?.topology);
    expect(isSameStatus(status, invalidStatus({ ...resource, status }, ["spec.a is wrong.", "spec.b is wrong."], nowMs))).toBe(true);
  });
});

describe("isSameStatus", () => {
  it("compares by content", () => {
    const { status } = plan(settled());
    expect(isSameStatus(undefined, status)).toBe(false);
    expect(isSameStatus(JSON.parse(JSON.stringify(status)) as typeof status, status)).toBe(true);
    expect(isSameStatus({ ...status, observedGeneration: 9 }, status)).toBe(false);
    expect(isSameStatus({ ...status, incidents: [{ id: "a", kind: "b", message: "c" }] }, status)).toBe(false);
  });
});
