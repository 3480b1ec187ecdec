// What a chaos run happens on: real servers with the topology of a DurableTimer, real workers, and a client per flow. Every party
// reaches the servers through proxies of its own, which can be cut without touching the others.

import { seededRandom } from "../../src/system/random.ts";
import { openBroker } from "../../src/nats/core/connection.ts";
import { connectTimers } from "../../src/client/connect.ts";
import type { TimerClient } from "../../src/client/client.ts";
import type { BrokerConnection } from "../../src/nats/core/jetstream.ts";
import type { DurableTimerSpec } from "../../src/resource/durable-timer.ts";
import { parseSpec } from "../../src/resource/validate.ts";
import { workerConfigOf } from "../../src/resource/worker-config.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { systemClock } from "../../src/system/clock.ts";
import { openProxy, type FaultProxy } from "../../test/faults/proxy.ts";
import { startServers, type NatsServers } from "../../test/servers.ts";
import { provision, told } from "../../test/worker/world.ts";
import { flowIds } from "./plan.ts";
import { WorkerSlot } from "./workers.ts";

/** Size and rhythm of a run. */
export type BedOptions = {
  readonly serverCount: 1 | 3;
  readonly workerCount: number;
  readonly seed: number;
  /** Acknowledgement wait of commands, feedback and wakes. */
  readonly ackWaitMs: number;
  readonly resumeAckWaitSeconds: number;
  readonly sweepIntervalSeconds: number;
};

/** One party's way to the servers: its name, and a proxy in front of each of them. */
export type Connection = { readonly name: string; readonly proxies: readonly FaultProxy[] };

export type Bed = {
  readonly servers: NatsServers;
  /** Past the proxies, to read with. */
  readonly broker: BrokerConnection;
  readonly workers: readonly WorkerSlot[];
  readonly clients: readonly { readonly flow: string; readonly client: TimerClient }[];
  readonly connections: readonly Connection[];
  close(): Promise<void>;
};

/** Starts everything; workers may still be on their way to readiness. */
export async function openBed(options: BedOptions): Promise<Bed> {
  // Servers tell their clients of each other; a client that followed would walk around its proxies.
  const servers = await startServers({ count: options.serverCount, syncInterval: "always", isAdvertised: false });
  const closers: (() => Promise<void>)[] = [() => servers.stop()];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    return { ...(await furnish(servers, options, closers)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function furnish(servers: NatsServers, options: BedOptions, closers: (() => Promise<void>)[]): Promise<Omit<Bed, "close">> {
  const broker = openBroker({ servers: servers.urls, name: "chaos" }, { clock: systemClock, random: seededRandom(options.seed) });
  closers.push(() => broker.close());
  told(await broker.connected(30_000 as DurationMs));
  const spec = specOf(servers, options);
  await provision(broker, { spec, ackWaitMs: options.ackWaitMs });
  const connect = async (name: string): Promise<Connection> => {
    const proxies = await Promise.all(servers.urls.map(openProxy));
    closers.push(async () => { await Promise.all(proxies.map((proxy) => proxy.close())); });
    return { name, proxies };
  };
  const config = { ...workerConfigOf(spec, { auth: "", ca: "", clientCert: "" }), healthPort: 0 };
  const workers: WorkerSlot[] = [];
  const clients: { flow: string; client: TimerClient }[] = [];
  const connections: Connection[] = [];
  for (let index = 1; index <= options.workerCount; index += 1) {
    const connection = await connect(`worker-${String(index)}`);
    const slot = new WorkerSlot(connection.name, { ...config, nats: { ...config.nats, servers: urlsOf(connection) } });
    closers.push(() => slot.close());
    slot.open();
    workers.push(slot);
    connections.push(connection);
  }
  for (const flow of flowIds) {
    const connection = await connect(`flow ${flow}`);
    const client = await connectTimers({ servers: urlsOf(connection), name: connection.name });
    closers.push(() => client.close());
    clients.push({ flow, client });
    connections.push(connection);
  }
  return { servers, broker, workers, clients, connections };
}

function urlsOf({ proxies }: Connection): readonly string[] {
  return proxies.map(({ url }) => url);
}

function specOf(servers: NatsServers, options: BedOptions): DurableTimerSpec {
  const maxBytes = { maxBytes: "2Gi" };
  const parsed = parseSpec({
    nats: { servers: servers.urls },
    topology: {
      replicas: options.serverCount,
      streams: { state: maxBytes, commands: maxBytes, feedback: maxBytes, snapshots: maxBytes, terminals: maxBytes, resumes: maxBytes },
    },
    resume: { ackWaitSeconds: options.resumeAckWaitSeconds },
    sweep: { intervalSeconds: options.sweepIntervalSeconds, graceSeconds: 2 },
  });
  if (!parsed.ok) throw new Error(`the run's own spec: ${JSON.stringify(parsed.problems)}`);
  return parsed.spec;
}
