/** A broker with the streams and consumers of a DurableTimer, and the worker's ports to it. */
import type { DurationMs } from "../../src/base/units.ts";
import { openBroker } from "../../src/nats/core/connection.ts";
import type { BrokerConnection } from "../../src/nats/core/jetstream.ts";
import { openWorkerPorts } from "../../src/nats/worker-ports.ts";
import { streamNames } from "../../src/protocol/names.ts";
import type { StreamRole } from "../../src/protocol/names.ts";
import { parseSpec } from "../../src/resource/validate.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import type { TimerKey } from "../../src/timer/identity.ts";
import { creationOrder, desiredTopology } from "../../src/topology/desired.ts";
import type { Topology } from "../../src/topology/layout.ts";
import { unmetRequirements } from "../../src/topology/requirements.ts";
import { readStamp } from "../../src/topology/stamp.ts";
import type { WorkerPorts } from "../../src/worker/ports.ts";
import { must } from "../conformance/jetstream.ts";
import { startServers } from "../servers.ts";
import type { NatsServers, ServersOptions } from "../servers.ts";

export type Bed = AsyncDisposable & { readonly servers: NatsServers; readonly connection: BrokerConnection; readonly ports: WorkerPorts; readonly topology: Topology };

export async function openBed(options: ServersOptions = {}): Promise<Bed> {
  const servers = await startServers(options);
  const connection = openBroker({ servers: servers.urls, name: "bed" }, { clock: systemClock, random: systemRandom });
  must(await connection.connected(10_000 as DurationMs));
  const topology = topologyFor(servers);
  await create(connection, topology);
  const ports = openWorkerPorts(connection, { clock: systemClock, rules, lookahead: 100 });
  return {
    servers, connection, ports, topology,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(Object.values(ports.sources).map((source) => source.close()));
      await connection.close();
      await servers.stop();
    },
  };
}

/** What the topology room tells the probe. */
export const rules = { unmetRequirements, readStamp };

export function topologyFor(servers: NatsServers, incarnation = "one"): Topology {
  const size = { maxBytes: "64Mi" };
  const parsed = parseSpec({
    nats: { servers: servers.urls },
    topology: { replicas: servers.servers.length, streams: { state: size, commands: size, feedback: size, snapshots: size, terminals: size, resumes: size } },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const incarnations = Object.fromEntries(Object.keys(streamNames).map((role) => [role, incarnation])) as Record<StreamRole, string>;
  return desiredTopology({ spec: parsed.spec, owner: { id: "test/test/test", uid: "test" }, incarnations });
}

export async function create(connection: BrokerConnection, topology: Topology): Promise<void> {
  for (const item of creationOrder(topology)) {
    if (item.kind === "stream") must(await connection.admin.createStream(item.config));
    else must(await connection.admin.createConsumer(item.stream, item.config));
  }
}

/** A key that no other test uses. */
export function freshKey(flow = "orders"): TimerKey {
  return { flow, ref: systemRandom.token(32) };
}
