// A real NATS server with the product's streams and consumers, a client of ours on it, and a bare connection to look with.

import { connectTimers, type TimerClient, type TimersOptions } from "../../src/client/index.ts";
import { openBroker } from "../../src/nats/core/connection.ts";
import type { BrokerConnection, Told } from "../../src/nats/core/jetstream.ts";
import { readResourceFile } from "../../src/local/resource-file.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { creationOrder, desiredTopology } from "../../src/topology/desired.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { startServers, type NatsServers, type ServersOptions } from "../servers.ts";

export type Provisioned = AsyncDisposable & {
  readonly servers: NatsServers;
  /** For looking and for playing the worker's part. */
  readonly broker: BrokerConnection;
  connect(options?: Partial<TimersOptions>): Promise<TimerClient>;
};

/** Starts servers and provisions them; `spec` is YAML of the resource's spec. */
export async function provision(options: ServersOptions & { readonly spec?: string } = {}): Promise<Provisioned> {
  const servers = await startServers(options);
  const broker = openBroker({ servers: servers.urls, name: "test" }, { clock: systemClock, random: systemRandom });
  const clients: TimerClient[] = [];
  must(await broker.connected(10_000 as DurationMs));
  const incarnation = "test";
  const topology = desiredTopology({
    spec: specOf(options.spec ?? "{}"),
    owner: { id: "test/local/test", uid: "u" },
    incarnations: { state: incarnation, commands: incarnation, feedback: incarnation, snapshots: incarnation, terminals: incarnation, schedules: incarnation, resumes: incarnation },
  });
  for (const part of creationOrder(topology)) {
    if (part.kind === "stream") must(await broker.admin.createStream(part.config));
    else must(await broker.admin.createConsumer(part.stream, part.config));
  }
  return {
    servers,
    broker,
    connect: async (more = {}) => {
      const client = await connectTimers({ servers: servers.urls, ...more });
      clients.push(client);
      return client;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(clients.map((client) => client.close()));
      await broker.close();
      await servers.stop();
    },
  };
}

export function must<T>(told: Told<T>): T {
  if (told.kind === "failed") throw told.failure;
  return told.value;
}

function specOf(spec: string) {
  const file = readResourceFile(`apiVersion: durabletimer.dev/v1alpha1\nkind: DurableTimer\nmetadata: {name: test}\nspec: ${spec}`, "nats://127.0.0.1:4222");
  if (!file.ok) throw new Error(file.problems.join("; "));
  return file.manifest.spec;
}
