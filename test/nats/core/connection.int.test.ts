import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { publishTimeoutMs } from "../../../src/base/limits.ts";
import { openBroker } from "../../../src/nats/core/connection.ts";
import type { BrokerAuth, BrokerConnection, BrokerEvent, BrokerOptions } from "../../../src/nats/core/jetstream.ts";
import { systemClock } from "../../../src/system/clock.ts";
import { systemRandom } from "../../../src/system/random.ts";
import { eventually, message, ms, must, takeExactly } from "../../conformance/jetstream.ts";
import { startServers } from "../../servers.ts";
import type { NatsServers, ServersOptions } from "../../servers.ts";
import { certificates, operatorMode, userKey } from "../secrets.ts";
import type { Certificates } from "../secrets.ts";

async function servers(options: ServersOptions = {}): Promise<NatsServers> {
  const started = await startServers(options);
  onTestFinished(() => started.stop());
  return started;
}

function open(options: Partial<BrokerOptions> & { readonly servers: readonly string[] }): { readonly connection: BrokerConnection; readonly events: BrokerEvent[] } {
  const connection = openBroker({ name: "test", ...options }, { clock: systemClock, random: systemRandom });
  const events: BrokerEvent[] = [];
  connection.onEvent((event) => events.push(event));
  onTestFinished(() => connection.close());
  return { connection, events };
}

const file = (text: string): string => {
  const path = join(mkdtempSync(join(tmpdir(), "durable-timer-secret-")), "secret");
  writeFileSync(path, text);
  return path;
};

/** Connected means that JetStream answers this user. */
const answers = async (connection: BrokerConnection): Promise<string> => {
  must(await connection.connected(ms(30_000)));
  must(await connection.jetStream.accountState());
  return must(await connection.admin.user()).accountName;
};

