/** The conformance suite against real servers. Each combination is a file of its own, so that they run side by side. */
import { openBroker } from "../../src/nats/core/connection.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { startServers } from "../servers.ts";
import type { ServerVersion } from "../servers.ts";
import { describeJetStream, eventually, ms } from "./jetstream.ts";
import type { ConformanceBroker } from "./jetstream.ts";

/** Runs the suite against `count` servers of a version; a single one has every acknowledgement on disk. */
export function describeRealServers(version: ServerVersion, count: 1 | 3): void {
  describeJetStream(`${version} NATS server, ${String(count)} of them`, () => openServers(version, count));
}

async function openServers(version: ServerVersion, count: 1 | 3): Promise<ConformanceBroker> {
  const servers = await startServers({ version, count, ...(count === 1 ? { syncInterval: "always" } : {}) });
  const connection = openBroker({ servers: servers.urls, name: "conformance" }, { clock: systemClock, random: systemRandom });
  const connected = await connection.connected(ms(30_000));
  if (connected.kind === "failed") throw connected.failure;
  return {
    connection,
    replicas: count,
    crash: async () => {
      const epoch = connection.epoch();
      await servers.crash();
      await eventually("the connection is back", () => connection.isConnected() && connection.epoch() > epoch, 30_000);
    },
    close: async () => {
      await connection.close();
      await servers.stop();
    },
  };
}
