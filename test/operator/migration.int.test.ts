// From one replica to three and back, on three real servers, with schedules in the stream and an operator that dies in between.

import { afterEach, describe, expect, it } from "vitest";
import { apiTimeoutMs } from "../../src/base/limits.ts";
import { openBroker } from "../../src/nats/core/connection.ts";
import { consumerNames, streamNames } from "../../src/protocol/names.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { stampKeys } from "../../src/topology/stamp.ts";
import type { FakeCluster } from "../fakes/cluster.ts";
import type { Patch } from "../resource/examples.ts";
import { startServers, type NatsServers } from "../servers.ts";
import { Operator, orders, small, Somebody } from "./nats-bed.ts";
import { spec } from "./plan/scenes.ts";

const withReplicas = (replicas: number): Patch => ({ ...small, topology: { ...(small["topology"] as Patch), replicas } });
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Bed = { readonly servers: NatsServers; readonly operator: Operator; readonly somebody: Somebody; readonly cluster: FakeCluster };

/** Three servers and a resource that is settled on one replica. */
async function openBed(): Promise<Bed> {
  const servers = await startServers({ count: 3 });
  closers.push(async () => await servers.stop());
  const connection = openBroker({ servers: servers.urls, name: "somebody" }, { clock: systemClock, random: systemRandom });
  closers.push(async () => await connection.close());
  expect((await connection.connected(apiTimeoutMs)).kind).toBe("told");
  const operator = operatorOn(servers);
  operator.cluster.put(orders, spec(withReplicas(1)));
  await until(operator, "Ready True Serving");
  return { servers, operator, somebody: new Somebody(connection, servers.urls), cluster: operator.cluster };
}

function operatorOn(servers: NatsServers, cluster?: FakeCluster): Operator {
  const operator = new Operator(servers.urls, cluster);
  closers.push(async () => await operator.sessions.closeAll());
  return operator;
}

async function until(operator: Operator, condition: string): Promise<void> {
  const look = async (): Promise<readonly string[]> => {
    const result = await operator.pass();
    return [result, ...operator.conditions()];
  };
  await expect.poll(look, { timeout: 120_000, interval: 300 }).toEqual(expect.arrayContaining([condition]));
}

async function settled(operator: Operator): Promise<void> {
  await expect.poll(async () => [await operator.pass(), operator.conditions()[0], operator.conditions().some((text) => text.startsWith("Reconciling"))], { timeout: 120_000, interval: 300 }).toEqual(["unchanged", "Ready True Serving", false]);
}

describe("replicas", { timeout: 300_000 }, () => {
  it("grow from one to three: SCHEDULES is made anew, everything else stays, and Ready does not flap", async () => {
    const { operator, somebody, cluster } = await openBed();
    const before = await somebody.stream(streamNames.schedules);
    const state = await somebody.stream(streamNames.state);
    expect(before.config["persist_mode"]).toBe("async");
    const { length } = cluster.statuses;
    cluster.put(orders, spec(withReplicas(3)));
    await settled(operator);
    const after = await somebody.stream(streamNames.schedules);
    expect([after.config["num_replicas"], after.config["persist_mode"] ?? "default", after.config["allow_msg_schedules"]]).toEqual([3, "default", true]);
    expect((await somebody.metadata(streamNames.schedules))[stampKeys.incarnation]).not.toBe((before.config["metadata"] as Record<string, string>)[stampKeys.incarnation]);
    expect((await somebody.stream(streamNames.state)).createdAt).toBe(state.createdAt);
    expect((await somebody.consumer(streamNames.schedules, consumerNames.wake)).name).toBe(consumerNames.wake);
    const written = cluster.statuses.slice(length);
    const steps = [...new Set(written.map(({ migration }) => migration?.step ?? "none"))];
    expect(steps.filter((step) => step !== "Waiting" && step !== "none")).toEqual(["Purging", "Draining", "Recreating"]);
    expect(written.at(-1)).not.toHaveProperty("migration");
    expect(new Set(written.map(({ conditions }) => conditions?.find(({ type }) => type === "Ready")?.status))).toEqual(new Set(["True"]));
    expect(cluster.status(orders)?.incidents).toEqual([]);
  });

  it("shrink from three to one and keep the stream; grow again in place", async () => {
    const { operator, somebody, cluster } = await openBed();
    cluster.put(orders, spec(withReplicas(3)));
    await settled(operator);
    const wide = await somebody.stream(streamNames.schedules);
    cluster.put(orders, spec(withReplicas(1)));
    await settled(operator);
    const narrow = await somebody.stream(streamNames.schedules);
    expect([narrow.createdAt, narrow.config["num_replicas"]]).toEqual([wide.createdAt, 1]);
    cluster.put(orders, spec(withReplicas(3)));
    await settled(operator);
    const again = await somebody.stream(streamNames.schedules);
    expect([again.createdAt, again.config["num_replicas"]]).toEqual([wide.createdAt, 3]);
  });

  it("that the cluster does not have are refused, and nothing is harmed", async () => {
    const { servers, operator, somebody, cluster } = await openBed();
    const lives = async (): Promise<readonly string[]> => await Promise.all(Object.values(streamNames).map(async (name) => (await somebody.stream(name)).createdAt));
    const before = await lives();
    cluster.put(orders, spec(withReplicas(5)));
    await until(operator, "Reconciling True ReplicasUnavailable");
    expect(operator.message("Reconciling")).toContain("spec.topology.replicas");
    expect({ lives: await lives(), schedules: (await somebody.stream(streamNames.schedules)).config["num_replicas"] }).toEqual({ lives: before, schedules: 1 });
    cluster.put(orders, spec(withReplicas(1)));
    await settled(operator);
    await servers.crash();
    await expect.poll(async () => await lives().catch(() => []), { timeout: 120_000, interval: 500 }).toEqual(before);
  });
});

describe("an operator that dies while it migrates", { timeout: 300_000 }, () => {
  const writes = ["purgeStream", "deleteStream", "createStream", "createConsumer"] as const;
  it.each(writes)("before %s: the next one goes on", async (write) => {
    const { servers, operator, somebody, cluster } = await openBed();
    cluster.put(orders, spec(withReplicas(3)));
    operator.broker.dieBefore = write;
    const died = async (): Promise<boolean> => await operator.pass().then(() => false, () => true);
    await expect.poll(died, { timeout: 120_000, interval: 200 }).toBe(true);
    const next = operatorOn(servers, cluster);
    await settled(next);
    const after = await somebody.stream(streamNames.schedules);
    expect([after.config["num_replicas"], cluster.status(orders)?.migration, cluster.status(orders)?.incidents]).toEqual([3, undefined, []]);
    expect((await somebody.consumer(streamNames.schedules, consumerNames.wake)).name).toBe(consumerNames.wake);
  });
});
