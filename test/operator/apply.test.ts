import { describe, expect, it } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import type { EpochMs } from "../../src/base/units.ts";
import { apply } from "../../src/operator/apply.ts";
import type { ApplyTools } from "../../src/operator/apply.ts";
import type { Action } from "../../src/operator/plan/action.ts";
import { plan } from "../../src/operator/plan/plan.ts";
import { FakeCluster } from "../fakes/cluster.ts";
import { FakeBroker } from "../fakes/operator-broker.ts";
import { FakeOperatorMetrics } from "../fakes/operator-metrics.ts";
import { empty, settled, withStreamConfig, withWorkers } from "./plan/scenes.ts";

const options = { servers: ["nats://fake:4222"], name: "test" };

function tools(): { readonly cluster: FakeCluster; readonly broker: FakeBroker; readonly session: ReturnType<FakeBroker["open"]>; readonly metrics: FakeOperatorMetrics; readonly resource: ApplyTools["resource"] } {
  const broker = new FakeBroker({ nowMs: () => 1_000 as EpochMs });
  return { cluster: new FakeCluster({ connection: options }), broker, session: broker.open(options), metrics: new FakeOperatorMetrics(), resource: empty().resource };
}

describe("apply", () => {
  it("does every action in order", async () => {
    const bench = tools();
    const { actions } = plan(empty());
    expect(await apply(bench, actions)).toEqual({ done: actions, failed: [] });
    expect(bench.broker.writes[0]).toBe("createStream KV_DURABLE_TIMER_STATE");
    expect(bench.broker.writes).toHaveLength(actions.length);
    expect(new Set(bench.metrics.actions)).toEqual(new Set(["CreateStream done", "WriteOwnerKey done", "CreateConsumer done"]));
  });

  it("stops at the first failure in the broker and says what was done before it", async () => {
    const bench = tools();
    const failure = new Failure("transient", "BROKER_TIMEOUT", "create it");
    bench.broker.plant("createStream DURABLE_TIMER_SNAPSHOTS", failure);
    const { actions } = plan(empty());
    expect(await apply(bench, actions)).toEqual({ done: actions.slice(0, 2), failed: [{ action: actions[2], failure }] });
    expect(bench.broker.writes).toHaveLength(2);
    expect(bench.metrics.actions.at(-1)).toBe("CreateStream failed");
  });

  it("lets neither workers nor broker wait for the other's failure", async () => {
    const scene = withWorkers(withStreamConfig(settled(), "terminals", { max_bytes: 5 }), { drift: ["image"] });
    const { actions } = plan(scene);
    const failure = new Failure("invalid", "CLUSTER_INVALID", "apply them");
    const bench = tools();
    await apply(bench, plan(empty()).actions);
    bench.cluster.failures.set("applyWorkers", failure);
    bench.broker.plant("updateStream DURABLE_TIMER_TERMINALS", failure);
    expect((await apply(bench, actions)).failed.map(({ action }) => action.kind)).toEqual(["ApplyWorkers", "UpdateStream"]);
    expect((await apply(bench, actions)).done.map(({ kind }) => kind)).toEqual(["UpdateStream"]);
    bench.cluster.failures.delete("applyWorkers");
    bench.broker.plant("updateStream DURABLE_TIMER_TERMINALS", failure);
    expect((await apply(bench, actions)).done.map(({ kind }) => kind)).toEqual(["ApplyWorkers"]);
  });

  it("updates workers without any session", async () => {
    const bench = tools();
    const { actions } = plan(withWorkers(settled(), { drift: ["image"] }));
    expect(await apply({ ...bench, session: undefined }, actions)).toEqual({ done: actions, failed: [] });
    expect(bench.cluster.writes).toEqual(["applyWorkers payments/orders"]);
  });

  it("fails what needs a session when there is none", async () => {
    const { failed } = await apply({ ...tools(), session: undefined }, plan(empty()).actions);
    expect(failed[0]?.failure).toMatchObject({ kind: "transient", code: "BROKER_CLOSED" });
  });

  it("resumes a consumer by a pause that has ended", async () => {
    const bench = tools();
    await apply(bench, plan(empty()).actions);
    const target = { role: "resume", stream: "DURABLE_TIMER_RESUMES", consumer: "NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME", because: "of a test" } as const;
    const actions: readonly Action[] = [{ kind: "PauseConsumer", untilMs: 5_000 as EpochMs, ...target }, { kind: "UnpauseConsumer", ...target }];
    await apply(bench, actions.slice(0, 1));
    expect(bench.broker.consumers.get(target.consumer)).toMatchObject({ isPaused: true, pausedUntilMs: 5_000 });
    await apply(bench, actions.slice(1));
    expect(bench.broker.consumers.get(target.consumer)).toMatchObject({ isPaused: false });
  });

  it("deletes no stream when it is not sure to lead", async () => {
    const bench = tools();
    bench.cluster.failures.set("confirmLead", new Failure("conflict", "CLUSTER_CONFLICT", "act as the leader"));
    const action: Action = { kind: "DeleteStream", role: "terminals", stream: "DURABLE_TIMER_TERMINALS", ownerId: "a/b/c", incarnation: "x", isForced: true, because: "a test" };
    await apply(bench, plan(empty()).actions);
    const { length } = bench.broker.writes;
    expect((await apply(bench, [action])).failed).toMatchObject([{ failure: { code: "CLUSTER_CONFLICT" } }]);
    expect(bench.broker.writes).toHaveLength(length);
  });
});
