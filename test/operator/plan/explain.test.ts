import { describe, expect, it } from "vitest";
import { resumePauseMs } from "../../../src/base/limits.ts";
import { explainAction, explainPlan } from "../../../src/operator/plan/explain.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import { statedPauseUntilMs } from "../../../src/operator/plan/pauses.ts";
import {
  empty, nowMs, outage, paused, settled, stamp, stampedAll, unreached, withConsumer, withData, withMetadata, withSpec, withStatus, withStream, withStreamConfig, withWorkers,
} from "./scenes.ts";

const golden = (name: string): string => `../../golden/plan-${name}.txt`;

describe("explainPlan", () => {
  it("reads well for an empty account", async () => {
    await expect(explainPlan(plan(empty()))).toMatchFileSnapshot(golden("empty-account"));
  });

  it("reads well when there is nothing to do", async () => {
    await expect(explainPlan(plan(settled()))).toMatchFileSnapshot(golden("settled"));
  });

  it("reads well for a loss", async () => {
    const text = explainPlan(plan(withStream(withData(settled()), "commands", undefined)));
    await expect(text.replace(/lost-commands-[0-9a-f]{8}/g, "lost-commands-<facts>")).toMatchFileSnapshot(golden("lost-commands"));
  });

  it("reads well for somebody else's streams", async () => {
    await expect(explainPlan(plan(withMetadata(settled(), "state", stamp("c2/payments/orders"))))).toMatchFileSnapshot(golden("owned-by-another"));
  });

  it("reads well for an outage that is held", async () => {
    await expect(explainPlan(plan(unreached(settled(), outage, 10_000)))).toMatchFileSnapshot(golden("held-outage"));
  });

  it("reads well for a change of almost everything", async () => {
    const asked = withSpec(settled(), { topology: { streams: { terminals: { maxBytes: "30Gi" } } }, admission: { state: "Closed" }, resume: { ackWaitSeconds: 90 } });
    const drifted = withWorkers(withStreamConfig(withConsumer(asked, "wake", undefined), "state", { max_age: 5 }), { drift: ["spec.replicas", "spec.template"] });
    await expect(explainPlan(plan(drifted))).toMatchFileSnapshot(golden("many-changes"));
  });

  it("has words for every kind of action", () => {
    const adopting = withStatus(stampedAll(settled({ topology: { adoption: { policy: "IfUnowned" } } }), {}), () => empty().resource.status);
    const scenes = [
      empty(), adopting, withStreamConfig(settled(), "terminals", { max_bytes: 5 }), withSpec(settled(), { resume: { ackWaitSeconds: 90 } }),
      withSpec(settled(), { admission: { state: "Closed" } }), withConsumer(settled(), "start", paused(statedPauseUntilMs)), withWorkers(settled(), { drift: ["image"] }),
      withConsumer(settled(), "resume", paused(nowMs + resumePauseMs)),
    ];
    const actions = scenes.flatMap((scene) => plan(scene).actions);
    expect(new Set(actions.map(({ kind }) => kind))).toEqual(new Set([
      "CreateStream", "UpdateStream", "AdoptStream", "WriteOwnerKey", "CreateConsumer", "UpdateConsumer", "PauseConsumer", "UnpauseConsumer", "ApplyWorkers",
    ]));
    expect(actions.map(explainAction).filter((text) => /undefined|\[object/.test(text))).toEqual([]);
  });
});
