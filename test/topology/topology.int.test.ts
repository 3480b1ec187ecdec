/**
 * What this room renders, on real servers: they accept it, report it so that nothing differs, and change in place what the
 * comparison calls an update and refuse what it calls immutable.
 */
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { DurationMs } from "../../src/base/units.ts";
import { openBroker } from "../../src/nats/core/connection.ts";
import type { BrokerConnection, Told } from "../../src/nats/core/jetstream.ts";
import { streamNames } from "../../src/protocol/names.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { creationOrder } from "../../src/topology/desired.ts";
import { consumerUpdates, diffConsumer, diffStream, streamUpdates } from "../../src/topology/diff.ts";
import type { ConsumerSpec, ServerConfig, StreamSpec, Topology } from "../../src/topology/layout.ts";
import { unmetRequirements, type ReportedConsumers, type ReportedStreams } from "../../src/topology/requirements.ts";
import { startServers, type NatsServers, type ServerVersion } from "../servers.ts";
import { consumerOf, smallStreams, streamOf, topologyOf } from "./input.ts";

function value<T>(told: Told<T>): T {
  if (told.kind === "failed") throw told.failure;
  return told.value;
}

async function create(broker: BrokerConnection, wanted: StreamSpec | ConsumerSpec): Promise<ServerConfig> {
  if (wanted.kind === "stream") return value(await broker.admin.createStream(wanted.config)).config;
  return value(await broker.admin.createConsumer(wanted.stream, wanted.config)).config;
}

async function createAll(broker: BrokerConnection, topology: Topology): Promise<void> {
  for (const wanted of creationOrder(topology)) await create(broker, wanted);
}

async function reported(broker: BrokerConnection, wanted: StreamSpec | ConsumerSpec): Promise<ServerConfig> {
  if (wanted.kind === "stream") return value(await broker.jetStream.streamState(wanted.name)).config;
  return value(await broker.jetStream.consumerState(wanted.stream, wanted.name)).config;
}

/** Everything that differs from what is wanted, by name. */
async function differences(broker: BrokerConnection, topology: Topology): Promise<readonly string[]> {
  const found = await Promise.all(
    creationOrder(topology).map(async (wanted) => {
      const config = await reported(broker, wanted);
      const differing = wanted.kind === "stream" ? diffStream(wanted, config) : diffConsumer(wanted, config);
      return differing.map(({ field, desired, actual }) => `${wanted.name}.${field}: ${JSON.stringify(desired)} / ${JSON.stringify(actual)}`);
    }),
  );
  return found.flat();
}

const tiers: readonly { readonly version: ServerVersion; readonly count: 1 | 3 }[] = [
  { version: "recommended", count: 1 },
  { version: "floor", count: 1 },
  { version: "recommended", count: 3 },
  { version: "floor", count: 3 },
];

