import { describe, expect, it } from "vitest";
import { lookAgainMs, migrationDrainMsMax } from "../../../src/base/limits.ts";
import type { EpochMs } from "../../../src/base/units.ts";
import type { MigrationStatus } from "../../../src/operator/plan/migration.ts";
import type { Observed } from "../../../src/operator/plan/observed.ts";
import { plan, planAfterFailures } from "../../../src/operator/plan/plan.ts";
import { present } from "../../../src/base/assert.ts";
import { stampKeys } from "../../../src/topology/stamp.ts";
import { actionTexts, check, nowMs, outage, provisionedBroker, settled, spec, withBroker, withConsumer, withFacts, withSpec, withStatus, withStream } from "./scenes.ts";
import type { Row } from "./scenes.ts";

/** Settled on one replica; then three are wanted. */
const wanting = (replicas = 3): Observed => withFacts(withSpec(settled(), { topology: { replicas } }), { isClustered: true, serverCount: 5 });

/** Every other stream has them. */
function scaled(replicas = 3): Observed {
  const wide = provisionedBroker(spec({ topology: { replicas } }));
  return withBroker(wanting(replicas), (broker) => ({ ...broker, streams: { ...wide.streams, schedules: broker.streams.schedules } }));
}

const at = (step: MigrationStatus["step"], sinceMs = nowMs as number): MigrationStatus => ({ kind: "SchedulesReplicas", from: 1, to: 3, step, since: new Date(sinceMs).toISOString().replace(".000Z", "Z") });
const inStep = (scene: Observed, migration: MigrationStatus): Observed => withStatus(scene, (status) => status && { ...status, migration });
const busy = (scene: Observed): Observed => withConsumer(scene, "wake", (consumer) => ({ ...consumer, ackPending: 2 }));

const purge = "Purge durable_timer.schedule.v1.> of stream DURABLE_TIMER_SCHEDULES";
const recreate = [purge, "Delete stream DURABLE_TIMER_SCHEDULES", "Create stream DURABLE_TIMER_SCHEDULES", "Create consumer DURABLE_TIMER_WAKE_SERVICE on DURABLE_TIMER_SCHEDULES"];
const migrating = ["Reconciling True Migrating", "InSync False Drifted"];

