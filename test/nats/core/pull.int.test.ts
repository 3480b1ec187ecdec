import { connect, headers, type MsgHdrs } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { custodyTrustMs, messageOverheadBytesMax, pullBackoffMsMax, pullBackoffMsMin, pullBufferBytesMax } from "../../../src/base/limits.ts";
import { openBroker } from "../../../src/nats/core/connection.ts";
import type { BrokerConnection, PullSource } from "../../../src/nats/core/jetstream.ts";
import { systemClock } from "../../../src/system/clock.ts";
import { systemRandom } from "../../../src/system/random.ts";
import { consumerConfig, eventually, message, ms, must, never, takeExactly } from "../../conformance/jetstream.ts";
import { startServers } from "../../servers.ts";
import type { NatsServers } from "../../servers.ts";

let servers: NatsServers;
let connection: BrokerConnection;
let streamCount = 0;

beforeAll(async () => {
  servers = await startServers();
  connection = openBroker({ servers: servers.urls, name: "test" }, { clock: systemClock, random: systemRandom });
  must(await connection.connected(ms(30_000)));
});
afterAll(async () => {
  await connection.close();
  await servers.stop();
});

async function queue(consumer: Readonly<Record<string, unknown>> = {}): Promise<{ readonly stream: string; readonly open: (lookahead: number) => PullSource }> {
  streamCount += 1;
  const stream = `Q${String(streamCount)}`;
  must(await connection.admin.createStream({ name: stream, subjects: [`${stream}.>`], retention: "workqueue" }));
  must(await connection.admin.createConsumer(stream, { ...consumerConfig, ...consumer }));
  return {
    stream,
    open: (lookahead) => {
      const source = connection.jetStream.openSource({ stream, consumer: consumerConfig.durable_name, lookahead });
      onTestFinished(() => source.close());
      return source;
    },
  };
}

