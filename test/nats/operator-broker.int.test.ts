import { describe, expect, onTestFinished, test } from "vitest";
import type { EpochMs } from "../../src/base/units.ts";
import { natsBrokerPort } from "../../src/nats/operator-broker.ts";
import type { BrokerObservation } from "../../src/operator/plan/observed.ts";
import type { BrokerSession } from "../../src/operator/ports.ts";
import { consumerNames, leaseKeys, stateSubject, streamNames } from "../../src/protocol/names.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { creationOrder } from "../../src/topology/desired.ts";
import { eventually, message, ms, never } from "../conformance/jetstream.ts";
import { startServers } from "../servers.ts";
import type { NatsServers, ServersOptions } from "../servers.ts";
import { waiting } from "../timer/records.ts";
import { freshKey, openBed, topologyFor } from "./bed.ts";

async function open(options: ServersOptions = {}): Promise<{ readonly servers: NatsServers; readonly session: BrokerSession }> {
  const servers = await startServers(options);
  const session = natsBrokerPort({ clock: systemClock, random: systemRandom }).open({ servers: servers.urls, name: "operator" });
  onTestFinished(async () => {
    await session.close();
    await servers.stop();
  });
  await session.observe(never);
  return { servers, session };
}

/** Creates everything as the operator does. */
async function provision(session: BrokerSession, servers: NatsServers): Promise<void> {
  for (const item of creationOrder(topologyFor(servers))) {
    const { config } = item;
    expect(await (item.kind === "stream" ? session.createStream(config) : session.createConsumer({ stream: item.stream, config }))).toEqual({ kind: "done" });
  }
}

type Reached = Extract<BrokerObservation, { readonly kind: "reached" }>;

async function observe(session: BrokerSession): Promise<Reached> {
  const observation = await session.observe(never);
  if (observation.kind !== "reached") throw new Error(observation.failure.message);
  return observation;
}

const kinds = (looked: Readonly<Record<string, { readonly kind: string }>>): readonly string[] => [...new Set(Object.values(looked).map(({ kind }) => kind))];

describe("an observation", () => {
  test("of an empty broker finds nothing, and says so of each thing", async () => {
    const { session } = await open();
    const observed = await observe(session);
    expect(observed).toMatchObject({ ownerKey: { kind: "absent" }, sweepSummary: { kind: "absent" }, stateRecord: { kind: "absent" } });
    expect([kinds(observed.streams), kinds(observed.consumers)]).toEqual([["absent"], ["absent"]]);
    expect(observed.facts).toMatchObject({ isClustered: false, serverCount: 1, accountName: "$G", storageBytes: 0, storageBytesReserved: 0 });
    expect(Math.abs(observed.brokerTimeMs - Date.now())).toBeLessThan(30_000);
  });

  test.each([{ version: "recommended", count: 1 }, { version: "floor", count: 1 }, { version: "recommended", count: 3 }] as const)("of a provisioned broker ($version, $count) finds everything", async (options) => {
    const { session, servers } = await open(options);
    await provision(session, servers);
    expect(await session.writeOwnerKey("test/test/test")).toEqual({ kind: "done" });
    const observed = await observe(session);
    expect([kinds(observed.streams), kinds(observed.consumers)]).toEqual([["found"], ["found"]]);
    expect(observed).toMatchObject({ ownerKey: { kind: "found", value: "test/test/test" }, stateRecord: { kind: "absent" }, facts: { isClustered: options.count === 3 } });
    expect(observed.streams.state).toMatchObject({ kind: "found", value: { name: streamNames.state, config: { max_bytes: 64 * 2 ** 20, num_replicas: options.count }, messages: 1 } });
  });

  test("knows whether STATE holds records, notes of our own not counted", async () => {
    const bed = await openBed();
    onTestFinished(() => bed[Symbol.asyncDispose]());
    const session = natsBrokerPort({ clock: systemClock, random: systemRandom }).open({ servers: bed.servers.urls, name: "operator" });
    onTestFinished(() => session.close());
    await bed.ports.notes.write({ name: leaseKeys.sweepSummary, text: "summary", expected: 0 });
    expect(await observe(session)).toMatchObject({ stateRecord: { kind: "absent" }, sweepSummary: { kind: "found", value: "summary" } });
    await bed.ports.state.write([{ key: freshKey(), record: waiting() }]);
    expect(await observe(session)).toMatchObject({ stateRecord: { kind: "found" } });
    await bed.connection.jetStream.publish([message(stateSubject(leaseKeys.sweepSummary), { headers: [["KV-Operation", "DEL"]] })]);
    expect(await observe(session)).toMatchObject({ sweepSummary: { kind: "absent" } });
  });

  test("tells a read of STATE that failed from a STATE without records", async () => {
    const user = `{ user: a, password: a, permissions: { publish: { deny: ["$JS.API.STREAM.MSG.GET.>", "$JS.API.DIRECT.GET.>"] } } }`;
    const { session, servers } = await open({ config: `accounts { APP { jetstream: enabled, users: [ ${user} ] } }\nno_auth_user: a` });
    await provision(session, servers);
    expect(await observe(session)).toMatchObject({ stateRecord: { kind: "failed" }, ownerKey: { kind: "failed" } });
  });

  test("of a broker that is away counts for how long, from the loss to the next answer", async () => {
    const { session, servers } = await open();
    await observe(session);
    let changeCount = 0;
    onTestFinished(session.onChange(() => (changeCount += 1)));
    await servers.servers[0]?.kill();
    await eventually("the loss is told", () => changeCount === 1);
    const first = await session.observe(never);
    expect(first).toMatchObject({ kind: "unreached", failure: { kind: "transient", code: "BROKER_UNREACHABLE" } });
    const second = await session.observe(never);
    const lostForMs = [first, second].map((observation) => (observation.kind === "unreached" ? observation.lostForMs : -1));
    expect(lostForMs[0]).toBeGreaterThan(0);
    expect(lostForMs[1]).toBeGreaterThan(lostForMs[0] ?? 0);
    await servers.servers[0]?.start();
    await eventually("the return is told", () => changeCount === 2);
    await observe(session);
  });

  test("is given up when it is no longer wanted", async () => {
    const session = natsBrokerPort({ clock: systemClock, random: systemRandom }).open({ servers: ["nats://127.0.0.1:1"], name: "operator" });
    onTestFinished(() => session.close());
    const stop = new AbortController();
    const observing = session.observe(stop.signal);
    stop.abort();
    await expect(observing).rejects.toMatchObject({ name: "AbortError" });
  });
});