describe("more replicas of SCHEDULES", () => {
  const rows: readonly Row[] = [
    { name: "begin when every other stream has them", scene: scaled, actions: [purge], turns: migrating, requeueAfterMs: lookAgainMs, because: "nothing new fires from here on" },
    { name: "wait for a replica that is not well", scene: () => withStream(scaled(), "state", (stream) => ({ ...stream, replicas: stream.replicas.map((replica) => ({ ...replica, isOffline: true })) })), actions: [], turns: [...migrating.slice(0, 1), "ReplicasHealthy False ReplicaOffline", ...migrating.slice(1)], requeueAfterMs: lookAgainMs, because: "what is deleted could not be made anew" },
    { name: "wait for wakes that are being worked on", scene: () => busy(inStep(scaled(), at("Draining"))), actions: [], turns: migrating, requeueAfterMs: lookAgainMs, because: "an unacknowledged wake may be the only memory of a resume" },
    { name: "do not wait for them for ever", scene: () => busy(inStep(scaled(), at("Draining", nowMs - migrationDrainMsMax))), actions: recreate, turns: migrating, requeueAfterMs: lookAgainMs, because: "the sweep knows what they owe" },
    { name: "make it anew once it is drained", scene: () => inStep(scaled(), at("Draining")), actions: recreate, turns: migrating, requeueAfterMs: lookAgainMs, because: "in one go, so that it is away as shortly as possible" },
    { name: "go on where an earlier operator stopped", scene: () => inStep(scaled(), at("Recreating")), actions: recreate, turns: migrating, requeueAfterMs: lookAgainMs, because: "each step may be done twice" },
    { name: "begin anew for another number", scene: () => inStep(scaled(5), at("Draining")), actions: [purge], turns: migrating, requeueAfterMs: lookAgainMs, because: "the migration in the status was another one" },
    { name: "need no migration where it is not asynchronous", scene: () => withStream(scaled(), "schedules", (stream) => ({ ...stream, config: { ...stream.config, persist_mode: "default", allow_atomic: true } })), actions: ["Update stream DURABLE_TIMER_SCHEDULES (num_replicas)"], turns: ["Reconciling True Provisioning", "InSync False Drifted"], because: "it grows in place" },
    { name: "are as desired afterwards", scene: () => withBroker(scaled(), () => provisionedBroker(spec({ topology: { replicas: 3 } }))), actions: [], turns: ["ReplicasHealthy True AllCurrent"], because: "nothing is left to do" },
  ];
  it.each(rows)("$name", ({ turns, ...row }) => check({ ...row, turns: row.name === "begin when every other stream has them" || turns.length > 0 ? withHealth(row.scene(), turns) : turns }));

  it("record each step, and when it began", () => {
    const steps: (MigrationStatus | undefined)[] = [];
    let scene: Observed = busy(scaled());
    for (let count = 0; count < 4; count += 1) {
      const { status } = plan(scene);
      steps.push(status.migration);
      scene = { ...withStatus(scene, () => status), nowMs: (scene.nowMs + 30_000) as EpochMs };
    }
    expect(steps.map((one) => [one?.step, Date.parse(one?.since ?? "") - nowMs])).toEqual([["Purging", 0], ["Draining", 30_000], ["Draining", 30_000], ["Recreating", 90_000]]);
  });

  it("forget the migration when it has ended, or is no longer wanted", () => {
    const ended = inStep(withBroker(scaled(), () => provisionedBroker(spec({ topology: { replicas: 3 } }))), at("Recreating"));
    const taken = inStep(settled(), at("Draining"));
    expect([plan(ended).status.migration, plan(taken).status.migration]).toEqual([undefined, undefined]);
  });

  it("make SCHEDULES in another life, so that the workers sweep", () => {
    const created = plan(inStep(scaled(), at("Draining"))).actions.find(({ kind }) => kind === "CreateStream");
    const config = created?.kind === "CreateStream" ? created.config : {};
    expect(config).toMatchObject({ num_replicas: 3, persist_mode: "default", allow_atomic: true, metadata: { [stampKeys.incarnation]: "newlife000" } });
  });

  it("make a SCHEDULES that is gone already, and wait for nothing", () => {
    const cut = withStream(inStep(scaled(), at("Recreating")), "schedules", undefined);
    expect(actionTexts(plan(cut))).toEqual(recreate.slice(2));
    expect(plan(cut).status.migration).toBeUndefined();
  });

  it("repeat a purge that failed, and take no step while paused", () => {
    const scene = scaled();
    const [action] = plan(scene).actions;
    const after = planAfterFailures(scene, [{ action: present(action, "a purge"), failure: outage }]);
    expect(after.status.migration).toBeUndefined();
    const resting = { ...scene, resource: { ...scene.resource, annotations: { "durabletimer.dev/paused": "true" } } };
    expect([plan(resting).actions, plan(resting).status.migration]).toEqual([[], undefined]);
  });

  it("touch nothing that lost what it held", () => {
    const lost = withStream(withStatus(scaled(), (status) => status && { ...status, topology: { layoutVersion: 1, streams: (status.topology?.streams ?? []).map((entry) => ({ ...entry, everHeldData: true })) } }), "terminals", undefined);
    expect(actionTexts(plan(lost)).filter((text) => !text.startsWith("Pause"))).toEqual([]);
  });
});

/** A stream with followers is no longer a single replica. */
function withHealth(observed: Observed, turns: readonly string[]): readonly string[] {
  const { status } = plan(observed);
  const health = (status.conditions ?? []).filter(({ type }) => type === "ReplicasHealthy").map(({ status: is, reason }) => `ReplicasHealthy ${is} ${reason}`);
  const [first = "", ...rest] = turns;
  return turns.some((text) => text.startsWith("ReplicasHealthy")) || health[0] === "ReplicasHealthy True SingleReplica" ? turns : [first, ...health, ...rest];
}
