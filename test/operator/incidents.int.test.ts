// Losses on a real server that only a restart, or a look at the numbers, brings to light.

import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { present } from "../../src/base/assert.ts";
import { lookAgainMs } from "../../src/base/limits.ts";
import { commandSubjects, consumerNames, streamNames } from "../../src/protocol/names.ts";
import { openBroker } from "../../src/nats/core/connection.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import type { NatsServers } from "../servers.ts";
import { gatesOpen, orders, small, withServer } from "./nats-bed.ts";
import type { Operator } from "./nats-bed.ts";
import { spec } from "./plan/scenes.ts";

/** The server as it was when `during` began: what was acknowledged meanwhile is lost, as with a disk that lied. */
async function rolledBack(servers: NatsServers, during: () => Promise<void>): Promise<void> {
  const server = present(servers.servers[0], "a server");
  const folder = mkdtempSync(join(tmpdir(), "durable-timer-rollback-"));
  const before = join(folder, "store");
  try {
    await server.stop();
    cpSync(server.storeDir, before, { recursive: true });
    await server.start();
    await during();
    await server.stop();
    rmSync(server.storeDir, { recursive: true });
    cpSync(before, server.storeDir, { recursive: true });
    await server.start();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function publishAs(urls: readonly string[], subject: string): Promise<void> {
  const sender = openBroker({ servers: urls, name: "sender" }, { clock: systemClock, random: systemRandom });
  await sender.connected(30_000 as never, new AbortController().signal);
  const [outcome] = await sender.jetStream.publish([{ subject, headers: [], body: new Uint8Array(10) }]);
  expect(outcome?.kind).toBe("stored");
  await sender.close();
}

const until = async (operator: Operator, condition: string): Promise<void> => {
  const look = async (): Promise<readonly string[]> => {
    await operator.pass();
    return operator.conditions();
  };
  await expect.poll(look, { timeout: 24 * lookAgainMs, interval: 500 }).toContain(condition);
};

it("a server that comes back without its last writes is an incident, and starts are held until a person accepts it", { timeout: 300_000 }, async () => {
  await withServer({}, {}, async ({ servers, operator }) => {
    await operator.settle();
    await rolledBack(servers, async () => {
      await until(operator, "Ready True Serving");
      await publishAs(servers.urls, commandSubjects.start);
      await operator.settle();
    });
    await until(operator, "Ready False TopologyLost");
    const { incidents = [] } = operator.cluster.status(orders) ?? {};
    expect(incidents.map(({ id }) => id.replace(/-[0-9a-f]{8}$/, ""))).toEqual(["rewound-commands"]);
    await until(operator, "AdmissionOpen False ClosedByIncident");
    operator.cluster.put(orders, spec({ ...small, acknowledge: incidents.map(({ id }) => id) }));
    await until(operator, "Ready True Serving");
    await until(operator, "AdmissionOpen True Open");
    expect(operator.cluster.status(orders)?.incidents).toEqual([]);
  });
});

it("a stream of the same life that was made again is a restore: an event, and no incident", async () => {
  await withServer({}, {}, async ({ operator, somebody }) => {
    await operator.settle();
    await somebody.publish(commandSubjects.start);
    await operator.settle();
    const { config } = await somebody.stream(streamNames.commands);
    const consumer = await somebody.consumer(streamNames.commands, consumerNames.start);
    await somebody.deleteStream(streamNames.commands);
    await somebody.createStream(config);
    expect(consumer.name).toBe(consumerNames.start);
    await operator.settle();
    expect({ conditions: operator.conditions().slice(0, 6), incidents: operator.cluster.status(orders)?.incidents }).toEqual({ conditions: gatesOpen, incidents: [] });
    expect(operator.cluster.events.filter(({ reason }) => reason === "Restored").map(({ message }) => message)).toEqual([`Stream ${streamNames.commands} was restored from a backup.`]);
  });
});