describe("a user", () => {
  const accounts = (user: string): string => `accounts { APP { jetstream: enabled, users: [ ${user} ] }, SYS { users: [ { user: sys, password: sys } ] } }\nsystem_account: SYS`;
  const operator = operatorMode("PAYMENTS");
  const key = userKey();

  test.each<{ readonly name: string; readonly config: string; readonly auth: () => BrokerAuth; readonly account: string }>([
    { name: "with a password in a file", config: accounts("{ user: alice, password: s3cret }"), auth: () => ({ kind: "user", userFile: file("alice\n"), passwordFile: file("s3cret\n") }), account: "APP" },
    { name: "with a password in memory", config: accounts("{ user: alice, password: s3cret }"), auth: () => ({ kind: "user", user: "alice", password: "s3cret" }), account: "APP" },
    { name: "with a token", config: "authorization { token: t0ken }", auth: () => ({ kind: "token", file: file("t0ken") }), account: "$G" },
    { name: "with an nkey", config: accounts(`{ nkey: ${key.publicKey} }`), auth: () => ({ kind: "nkey", seedFile: file(`${key.seed}\n`) }), account: "APP" },
    { name: "with a credentials file", config: operator.config, auth: () => ({ kind: "credentials", file: file(operator.credentials) }), account: "PAYMENTS" },
    { name: "with credentials in memory", config: operator.config, auth: () => ({ kind: "credentials", text: operator.credentials }), account: "PAYMENTS" },
  ])("$name is let in, and learns its account", async ({ config, auth, account }) => {
    const { urls } = await servers({ config });
    expect(await answers(open({ servers: urls, auth: auth() }).connection)).toBe(account);
  });

  test("with a wrong password is refused, and let in as soon as the file holds the right one", async () => {
    const { urls } = await servers({ config: accounts("{ user: alice, password: s3cret }") });
    const passwordFile = file("wrong");
    const { connection, events } = open({ servers: urls, auth: { kind: "user", userFile: file("alice"), passwordFile } });
    expect(await connection.connected(ms(1_000))).toMatchObject({ kind: "failed", failure: { kind: "denied", code: "BROKER_AUTH" } });
    expect(await connection.jetStream.publish([message("a")])).toMatchObject([{ kind: "refused", failure: { kind: "denied", code: "BROKER_AUTH" } }]);
    expect(events.some((event) => event.kind === "error" && event.failure.code === "BROKER_AUTH")).toBe(true);
    writeFileSync(passwordFile, "s3cret");
    expect(await answers(connection)).toBe("APP");
  });

  test("whose password is rotated comes back with the new one after a restart of the broker", async () => {
    const started = await servers({ config: accounts("{ user: alice, password: s3cret }, { user: bob, password: other }") });
    const [userFile, passwordFile] = [file("alice"), file("s3cret")];
    const { connection } = open({ servers: started.urls, auth: { kind: "user", userFile, passwordFile } });
    await answers(connection);
    writeFileSync(userFile, "bob");
    writeFileSync(passwordFile, "other");
    const epoch = connection.epoch();
    await started.crash();
    await eventually("the connection is back", () => connection.isConnected() && connection.epoch() > epoch);
    expect(await answers(connection)).toBe("APP");
  });

  test("whose credentials cannot be read is told so, and goes on trying", async () => {
    const { urls } = await servers({ config: operator.config });
    const path = file("");
    const { connection, events } = open({ servers: urls, auth: { kind: "credentials", file: path } });
    expect((await connection.connected(ms(500))).kind).toBe("failed");
    expect(events.some((event) => event.kind === "error" && event.failure.code === "CREDENTIALS_MISSING")).toBe(true);
    writeFileSync(path, operator.credentials);
    expect(await answers(connection)).toBe("PAYMENTS");
  });

  test("without permission to publish learns it at once, and for that subject only", async () => {
    const user = '{ user: alice, password: s3cret, permissions: { publish: { deny: ["secret.>"] } } }';
    const { urls } = await servers({ config: accounts(user) });
    const { connection } = open({ servers: urls, auth: { kind: "user", user: "alice", password: "s3cret" } });
    must(await connection.connected(ms(30_000)));
    must(await connection.admin.createStream({ name: "S", subjects: ["secret.>", "open.>"], allow_atomic: true }));
    const beganAtMs = Date.now();
    const [denied, granted] = await connection.jetStream.publish([message("secret.a"), message("open.a")]);
    expect(denied).toMatchObject({ kind: "refused", failure: { kind: "denied", code: "BROKER_PERMISSION" } });
    expect(granted?.kind).toBe("stored");
    expect(await connection.jetStream.publishAtomically([message("secret.b")])).toMatchObject({ kind: "refused", failure: { code: "BROKER_PERMISSION" } });
    // Without the server's notice each of the two would have waited until its publish is given up.
    expect(Date.now() - beganAtMs).toBeLessThan(2 * publishTimeoutMs);
    expect(connection.isConnected()).toBe(true);
  });

  test("without permission to receive replies learns it at once", async () => {
    const user = '{ user: alice, password: s3cret, permissions: { subscribe: { allow: ["mine.>"] } } }';
    const { urls } = await servers({ config: accounts(user) });
    const { connection } = open({ servers: urls, auth: { kind: "user", user: "alice", password: "s3cret" } });
    must(await connection.connected(ms(30_000)));
    expect(await connection.jetStream.accountState()).toMatchObject({ kind: "failed", failure: { kind: "denied", code: "BROKER_PERMISSION" } });
    const { connection: other } = open({ servers: urls, auth: { kind: "user", user: "alice", password: "s3cret" }, inboxPrefix: "mine.inbox" });
    expect(await answers(other)).toBe("APP");
  });

  test("of an account without JetStream is told so", async () => {
    const { urls } = await servers({ config: "accounts { PLAIN { users: [ { user: alice, password: s3cret } ] }, SYS { users: [ { user: sys, password: sys } ] } }\nsystem_account: SYS" });
    const { connection } = open({ servers: urls, auth: { kind: "user", user: "alice", password: "s3cret" } });
    must(await connection.connected(ms(30_000)));
    expect(await connection.jetStream.accountState()).toMatchObject({ kind: "failed", failure: { code: expect.stringMatching(/JETSTREAM_DISABLED|BROKER_NO_RESPONDERS/) as unknown } });
  });
});

describe("TLS", () => {
  let made: Certificates;
  beforeAll(() => {
    made = certificates();
  });
  const tls = (extra = ""): string => `tls { cert_file: "${made.serverCert}", key_file: "${made.serverKey}", ${extra} }`;
  const secured = (urls: readonly string[]): readonly string[] => urls.map((url) => url.replace("nats://", "tls://"));

  test("is used with an authority in a file, or in memory", async () => {
    const { urls } = await servers({ config: tls() });
    expect(await answers(open({ servers: secured(urls), tls: { caFile: made.ca } }).connection)).toBe("$G");
    expect(await answers(open({ servers: urls, tls: { ca: readFileSync(made.ca, "utf8") } }).connection)).toBe("$G");
  });

  test("with an unknown authority is refused, and tried again", async () => {
    const { urls } = await servers({ config: tls() });
    const { connection, events } = open({ servers: secured(urls) });
    expect(await connection.connected(ms(1_500))).toMatchObject({ kind: "failed", failure: { kind: "transient", code: "BROKER_UNREACHABLE" } });
    expect(events.filter(({ kind }) => kind === "error").length).toBeGreaterThan(1);
  });

  test("comes before the server's first word where both are told so", async () => {
    const { urls } = await servers({ config: tls("handshake_first: true") });
    expect(await answers(open({ servers: secured(urls), tls: { caFile: made.ca, handshakeFirst: true } }).connection)).toBe("$G");
  });

  test("shows the server a certificate of the client", async () => {
    const { urls } = await servers({ config: tls(`ca_file: "${made.ca}", verify: true`) });
    const { ca: caFile, clientCert: certFile, clientKey: keyFile } = made;
    expect(await answers(open({ servers: secured(urls), tls: { caFile, certFile, keyFile } }).connection)).toBe("$G");
    expect((await open({ servers: secured(urls), tls: { caFile } }).connection.connected(ms(1_000))).kind).toBe("failed");
  });
});