describe.each(tiers)("$count server(s) of the $version version", ({ version, count }) => {
  const sized = { topology: { replicas: count, streams: smallStreams } };
  let servers: NatsServers;
  let broker: BrokerConnection;

  beforeAll(async () => {
    servers = await startServers({ version, count });
    broker = openBroker({ servers: servers.urls, name: "topology" }, { clock: systemClock, random: systemRandom });
    value(await broker.connected(10_000 as DurationMs));
  });

  afterEach(async () => {
    for (const name of Object.values(streamNames)) await broker.admin.deleteStream(name);
  });

  afterAll(async () => {
    await broker.close();
    await servers.stop();
  });

  it("accept everything in the order of creation, and report it without a difference", async () => {
    const topology = topologyOf(sized);
    for (const wanted of creationOrder(topology)) {
      const answer = await create(broker, wanted);
      if (wanted.kind === "stream") expect(diffStream(wanted, answer), `${wanted.name} comes back with every feature`).toEqual([]);
    }
    expect(await differences(broker, topology)).toEqual([]);
  });

  it("report what a worker needs", async () => {
    const topology = topologyOf(sized);
    await createAll(broker, topology);
    const streams = await Promise.all(topology.streams.map(async (wanted) => [wanted.role, await reported(broker, wanted)] as const));
    const consumers = await Promise.all(topology.consumers.map(async (wanted) => [wanted.role, await reported(broker, wanted)] as const));
    expect(unmetRequirements(Object.fromEntries(streams) as ReportedStreams, Object.fromEntries(consumers) as ReportedConsumers)).toEqual([]);
  });

  it("are brought from one spec to another by the updates, and then nothing differs", async () => {
    await createAll(broker, topologyOf(sized));
    const changed = topologyOf({
      topology: { replicas: count, streams: { ...smallStreams, state: { maxBytes: "8Mi" }, resumes: { maxBytes: "2Mi" } } },
      resume: { ackWaitSeconds: 5, maxAckPending: 7 },
      workers: { maxAckPending: 11 },
    });
    expect((await differences(broker, changed)).length).toBe(7);
    await repair(broker, changed);
    expect(await differences(broker, changed)).toEqual([]);
  });

  it("are repaired after somebody changed them by hand, and other settings of that person stay", async () => {
    const topology = topologyOf(sized);
    await createAll(broker, topology);
    const state = streamOf("state", sized);
    const start = consumerOf("start", sized);
    const hand = { ...(await reported(broker, state)), discard: "old", max_age: 3_600_000_000_000, allow_direct: false, description: "by hand", compression: "s2" };
    value(await broker.admin.updateStream(hand));
    value(await broker.admin.updateConsumer(start.stream, { ...(await reported(broker, start)), max_deliver: 3, backoff: [1_000_000_000], headers_only: true }));
    expect((await differences(broker, topology)).map((text) => text.replace(/:.*/, ""))).toEqual([
      `${state.name}.max_age`, `${state.name}.discard`, `${state.name}.allow_direct`,
      `${start.name}.max_deliver`, `${start.name}.ack_wait`, `${start.name}.backoff`, `${start.name}.headers_only`,
    ]);
    await repair(broker, topology);
    expect(await differences(broker, topology)).toEqual([]);
    expect(await reported(broker, state)).toMatchObject({ description: "by hand", compression: "s2" });
  });

  it("refuse to change what the comparison calls immutable", async () => {
    const topology = topologyOf(sized);
    await createAll(broker, topology);
    const state = streamOf("state", sized);
    const schedules = streamOf("schedules", sized);
    const wake = consumerOf("wake", sized);
    const otherMode = count === 1 ? "default" : "async";
    const refused = [
      await broker.admin.updateStream({ ...state.config, storage: "memory" }),
      await broker.admin.updateStream({ ...state.config, retention: "workqueue" }),
      await broker.admin.updateStream({ ...schedules.config, persist_mode: otherMode, allow_atomic: false }),
      await broker.admin.updateConsumer(wake.stream, { ...wake.config, deliver_policy: "new" }),
      await broker.admin.updateConsumer(wake.stream, { ...wake.config, ack_policy: "none" }),
      await broker.admin.updateConsumer(wake.stream, { ...wake.config, max_waiting: 64 }),
    ];
    expect(refused.map(({ kind }) => kind)).toEqual(refused.map(() => "failed"));
    expect(await differences(broker, topology)).toEqual([]);
  });

  it("never deliver what a wrong filter passed over, until the consumer is made anew", async () => {
    const schedules = streamOf("schedules", sized);
    const wake = consumerOf("wake", sized);
    await create(broker, schedules);
    await create(broker, { ...wake, config: { ...wake.config, filter_subject: `${subjectPrefix}other.>` } });
    await publishWakes(broker, ["flow.a", "other.b"]);
    expect(await takeAll(broker, wake)).toEqual(["other.b"]);

    value(await broker.admin.updateConsumer(wake.stream, wake.config));
    await publishWakes(broker, ["flow.c"]);
    expect(await takeAll(broker, wake)).toEqual(["flow.c"]);

    await deleteConsumer(servers, wake);
    await create(broker, wake);
    expect(await takeAll(broker, wake)).toEqual(["flow.a"]);
  });
});

const subjectPrefix = "durable_timer.wake.v1.";

async function publishWakes(broker: BrokerConnection, tokens: readonly string[]): Promise<void> {
  for (const token of tokens) {
    const [outcome] = await broker.jetStream.publish([{ subject: `${subjectPrefix}${token}`, headers: [], body: new Uint8Array() }]);
    expect(outcome?.kind).toBe("stored");
  }
}

/** What the consumer delivers until it has nothing pending; acknowledged. */
async function takeAll(broker: BrokerConnection, { stream, name }: ConsumerSpec): Promise<readonly string[]> {
  const source = broker.jetStream.openSource({ stream, consumer: name, lookahead: 8 });
  const delivered = await source.take({ max: 8, expiresMs: 10_000 as DurationMs, signal: new AbortController().signal });
  for (const message of delivered) message.settle({ kind: "ack" });
  await source.close();
  return delivered.map(({ message }) => message.subject.slice(subjectPrefix.length));
}

/** As a person does it: the product itself has no way to delete a consumer. */
async function deleteConsumer(servers: NatsServers, { stream, name }: ConsumerSpec): Promise<void> {
  const connection = await connect({ servers: [...servers.urls] });
  await (await jetstreamManager(connection)).consumers.delete(stream, name);
  await connection.close();
}

/** Sends the updates that the comparison asks for. */
async function repair(broker: BrokerConnection, topology: Topology): Promise<void> {
  for (const wanted of topology.streams) {
    for (const config of streamUpdates(wanted, await reported(broker, wanted))) value(await broker.admin.updateStream(config));
  }
  for (const wanted of topology.consumers) {
    for (const config of consumerUpdates(wanted, await reported(broker, wanted))) value(await broker.admin.updateConsumer(wanted.stream, config));
  }
}
