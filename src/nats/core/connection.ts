/**
 * The life of a connection: it dials until it succeeds, and again after every loss, until it is closed.
 *
 * 1. Each connect begins an epoch with a session of its own, each loss ends it. The end is noticed in the same turn in
 *    which the client finds the connection lost, before it can accept a byte for the next one (I12 rests on this: an old
 *    acknowledgement on a new connection could remove another timer's message).
 * 2. Nothing but `close` ends the attempts: refused credentials and unreadable files are reported and tried again.
 * 3. Listeners hear of each connect and loss, in order.
 */
import { connect, errors } from "@nats-io/transport-node";
import type { NatsConnection, ServerInfo, Status } from "@nats-io/transport-node";
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { closeTimeoutMs, reconnectDelayMsMax, reconnectDelayMsMin } from "../../base/limits.ts";
import type { Random } from "../../base/random.ts";
import type { DurationMs } from "../../base/units.ts";
import { backoffMs } from "../../concurrency/backoff.ts";
import { NatsAdmin } from "./admin.ts";
import { inBackground } from "./background.ts";
import { connectionFailure } from "./classify.ts";
import { dialOptions } from "./dial.ts";
import type { BrokerConnection, BrokerEvent, BrokerIdentity, BrokerOptions, JetStream, JetStreamAdmin, Told } from "./jetstream.ts";
import { NatsJetStream } from "./nats-jetstream.ts";
import { Session } from "./session.ts";

/** What a connection needs besides its options. */
export type BrokerTools = { readonly clock: Clock; readonly random: Random };

/** Starts connecting and returns at once. Never rejects: whether and when it connects is told by events. */
export function openBroker(options: BrokerOptions, tools: BrokerTools): BrokerConnection {
  assert(options.servers.length > 0, "a server to connect to");
  return new Connection(options, tools);
}

class Connection implements BrokerConnection {
  readonly jetStream: JetStream;
  readonly admin: JetStreamAdmin;
  readonly #options: BrokerOptions;
  readonly #tools: BrokerTools;
  readonly #listeners = new Set<(event: BrokerEvent) => void>();
  readonly #sessionListeners = new Set<(session: Session) => void>();
  readonly #closing = new AbortController();
  #client: NatsConnection | undefined;
  #session: Session | undefined;
  #epoch = 1;
  #failureCount = 0;
  #reconnectDelayMs: DurationMs = reconnectDelayMsMin;
  #lastFailure: Failure | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: BrokerOptions, tools: BrokerTools) {
    this.#options = options;
    this.#tools = tools;
    const link = {
      clock: tools.clock,
      random: tools.random,
      session: () => this.#session,
      epoch: () => this.#epoch,
      onSession: (listener: (session: Session) => void) => this.#onSession(listener),
      whyNot: () => this.#lastFailure,
      apiPrefix: options.domain === undefined ? "$JS.API" : `$JS.${options.domain}.API`,
    };
    this.jetStream = new NatsJetStream(link);
    this.admin = new NatsAdmin(link);
    inBackground(this.#dialFirst());
  }

  isConnected(): boolean {
    return this.#session !== undefined;
  }

  epoch(): number {
    return this.#epoch;
  }

  identity(): BrokerIdentity | undefined {
    return this.#session?.identity;
  }

  async connected(timeoutMs: DurationMs, signal?: AbortSignal): Promise<Told<BrokerIdentity>> {
    const identity = this.#session?.identity ?? (await this.#nextIdentity(timeoutMs, signal));
    if (identity !== undefined) return { kind: "told", value: identity };
    return { kind: "failed", failure: this.#lastFailure ?? new Failure("transient", "BROKER_UNREACHABLE", `connect to ${this.#options.servers.join(", ")}`) };
  }

  onEvent(listener: (event: BrokerEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    const session = this.#session;
    if (session !== undefined) await this.#untilQuiet(session);
    this.#closing.abort();
    this.#endSession(new Failure("transient", "BROKER_CLOSED", "use a closed connection"));
    await this.#client?.close();
    this.#emit({ kind: "closed" });
    this.#listeners.clear();
  }

  /** Waits a bounded time for awaited replies, and until the broker has seen what was sent: acknowledgements above all. */
  async #untilQuiet(session: Session): Promise<void> {
    const { clock } = this.#tools;
    const untilMs = clock.monotonicMs() + closeTimeoutMs;
    while (session.awaitedCount > 0 && clock.monotonicMs() < untilMs && !session.ended.aborted) await clock.sleep(quietCheckMs, session.ended);
    await session.flush(closeTimeoutMs);
  }

  async #dialFirst(): Promise<void> {
    const closing = this.#closing.signal;
    const options = dialOptions(this.#options, {
      beforeDial: () => this.#beforeDial(),
      onSecretFailure: (failure) => this.#report(failure),
    });
    while (!closing.aborted) {
      try {
        const client = await connect(options);
        // A dial cannot be cut short, so that `close` does not wait for it: what it brought is closed here.
        if (closing.aborted) return await client.close();
        this.#client = client;
        this.#begin(client);
        inBackground(this.#follow(client));
        return;
      } catch (error) {
        if (closing.aborted) return;
        this.#report(connectionFailure(`connect to ${this.#options.servers.join(", ")}`, error));
        await this.#tools.clock.sleep(this.#nextDelayMs(), closing);
      }
    }
  }

