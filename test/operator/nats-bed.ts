// A bed for the operator against real servers: its own planner, the real broker adapter, a cluster in memory, and somebody else
// with all rights on the account.

import { connect } from "@nats-io/transport-node";
import { expect } from "vitest";
import { apiTimeoutMs } from "../../src/base/limits.ts";
import { openBroker } from "../../src/nats/core/connection.ts";
import type { BrokerConnection, ConsumerState, StreamState } from "../../src/nats/core/jetstream.ts";
import { natsBrokerPort } from "../../src/nats/operator-broker.ts";
import type { BrokerPort, BrokerSession } from "../../src/operator/ports.ts";
import type { ResourceKey } from "../../src/operator/plan/observed.ts";
import { reconcile } from "../../src/operator/reconcile.ts";
import { BrokerSessions } from "../../src/operator/sessions.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { FakeCluster } from "../fakes/cluster.ts";
import { FakeLog } from "../fakes/log.ts";
import { FakeOperatorMetrics } from "../fakes/operator-metrics.ts";
import type { Patch } from "../resource/examples.ts";
import { startServers } from "../servers.ts";
import type { NatsServers, ServersOptions } from "../servers.ts";
import { conditionTexts, spec } from "./plan/scenes.ts";

export const orders: ResourceKey = { namespace: "payments", name: "orders" };
export const small: Patch = {
  topology: {
    streams: Object.fromEntries(["state", "commands", "feedback", "snapshots", "terminals", "resumes"].map((role) => [role, { maxBytes: "64Mi" }])),
  },
};

type CountedPort = {
  readonly port: BrokerPort;
  readonly writes: string[];
  /** The operator dies before it sends such a write. */
  dieBefore?: string;
};

/** The real port, with every write counted. */
function counted(port: BrokerPort): CountedPort {
  const writes: string[] = [];
  const watched = new Set(["createStream", "updateStream", "createConsumer", "updateConsumer", "pauseConsumer", "writeOwnerKey", "adoptStream", "deleteStream", "purgeStream"]);
  const self: CountedPort = { port: { open: (options) => open(options) }, writes };
  const open: BrokerPort["open"] = (options) =>
    new Proxy(port.open(options), {
      get: (session: BrokerSession, name: keyof BrokerSession) => {
        const method = session[name].bind(session) as (...args: readonly unknown[]) => unknown;
        return (...args: readonly unknown[]): unknown => {
          if (name === self.dieBefore) throw new Error("died");
          if (watched.has(name)) writes.push(name);
          return method(...args);
        };
      },
    });
  return self;
}

/** An operator with its cluster; several may share a broker. */
export class Operator {
  readonly cluster: FakeCluster;
  readonly broker: CountedPort;
  readonly sessions: BrokerSessions;
  readonly log = new FakeLog();
  readonly #metrics = new FakeOperatorMetrics();

  constructor(urls: readonly string[], cluster?: FakeCluster) {
    this.cluster = cluster ?? new FakeCluster({ connection: { servers: urls, name: "operator test" } });
    this.broker = counted(natsBrokerPort({ clock: systemClock, random: systemRandom }));
    this.sessions = new BrokerSessions({ broker: this.broker.port, onChange: () => undefined });
  }