describe("a change", () => {
  test("of what is there already as wanted is done, and never takes what belongs to another configuration", async () => {
    const { session, servers } = await open();
    await provision(session, servers);
    await provision(session, servers);
    const [state] = topologyFor(servers, "two").streams;
    expect(await session.createStream(state?.config ?? {})).toMatchObject({ kind: "failed", failure: { kind: "conflict", code: "STREAM_EXISTS" } });
    expect(await session.updateStream(state?.config ?? {})).toEqual({ kind: "done" });
    expect((await observe(session)).streams.state).toMatchObject({ value: { config: { metadata: { "durable_timer.incarnation": "two" } } } });
  });

  test("of what is not there fails and creates nothing", async () => {
    const { session, servers } = await open();
    const topology = topologyFor(servers);
    expect(await session.updateStream(topology.streams[0]?.config ?? {})).toMatchObject({ kind: "failed", failure: { code: "STREAM_MISSING" } });
    await session.createStream(topology.streams.find(({ role }) => role === "commands")?.config ?? {});
    const consumer = topology.consumers.find(({ role }) => role === "start");
    expect(await session.updateConsumer({ stream: streamNames.commands, config: consumer?.config ?? {} })).toMatchObject({ kind: "failed", failure: { code: "CONSUMER_MISSING" } });
  });

  test("that the server does not carry out is a missing feature, however friendly the answer", async () => {
    const { session, servers } = await open();
    const config = topologyFor(servers).streams[0]?.config ?? {};
    // Sealing at creation is passed over in silence by every version.
    expect(await session.createStream({ ...config, sealed: true })).toMatchObject({ kind: "failed" });
    expect((await session.createStream(config)).kind).toBe("done");
  });

  test("pauses the resume consumer until an instant, and opens it", async () => {
    const { session, servers } = await open();
    const untilMs = (Math.floor(Date.now() / 1_000) * 1_000 + 60_000) as EpochMs;
    const topology = topologyFor(servers);
    await session.createStream(topology.streams.find(({ role }) => role === "resumes")?.config ?? {});
    const resume = topology.consumers.find(({ role }) => role === "resume");
    const pause_until = new Date(untilMs).toISOString();
    expect(await session.createConsumer({ stream: streamNames.resumes, config: { ...resume?.config, pause_until } })).toEqual({ kind: "done" });
    expect((await observe(session)).consumers.resume).toMatchObject({ kind: "found", value: { isPaused: true, pausedUntilMs: untilMs } });
    const target = { stream: streamNames.resumes, consumer: consumerNames.resume };
    expect(await session.pauseConsumer({ ...target, untilMs: (untilMs + 5_000) as EpochMs })).toEqual({ kind: "done" });
    expect((await observe(session)).consumers.resume).toMatchObject({ value: { pausedUntilMs: untilMs + 5_000 } });
    expect(await session.pauseConsumer({ ...target, untilMs: 1_000 as EpochMs })).toEqual({ kind: "done" });
    await eventually("it is open", async () => {
      const { resume: looked } = (await observe(session)).consumers;
      return looked.kind === "found" && !looked.value.isPaused && looked.value.pausedUntilMs === undefined;
    });
  });

  test("writes the owner's key once, over a marker too, and never over another owner's", async () => {
    const bed = await openBed();
    onTestFinished(() => bed[Symbol.asyncDispose]());
    const session = natsBrokerPort({ clock: systemClock, random: systemRandom }).open({ servers: bed.servers.urls, name: "operator" });
    onTestFinished(() => session.close());
    await session.observe(never);
    expect([await session.writeOwnerKey("a"), await session.writeOwnerKey("a")]).toEqual([{ kind: "done" }, { kind: "done" }]);
    expect(await session.writeOwnerKey("b")).toMatchObject({ kind: "failed", failure: { kind: "conflict", code: "STORE_CONFLICT" } });
    await bed.connection.jetStream.publish([message(stateSubject(leaseKeys.owner), { headers: [["KV-Operation", "DEL"]], body: new Uint8Array(0) })]);
    expect(await session.writeOwnerKey("b")).toEqual({ kind: "done" });
    expect((await observe(session)).ownerKey).toEqual({ kind: "found", value: "b" });
  });

  test("that cannot be sent fails as transient", async () => {
    const session = natsBrokerPort({ clock: systemClock, random: systemRandom }).open({ servers: ["nats://127.0.0.1:1"], name: "operator" });
    onTestFinished(() => session.close());
    await systemClock.sleep(ms(50));
    expect(await session.createStream({ name: "S" })).toMatchObject({ kind: "failed", failure: { kind: "transient" } });
    expect(await session.writeOwnerKey("a")).toMatchObject({ kind: "failed", failure: { kind: "transient" } });
  });
});
