import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openBroker } from "../../../src/nats/core/connection.ts";
import type { BrokerConnection } from "../../../src/nats/core/jetstream.ts";
import { systemClock } from "../../../src/system/clock.ts";
import { systemRandom } from "../../../src/system/random.ts";
import { consumerConfig, eventually, message, ms, must, never } from "../../conformance/jetstream.ts";
import { leaderOf, startServers } from "../../servers.ts";
import type { NatsServers } from "../../servers.ts";

let servers: NatsServers;
let connection: BrokerConnection;

beforeAll(async () => {
  servers = await startServers({ count: 3, syncInterval: "always" });
  connection = openBroker({ servers: servers.urls, name: "test" }, { clock: systemClock, random: systemRandom });
  must(await connection.connected(ms(30_000)));
});
afterAll(async () => {
  await connection.close();
  await servers.stop();
});

describe("three servers of which one dies", () => {
  // Whatever was acknowledged is delivered once more or settled, whichever server led the stream.
  test("lose nothing that was stored, and sources and publishers go on by themselves", { timeout: 120_000 }, async () => {
    const { jetStream, admin } = connection;
    must(await admin.createStream({ name: "Q", subjects: ["q.>"], retention: "workqueue", num_replicas: 3 }));
    must(await admin.createConsumer("Q", { ...consumerConfig, ack_wait: 2_000_000_000 }));
    const source = jetStream.openSource({ stream: "Q", consumer: consumerConfig.durable_name, lookahead: 50 });
    const acknowledged = new Set<string>();
    const stop = new AbortController();
    const consuming = (async () => {
      while (!stop.signal.aborted) {
        for (const delivered of await source.take({ max: 50, expiresMs: ms(200), signal: stop.signal })) {
          if (delivered.settle({ kind: "ack" })) acknowledged.add(delivered.message.subject);
        }
      }
    })();

    const stored = new Set<string>();
    const publish = async (round: number): Promise<void> => {
      const messages = Array.from({ length: 50 }, (_, index) => message(`q.${String(round)}.${String(index)}`));
      const outcomes = await jetStream.publish(messages);
      for (const [index, outcome] of outcomes.entries()) if (outcome.kind === "stored") stored.add(messages[index]?.subject ?? "");
    };
    for (let round = 0; round < 10; round += 1) await publish(round);
    const leader = await leaderOf(servers, "Q");
    await leader.kill();
    await eventually("the others have a leader", async () => {
      await publish(Math.floor(performance.now()));
      const told = await jetStream.streamState("Q");
      return told.kind === "told" && told.value.leader !== undefined && told.value.leader !== leader.name;
    }, 60_000);
    for (let round = 100; round < 110; round += 1) await publish(round);
    expect(stored.size).toBeGreaterThanOrEqual(950);

    // An acknowledgement may have been lost with the server; then the message comes again.
    await eventually("everything that was stored came", () => [...stored].every((subject) => acknowledged.has(subject)), 60_000);
    await eventually("the queue is empty", async () => {
      const told = await jetStream.streamState("Q");
      return told.kind === "told" && told.value.messages === 0;
    }, 60_000);
    stop.abort();
    await consuming;
    await source.close();
    await leader.start();
  });

  test("still answer reads of the leader, while one of them is away", { timeout: 120_000 }, async () => {
    const { jetStream, admin } = connection;
    await eventually("a stream can be made", async () => (await admin.createStream({ name: "R", subjects: ["r.>"], num_replicas: 3, allow_direct: true })).kind === "told", 30_000);
    await eventually("it takes messages", async () => (await jetStream.publish([message("r.a")]))[0]?.kind === "stored", 30_000);
    const leader = await leaderOf(servers, "R");
    await leader.kill();
    await eventually("the next leader answers", async () => {
      const [last] = await jetStream.readLast({ stream: "R", subjects: ["r.a"], from: "leader" });
      return last?.kind === "found";
    }, 60_000);
    let walkedCount = 0;
    for await (const part of jetStream.scan({ stream: "R", filter: "r.>", batchSize: 10, signal: never })) walkedCount += part.length;
    expect(walkedCount).toBeGreaterThanOrEqual(1);
    await leader.start();
  });
});
