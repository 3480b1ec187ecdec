import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { utf8 } from "../../../src/base/bytes.ts";
import { openBroker } from "../../../src/nats/core/connection.ts";
import type { BrokerConnection } from "../../../src/nats/core/jetstream.ts";
import type { Link } from "../../../src/nats/core/link.ts";
import { NatsPullSource } from "../../../src/nats/core/pull.ts";
import { Session } from "../../../src/nats/core/session.ts";
import { systemClock } from "../../../src/system/clock.ts";
import { systemRandom } from "../../../src/system/random.ts";
import { consumerConfig, eventually, message, ms, must, takeExactly } from "../../conformance/jetstream.ts";
import { startServers } from "../../servers.ts";
import type { NatsServers } from "../../servers.ts";

let servers: NatsServers;
let connection: BrokerConnection;

beforeAll(async () => {
  servers = await startServers();
  connection = openBroker({ servers: servers.urls, name: "test" }, { clock: systemClock, random: systemRandom });
  must(await connection.connected(ms(30_000)));
});
afterAll(async () => {
  await connection.close();
  await servers.stop();
});

/** Its first request never reaches the consumer, and yet has heartbeats: as if the server had forgotten what it owes. */
class ForgottenSession extends Session {
  #requestCount = 0;
  #beating: NodeJS.Timeout | undefined;

  get requestCount(): number {
    return this.#requestCount;
  }

  override send(sent: Parameters<Session["send"]>[0]): boolean {
    if (!sent.subject.includes(".CONSUMER.MSG.NEXT.")) return super.send(sent);
    this.#requestCount += 1;
    clearInterval(this.#beating);
    if (this.#requestCount > 1 || sent.reply === undefined) return super.send(sent);
    const { reply } = sent;
    this.#beating = setInterval(() => { super.send({ subject: reply, body: utf8("") }); }, 500);
    return true;
  }

  stopBeating(): void {
    clearInterval(this.#beating);
  }
}

describe("a consumer that delivers nothing although it is asked and messages wait", () => {
  test("is asked anew and reported, and itself left alone", { timeout: 120_000 }, async () => {
    must(await connection.admin.createStream({ name: "STALLED", subjects: ["STALLED.>"], retention: "workqueue" }));
    const before = must(await connection.admin.createConsumer("STALLED", { ...consumerConfig }));
    await connection.jetStream.publish([message("STALLED.a"), message("STALLED.b")]);
    const client = await connect({ servers: [...servers.urls] });
    const identity = connection.identity();
    if (identity === undefined) throw new Error("no identity");
    const session = new ForgottenSession({ connection: client, identity, epoch: 1, inboxPrefix: "_INBOX.test", clock: systemClock, random: systemRandom });
    const link: Link = {
      clock: systemClock, random: systemRandom, session: () => session, epoch: () => 1, whyNot: () => undefined, apiPrefix: "$JS.API",
      onSession: (listener) => { listener(session); return () => undefined; },
    };
    let stallCount = 0;
    const source = new NatsPullSource(link, { stream: "STALLED", consumer: consumerConfig.durable_name, lookahead: 10, onStalled: () => { stallCount += 1; } });
    try {
      // The heartbeats keep the request alive, so silence alone makes nothing new of it: what comes, comes of the stall.
      const taken = await takeExactly(source, 2, 60_000);
      expect(taken.map(({ message: { subject }, deliveryCount }) => [subject, deliveryCount])).toEqual([["STALLED.a", 1], ["STALLED.b", 1]]);
      expect(stallCount).toBeGreaterThanOrEqual(1);
      expect(session.requestCount).toBeGreaterThan(stallCount);
      for (const delivered of taken) delivered.settle({ kind: "ack" });
      await eventually("an empty queue", async () => must(await connection.jetStream.streamState("STALLED")).messages === 0, 30_000);
      expect(must(await connection.jetStream.consumerState("STALLED", consumerConfig.durable_name)).createdAt).toBe(before.createdAt);
    } finally {
      session.stopBeating();
      await source.close();
      await client.close();
    }
  });
});