  async pass(key: ResourceKey = orders): Promise<string> {
    const { cluster, sessions, log } = this;
    const tools = { cluster, sessions, log, clock: systemClock, random: systemRandom, metrics: this.#metrics };
    const result = await reconcile(tools, key, new AbortController().signal);
    return result.kind === "failed" ? `failed ${result.failure.code}` : result.kind;
  }

  /** Passes until one changes nothing; how many changed something. */
  async settle(key: ResourceKey = orders): Promise<number> {
    for (let count = 0; count < 20; count += 1) if ((await this.pass(key)) === "unchanged") return count;
    throw new Error(`not settled: ${this.conditions(key).join(", ")}`);
  }

  conditions(key: ResourceKey = orders): readonly string[] {
    return conditionTexts(this.cluster.status(key));
  }

  /** Whether a person was ever said to be needed. */
  get wasStalled(): boolean {
    return this.cluster.statuses.some(({ conditions }) => conditions?.some(({ type }) => type === "Stalled") === true);
  }

  message(type: string, key: ResourceKey = orders): string {
    return this.cluster.status(key)?.conditions?.find((condition) => condition.type === type)?.message ?? "";
  }
}

export const gatesOpen = [
  "Ready True Serving", "BrokerReachable True Connected", "BrokerCompatible True Compatible", "TopologyReady True Provisioned",
  "WorkersReady True WorkersAvailable", "ResumeOpen True Open",
];

/** A server with one operator and a connection of somebody else; everything ends with the test. */
export async function withServer(options: ServersOptions, patch: Patch, body: (bed: Bed) => Promise<void>): Promise<void> {
  await using servers = await startServers(options);
  const operator = new Operator(servers.urls);
  operator.cluster.put(orders, spec({ ...small, ...patch }));
  const somebody = openBroker({ servers: servers.urls, name: "somebody" }, { clock: systemClock, random: systemRandom });
  try {
    expect((await somebody.connected(apiTimeoutMs)).kind).toBe("told");
    await body({ servers, operator, somebody: new Somebody(somebody, servers.urls) });
  } finally {
    await operator.sessions.closeAll();
    await somebody.close();
  }
}

type Bed = { readonly servers: NatsServers; readonly operator: Operator; readonly somebody: Somebody };

/** Somebody else with all rights on the account. */
export class Somebody {
  readonly #connection: BrokerConnection;
  readonly #urls: readonly string[];

  constructor(connection: BrokerConnection, urls: readonly string[]) {
    this.#connection = connection;
    this.#urls = urls;
  }

  async stream(name: string): Promise<StreamState> {
    const told = await this.#connection.jetStream.streamState(name);
    if (told.kind === "failed") throw told.failure;
    return told.value;
  }

  async consumer(stream: string, name: string): Promise<ConsumerState> {
    const told = await this.#connection.jetStream.consumerState(stream, name);
    if (told.kind === "failed") throw told.failure;
    return told.value;
  }

  async createStream(config: Readonly<Record<string, unknown>>): Promise<void> {
    const told = await this.#connection.admin.createStream(config);
    if (told.kind === "failed") throw told.failure;
  }

  async updateStream(name: string, change: Readonly<Record<string, unknown>>): Promise<void> {
    const told = await this.#connection.admin.updateStream({ ...(await this.stream(name)).config, ...change });
    if (told.kind === "failed") throw told.failure;
  }

  async deleteStream(name: string): Promise<void> {
    const told = await this.#connection.admin.deleteStream(name);
    if (told.kind === "failed") throw told.failure;
  }

  /** What the metadata of a stream says. */
  async metadata(name: string): Promise<Readonly<Record<string, string>>> {
    return ((await this.stream(name)).config["metadata"] ?? {}) as Readonly<Record<string, string>>;
  }

  async deleteConsumer(stream: string, name: string): Promise<void> {
    const client = await connect({ servers: [...this.#urls] });
    const reply = await client.request(`$JS.API.CONSUMER.DELETE.${stream}.${name}`);
    await client.close();
    expect(reply.json()).toMatchObject({ success: true });
  }

  async pause(stream: string, consumer: string, untilMs: number): Promise<void> {
    const told = await this.#connection.admin.pauseConsumer({ stream, consumer, untilMs: untilMs as never });
    if (told.kind === "failed") throw told.failure;
  }

  async purge(name: string): Promise<void> {
    const told = await this.#connection.jetStream.purge({ stream: name, subject: ">" });
    if (told.kind === "failed") throw told.failure;
  }

  async publish(subject: string): Promise<void> {
    const [outcome] = await this.#connection.jetStream.publish([{ subject, headers: [], body: new Uint8Array(10) }]);
    expect(outcome?.kind).toBe("stored");
  }
}