describe("a standing pull", () => {
  test("goes on after a server that stood still for longer than its heartbeats", { timeout: 120_000 }, async () => {
    const { stream, open } = await queue();
    const source = open(10);
    expect(await source.take({ max: 1, expiresMs: ms(100), signal: never })).toEqual([]);
    servers.servers[0]?.pause();
    await systemClock.sleep(ms(7_000));
    servers.servers[0]?.resume();
    await eventually("the broker takes messages", async () => (await connection.jetStream.publish([message(`${stream}.a`)]))[0]?.kind === "stored", 30_000);
    expect((await takeExactly(source, 1, 20_000)).length).toBe(1);
  });

  test("holds no more bytes than its bound, and still delivers everything", { timeout: 120_000 }, async () => {
    const { stream, open } = await queue();
    const body = new Uint8Array(1_000_000);
    for (let part = 0; part < 5; part += 1) await connection.jetStream.publish(Array.from({ length: 10 }, (_, index) => message(`${stream}.${String(part * 10 + index)}`, { body })));
    const source = open(100);
    const [first] = await takeExactly(source, 1);
    const held = async (): Promise<number> => must(await connection.jetStream.consumerState(stream, consumerConfig.durable_name)).ackPending;
    await eventually("the buffer is full", async () => (await held()) >= 11);
    await systemClock.sleep(ms(300));
    expect(await held()).toBeLessThanOrEqual(pullBufferBytesMax / body.length + 2);
    const rest = await takeExactly(source, 49, 30_000);
    expect([first, ...rest].map((delivered) => delivered?.message.sequence)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
  });

  test("is not stopped by a message whose sender gave it the status line of a server", async () => {
    const { stream, open } = await queue();
    const client = await connect({ servers: [...servers.urls] });
    onTestFinished(() => client.close());
    for (const code of [409, 503, 408, 100]) await client.request(`${stream}.${String(code)}`, "body", { headers: headers(code, "Consumer Deleted"), timeout: 30_000 });
    const taken = await takeExactly(open(2), 4);
    expect(taken.map(({ message: { subject } }) => subject)).toEqual([409, 503, 408, 100].map((code) => `${stream}.${String(code)}`));
  });

  test("delivers a message whose headers nobody should write like any other", async () => {
    const { stream, open } = await queue();
    const client = await connect({ servers: [...servers.urls] });
    onTestFinished(() => client.close());
    for (const [index, odd] of ["Bad Name: x", ": x"].entries()) {
      const bytes = Buffer.from(`NATS/1.0\r\n${odd}\r\nK: ${String(index)}\r\n\r\n`);
      await client.request(`${stream}.${String(index)}`, "body", { headers: { encode: () => bytes } as unknown as MsgHdrs, timeout: 30_000 });
    }
    const taken = await takeExactly(open(2), 2);
    expect(taken.map(({ message: { headers: received } }) => received.get("K"))).toEqual(["0", "1"]);
  });

  test("keeps what waits in its buffer from being delivered to others", { timeout: 120_000 }, async () => {
    const { stream, open } = await queue({ ack_wait: 13_000_000_000 });
    await connection.jetStream.publish([message(`${stream}.a`), message(`${stream}.b`)]);
    const source = open(2);
    const [first] = await source.take({ max: 1, expiresMs: ms(5_000), signal: never });
    expect(first?.settle({ kind: "ack" })).toBe(true);
    // Longer than the acknowledgement wait: the second message lies in the buffer all the time.
    await systemClock.sleep(ms(15_000));
    const [second] = await takeExactly(source, 1);
    expect([second?.message.subject, second?.deliveryCount]).toEqual([`${stream}.b`, 1]);
    expect(await source.take({ max: 1, expiresMs: ms(500), signal: never })).toEqual([]);
  });

  test("hands back what waits in its buffer while it is paused", { timeout: 120_000 }, async () => {
    const { stream, open } = await queue();
    await connection.jetStream.publish(["a", "b", "c"].map((name) => message(`${stream}.${name}`)));
    const [paused, other] = [open(3), open(3)];
    expect(await paused.take({ max: 1, expiresMs: ms(5_000), signal: never })).toHaveLength(1);
    paused.pause();
    expect((await takeExactly(other, 2, 10_000)).map(({ message: { subject } }) => subject).sort()).toEqual([`${stream}.b`, `${stream}.c`]);
  });

  test("ends its request when it is paused: what comes afterwards goes to others at once", { timeout: 120_000 }, async () => {
    const { stream, open } = await queue();
    const [paused, other] = [open(50), open(50)];
    expect(await paused.take({ max: 1, expiresMs: ms(300), signal: never })).toEqual([]);
    paused.pause();
    await connection.jetStream.publish(Array.from({ length: 20 }, (_, index) => message(`${stream}.${String(index)}`)));
    const taken = await takeExactly(other, 20, 10_000);
    expect(taken.map(({ deliveryCount }) => deliveryCount)).toEqual(taken.map(() => 1));
    for (const delivered of taken) delivered.settle({ kind: "ack" });
    paused.resume();
    await connection.jetStream.publish([message(`${stream}.again`)]);
    await other.close();
    expect((await takeExactly(paused, 1, 10_000)).map(({ message: { subject } }) => subject)).toEqual([`${stream}.again`]);
  });

  test("loses nothing that is on its way when it is closed", { timeout: 120_000 }, async () => {
    // Longer than the test: what is not handed back does not come in time.
    const { stream, open } = await queue({ ack_wait: 120_000_000_000, max_ack_pending: 20_000 });
    const count = 6_000;
    const filling = (async () => {
      for (let from = 0; from < count; from += 200) await connection.jetStream.publish(Array.from({ length: 200 }, (_, index) => message(`${stream}.${String(from + index)}`)));
    })();
    const seen = new Set<number>();
    const take = async (source: PullSource): Promise<void> => {
      for (const delivered of await source.take({ max: 50, expiresMs: ms(500), signal: never })) {
        seen.add(delivered.message.sequence);
        delivered.settle({ kind: "ack" });
      }
    };
    for (let round = 0; round < 20; round += 1) {
      const source = open(1_000);
      await take(source);
      await source.close();
    }
    await filling;
    const last = open(1_000);
    await eventually("every message", async () => {
      await take(last);
      return seen.size === count;
    }, 30_000);
    expect(seen.size).toBe(count);
    // Acknowledgements are sent and not waited for: the last of them may still be on its way.
    await eventually("every acknowledgement", async () => must(await connection.jetStream.consumerState(stream, consumerConfig.durable_name)).ackPending === 0);
  });

  test("does not settle with a consumer made anew what another one of its name delivered", { timeout: 120_000 }, async () => {
    const { stream, open } = await queue();
    const recreate = async (): Promise<void> => {
      must(await connection.admin.deleteStream(stream));
      must(await connection.admin.createStream({ name: stream, subjects: [`${stream}.>`], retention: "workqueue" }));
      must(await connection.admin.createConsumer(stream, consumerConfig));
    };
    await connection.jetStream.publish([message(`${stream}.old1`), message(`${stream}.old2`)]);
    // A look-ahead of two is used up by what is held: no request is under way that could be told of the deletion.
    const source = open(2);
    const held = [...(await takeExactly(source, 2))];
    await connection.jetStream.publish([message(`${stream}.old3`), message(`${stream}.old4`)]);
    await eventually("the look-ahead is used up", async () => must(await connection.jetStream.consumerState(stream, consumerConfig.durable_name)).ackPending === 4);
    await recreate();
    await connection.jetStream.publish([message(`${stream}.new1`), message(`${stream}.new2`)]);
    const other = open(2);
    const [first, second] = await takeExactly(other, 2);
    // The new messages have the old ones' sequences.
    expect([first?.message.sequence, second?.message.sequence]).toEqual(held.map(({ message: { sequence } }) => sequence));
    await eventually("the old deliveries are recognised", () => held.every((delivered) => !delivered.settle({ kind: "extend" })));
    expect(held.map((delivered) => delivered.settle({ kind: "ack" }))).toEqual([false, false]);
    expect(must(await connection.jetStream.streamState(stream)).messages).toBe(2);
    expect([first?.settle({ kind: "ack" }), second?.settle({ kind: "ack" })]).toEqual([true, true]);
    await other.close();
    await connection.jetStream.publish([message(`${stream}.new3`)]);
    expect((await takeExactly(source, 1)).map(({ message: { subject } }) => subject)).toEqual([`${stream}.new3`]);
  });

  test("settles nothing while its consumer has not been seen for a while", { timeout: 120_000 }, async () => {
    const { stream, open } = await queue();
    await connection.jetStream.publish([message(`${stream}.a`)]);
    const source = open(2);
    const [delivered] = await takeExactly(source, 1);
    servers.servers[0]?.pause();
    onTestFinished(() => servers.servers[0]?.resume());
    await eventually("trust has ended", () => delivered?.settle({ kind: "extend" }) === false, custodyTrustMs + 5_000);
    servers.servers[0]?.resume();
    await eventually("trust is back", () => delivered?.settle({ kind: "extend" }) === true, 10_000);
    expect(delivered?.settle({ kind: "ack" })).toBe(true);
  });

  test("works for a user who may not ask for the consumer", async () => {
    const restricted = await startServers({ config: 'accounts { APP { jetstream: enabled, users: [ { user: admin, password: a }, { user: reader, password: r, permissions: { publish: { deny: ["$JS.API.CONSUMER.INFO.>"] } } } ] }, SYS { users: [ { user: s, password: s } ] } }\nsystem_account: SYS' });
    onTestFinished(() => restricted.stop());
    const [admin, reader] = ["admin", "reader"].map((user) => openBroker({ servers: restricted.urls, name: user, auth: { kind: "user", user, password: user.slice(0, 1) } }, { clock: systemClock, random: systemRandom }));
    onTestFinished(async () => {
      await admin?.close();
      await reader?.close();
    });
    if (admin === undefined || reader === undefined) throw new Error("no connections");
    must(await admin.connected(ms(30_000)));
    must(await admin.admin.createStream({ name: "R", subjects: ["r.>"], retention: "workqueue" }));
    must(await admin.admin.createConsumer("R", consumerConfig));
    await admin.jetStream.publish([message("r.a")]);
    const source = reader.jetStream.openSource({ stream: "R", consumer: consumerConfig.durable_name, lookahead: 1 });
    const [delivered] = await takeExactly(source, 1);
    expect(delivered?.settle({ kind: "ack" })).toBe(true);
    await source.close();
  });

  test("looks for a missing consumer ever more slowly, within bounds", { timeout: 120_000 }, async () => {
    must(await connection.admin.createStream({ name: "EMPTY", subjects: ["empty.>"], retention: "workqueue" }));
    const client = await connect({ servers: [...servers.urls] });
    onTestFinished(() => client.close());
    const askedAtMs: number[] = [];
    client.subscribe("$JS.API.CONSUMER.INFO.EMPTY.C", { callback: () => void askedAtMs.push(Date.now()) });
    await client.flush();
    const source = connection.jetStream.openSource({ stream: "EMPTY", consumer: consumerConfig.durable_name, lookahead: 1 });
    onTestFinished(() => source.close());
    expect(await source.take({ max: 1, expiresMs: ms(6_000), signal: never })).toEqual([]);
    const gapsMs = askedAtMs.slice(1).map((atMs, index) => atMs - (askedAtMs[index] ?? 0));
    // A back-off of the longest wait alone would ask a few times, one of the shortest wait alone for ever.
    expect(gapsMs.length).toBeGreaterThanOrEqual(3);
    expect(gapsMs.length).toBeLessThan(6_000 / (2 * pullBackoffMsMin));
    expect(Math.max(...gapsMs)).toBeGreaterThanOrEqual(pullBackoffMsMax / 2 - 20);
  });

  test("delivers the largest message that the broker takes, larger than all that it would buffer", { timeout: 120_000 }, async () => {
    const maxPayload = pullBufferBytesMax + 4 * messageOverheadBytesMax;
    const large = await startServers({ maxPayload });
    const broker = openBroker({ servers: large.urls, name: "test" }, { clock: systemClock, random: systemRandom });
    onTestFinished(async () => {
      await broker.close();
      await large.stop();
    });
    must(await broker.connected(ms(30_000)));
    must(await broker.admin.createStream({ name: "L", subjects: ["l.>"], retention: "workqueue" }));
    must(await broker.admin.createConsumer("L", consumerConfig));
    const header = "x".repeat(60_000);
    const body = new Uint8Array(maxPayload - header.length - 1_000);
    for (const name of ["a", "b"]) expect((await broker.jetStream.publish([message(`l.${name}`, { headers: [["K", header]], body })]))[0]?.kind).toBe("stored");
    const source = broker.jetStream.openSource({ stream: "L", consumer: consumerConfig.durable_name, lookahead: 10 });
    const taken = await takeExactly(source, 2, 30_000);
    expect(taken.map((delivered) => [delivered.message.body.length, delivered.settle({ kind: "ack" })])).toEqual([[body.length, true], [body.length, true]]);
    await source.close();
  });
});