  /** The client calls this when it has lost the connection, before it dials, and several times before further attempts. */
  #beforeDial(): DurationMs {
    this.#lose();
    return this.#reconnectDelayMs;
  }

  #nextDelayMs(): DurationMs {
    this.#failureCount += 1;
    return backoffMs({ minMs: reconnectDelayMsMin, maxMs: reconnectDelayMsMax }, this.#failureCount, this.#tools.random.fraction());
  }

  async #follow(client: NatsConnection): Promise<void> {
    for await (const status of client.status()) this.#onStatus(client, status);
    const error = await client.closed();
    if (this.#closing.signal.aborted) return;
    // Nothing closes the client but us and its own bugs; then a new client takes over.
    this.#lose();
    if (error instanceof Error) this.#report(connectionFailure("keep the connection", error));
    await this.#dialFirst();
  }

  #onStatus(client: NatsConnection, status: Status): void {
    switch (status.type) {
      case "disconnect":
      case "staleConnection":
        return this.#lose();
      case "reconnecting":
        this.#reconnectDelayMs = this.#nextDelayMs();
        return;
      case "reconnect":
        return this.#begin(client);
      case "ldm":
        return this.#onLameDuck(client);
      case "error":
        return this.#onError(status.error);
      case "update":
      case "ping":
      case "slowConsumer":
      case "forceReconnect":
      case "close":
      default:
        return;
    }
  }

  #begin(client: NatsConnection): void {
    const { info } = client;
    if (info === undefined || this.#closing.signal.aborted) return;
    this.#endSession(lostFailure());
    this.#failureCount = 0;
    this.#lastFailure = undefined;
    const identity = identityOf(info);
    const inboxPrefix = this.#options.inboxPrefix ?? "_INBOX";
    this.#session = new Session({ connection: client, identity, epoch: this.#epoch, inboxPrefix, ...this.#tools });
    for (const listener of [...this.#sessionListeners]) listener(this.#session);
    this.#emit({ kind: "connected", identity, epoch: this.#epoch });
  }

  #lose(): void {
    if (this.#session === undefined) return;
    this.#endSession(lostFailure());
    this.#emit({ kind: "disconnected" });
  }

  #endSession(failure: Failure): void {
    const session = this.#session;
    if (session === undefined) return;
    this.#session = undefined;
    this.#epoch += 1;
    session.end(failure);
  }

  /** A server that is about to stop has handed its leaders over; with another server at hand we leave before it cuts. */
  #onLameDuck(client: NatsConnection): void {
    this.#emit({ kind: "lame_duck" });
    if (client.getServers().length > 1) inBackground(client.reconnect().catch((error: unknown) => this.#report(connectionFailure("leave a stopping server", error))));
  }

  #onError(error: Error): void {
    if (error instanceof errors.PermissionViolationError) this.#session?.refusePermission(error);
    this.#report(connectionFailure("use the connection", error));
  }

  #report(failure: Failure): void {
    // A permission violation says nothing about why there is no connection.
    if (failure.code !== "BROKER_PERMISSION") this.#lastFailure = failure;
    this.#emit({ kind: "error", failure });
  }

  #emit(event: BrokerEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }

  /** Calls `listener` with the present session and each later one. */
  #onSession(listener: (session: Session) => void): () => void {
    this.#sessionListeners.add(listener);
    if (this.#session !== undefined) listener(this.#session);
    return () => this.#sessionListeners.delete(listener);
  }

  async #nextIdentity(timeoutMs: DurationMs, signal: AbortSignal | undefined): Promise<BrokerIdentity | undefined> {
    const found = new AbortController();
    const stop = this.onEvent((event) => {
      if (event.kind === "connected" || event.kind === "closed") found.abort();
    });
    await this.#tools.clock.sleep(timeoutMs, signal === undefined ? found.signal : AbortSignal.any([found.signal, signal]));
    stop();
    return this.#session?.identity;
  }
}

const quietCheckMs = 10 as DurationMs;

function lostFailure(): Failure {
  return new Failure("transient", "BROKER_UNREACHABLE", "wait for a reply on a connection that was lost");
}

function identityOf(info: ServerInfo): BrokerIdentity {
  return {
    serverId: info.server_id,
    serverName: info.server_name,
    version: info.version,
    payloadBytesMax: info.max_payload,
    isClustered: info.cluster !== undefined && info.cluster !== "",
    ...(info.cluster === undefined ? {} : { clusterName: info.cluster }),
  };
}