describe("a connection", () => {
  test("waits for a server that is not there yet", async () => {
    const started = await servers();
    const [server] = started.servers;
    await server?.stop();
    const { connection } = open({ servers: started.urls });
    expect(await connection.connected(ms(500))).toMatchObject({ kind: "failed", failure: { kind: "transient", code: "BROKER_UNREACHABLE" } });
    expect(connection.identity()).toBeUndefined();
    await server?.start();
    expect(await answers(connection)).toBe("$G");
    expect(connection.identity()).toMatchObject({ version: expect.stringMatching(/^2\./) as unknown, isClustered: false });
  });

  test("reaches JetStream in its domain, and finds nobody in another", async () => {
    const { urls } = await servers({ domain: "hub" });
    const { connection } = open({ servers: urls, domain: "hub" });
    expect(await answers(connection)).toBe("$G");
    expect(must(await connection.jetStream.accountState()).domain).toBe("hub");
    must(await connection.admin.createStream({ name: "S", subjects: ["s.>"], retention: "workqueue" }));
    must(await connection.admin.createConsumer("S", { durable_name: "C", ack_policy: "explicit" }));
    expect((await connection.jetStream.publish([message("s.a")]))[0]?.kind).toBe("stored");
    const source = connection.jetStream.openSource({ stream: "S", consumer: "C", lookahead: 1 });
    expect((await takeExactly(source, 1))[0]?.settle({ kind: "ack" })).toBe(true);
    await source.close();
    const { connection: lost } = open({ servers: urls, domain: "spoke" });
    must(await lost.connected(ms(30_000)));
    expect(await lost.jetStream.accountState()).toMatchObject({ kind: "failed", failure: { code: "BROKER_NO_RESPONDERS" } });
  });

  test("moves to another server when its own is about to stop", async () => {
    const started = await servers({ count: 3 });
    const { connection, events } = open({ servers: started.urls });
    must(await connection.connected(ms(30_000)));
    const first = connection.identity()?.serverName;
    started.servers.find(({ name }) => name === first)?.lameDuck();
    await eventually("it is connected elsewhere", () => connection.isConnected() && connection.identity()?.serverName !== first, 30_000);
    expect(events.map(({ kind }) => kind).filter((kind) => kind !== "error")).toEqual(["connected", "lame_duck", "disconnected", "connected"]);
    expect(await answers(connection)).toBe("$G");
  });

  test("does not wait for ever for a server that stands still, and works on when it goes on", { timeout: 120_000 }, async () => {
    const started = await servers();
    const [server] = started.servers;
    const { connection } = open({ servers: started.urls });
    must(await connection.connected(ms(30_000)));
    must(await connection.admin.createStream({ name: "S", subjects: ["s.>"] }));
    server?.pause();
    const [outcome] = await connection.jetStream.publish([message("s.a")]);
    expect(outcome).toMatchObject({ kind: "unknown", failure: { kind: "transient", code: "BROKER_TIMEOUT" } });
    server?.resume();
    await eventually("it takes messages again", async () => (await connection.jetStream.publish([message("s.b")]))[0]?.kind === "stored", 30_000);
  });

  test("finishes what is on its way before it closes, and does nothing afterwards", async () => {
    const { urls } = await servers();
    const { connection, events } = open({ servers: urls });
    must(await connection.connected(ms(30_000)));
    must(await connection.admin.createStream({ name: "S", subjects: ["s.>"] }));
    const publishing = connection.jetStream.publish(Array.from({ length: 2_000 }, (_, index) => message(`s.${String(index)}`)));
    await connection.close();
    expect((await publishing).every(({ kind }) => kind === "stored")).toBe(true);
    expect(events.at(-1)).toEqual({ kind: "closed" });
    expect(await connection.jetStream.publish([message("s.a")])).toMatchObject([{ kind: "refused" }]);
    expect(connection.isConnected()).toBe(false);
    await connection.close();
  });

  test("closes while it is still trying to connect", async () => {
    const { connection } = open({ servers: ["nats://127.0.0.1:1"] });
    await connection.connected(ms(100));
    await connection.close();
    expect(connection.isConnected()).toBe(false);
  });
});
