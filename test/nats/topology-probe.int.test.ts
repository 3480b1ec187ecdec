import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { payloadHeadroomBytes } from "../../src/base/limits.ts";
import { consumerNames, streamNames } from "../../src/protocol/names.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { openBroker } from "../../src/nats/core/connection.ts";
import { natsTopologyProbe } from "../../src/nats/topology-probe.ts";
import type { BrokerConnection } from "../../src/nats/core/jetstream.ts";
import { eventually, must } from "../conformance/jetstream.ts";
import { create, openBed, rules, topologyFor } from "./bed.ts";
import type { Bed } from "./bed.ts";

let bed: Bed;
beforeAll(async () => {
  bed = await openBed();
});
afterAll(() => bed[Symbol.asyncDispose]());

describe("the topology", () => {
  test("is usable when everything is there, and tells which life of SCHEDULES this is", async () => {
    const finding = await bed.ports.topology.check();
    expect(finding).toMatchObject({ kind: "usable", payloadBytesMax: 2 ** 20 - payloadHeadroomBytes, schedules: { incarnation: "one", lastSequence: 0 } });
    expect(finding.kind === "usable" && finding.schedules.serverId).toBe(bed.connection.identity()?.serverId);
  });

  test("shows another life of SCHEDULES, and a broker that was started anew", async () => {
    const before = await bed.ports.topology.check();
    const { connection } = bed;
    must(await connection.admin.deleteStream(streamNames.schedules));
    expect(await bed.ports.topology.check()).toMatchObject({ kind: "unusable", problems: [expect.stringContaining(streamNames.schedules), expect.stringContaining(consumerNames.wake)] });
    const again = topologyFor(bed.servers, "two");
    await create(connection, { streams: again.streams.filter(({ role }) => role === "schedules"), consumers: again.consumers.filter(({ role }) => role === "wake") });
    const epoch = connection.epoch();
    await bed.servers.crash();
    await eventually("the connection is back", () => connection.epoch() > epoch && connection.isConnected());
    const after = await bed.ports.topology.check();
    expect(after).toMatchObject({ kind: "usable", schedules: { incarnation: "two" } });
    expect(before.kind === "usable" && after.kind === "usable" && [before.schedules.serverId === after.schedules.serverId, before.schedules.createdAt === after.schedules.createdAt]).toEqual([false, false]);
  });

  test("is unusable with every missing part named", async () => {
    must(await bed.connection.admin.deleteStream(streamNames.feedback));
    const finding = await bed.ports.topology.check();
    expect(finding).toMatchObject({ kind: "unusable", problems: [`stream ${streamNames.feedback} does not exist`, `consumer ${consumerNames.feedback} does not exist`] });
  });

  test("is unusable on a broker that is too old, with what to install", async () => {
    const { connection } = bed;
    const older = {
      ...connection, jetStream: connection.jetStream,
      identity: () => ({ ...connection.identity(), version: "2.12.3" }),
    } as unknown as BrokerConnection;
    const finding = await natsTopologyProbe({ connection: older, rules, onStream: () => undefined }).check();
    expect(finding).toMatchObject({ kind: "unusable", problems: [expect.stringMatching(/2\.12\.3: install NATS server 2\.14\.4 or newer/) as unknown] });
  });

  test("is unreachable, and not unusable, while the broker is silent", async () => {
    const connection = openBroker({ servers: ["nats://127.0.0.1:1"], name: "nobody" }, { clock: systemClock, random: systemRandom });
    expect(await natsTopologyProbe({ connection, rules, onStream: () => undefined }).check()).toMatchObject({ kind: "unreachable", failure: { kind: "transient" } });
    await connection.close();
  });

  test("lets what it read be learnt from", async () => {
    const seen: string[] = [];
    await natsTopologyProbe({ connection: bed.connection, rules, onStream: ({ name }) => seen.push(name) }).check();
    expect(seen).toContain(streamNames.state);
  });
});
