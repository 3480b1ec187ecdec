/**
 * One connected stretch of a connection, from a connect to the next disconnect: an epoch. It tracks every reply that is
 * awaited, on one wildcard inbox of its own, so that nothing which was asked before a disconnect is answered after it.
 *
 * 1. Each awaited reply is settled: by its message, by nobody serving the subject, by a refused permission, by its
 *    deadline, or by the end of the session. One timer looks for all deadlines.
 * 2. After the end nothing is sent and nothing delivered: subscriptions are the session's own, and old ones are gone
 *    before the next session begins. The client would otherwise send what was published while it dialled again.
 * 3. No callback of ours throws into the client's parser, which would stop reading.
 */
import { errors } from "@nats-io/transport-node";
import type { Msg, NatsConnection } from "@nats-io/transport-node";
import type { Clock } from "../../base/clock.ts";
import type { Failure } from "../../base/failure.ts";
import type { Random } from "../../base/random.ts";
import type { DurationMs, MonotonicMs } from "../../base/units.ts";
import { inBackground } from "./background.ts";
import { connectionFailure, noRespondersFailure, timeoutFailure } from "./classify.ts";
import { outgoingHeaders } from "./headers.ts";
import type { HeaderList } from "./headers.ts";
import type { BrokerIdentity } from "./jetstream.ts";
import { receivedMessage } from "./received.ts";
import type { ReceivedMessage } from "./received.ts";

/** A message that came for a request, or why none will. */
export type Reply = { readonly kind: "reply"; readonly message: ReceivedMessage } | { readonly kind: "failed"; readonly failure: Failure };

export type Request = {
  readonly subject: string;
  readonly headers?: HeaderList;
  readonly body: Uint8Array;
  readonly timeoutMs: DurationMs;
  /** For failures: what is attempted, on which thing. */
  readonly attempt: string;
  /** Returns true when no further reply is expected; after a failure none is, whatever it returns. */
  readonly onReply: (reply: Reply) => boolean;
};

type Awaited = Pick<Request, "subject" | "attempt" | "onReply"> & { readonly deadlineMs: MonotonicMs };

/** Two ends of a subscription: `leave` hears nothing more at once, `drain` still hears what the broker sent before it knew. */
export type SessionSubscription = { readonly leave: () => void; readonly drain: () => Promise<void> };

/** What a session is made of. */
export type SessionParts = {
  readonly connection: NatsConnection;
  readonly identity: BrokerIdentity;
  readonly epoch: number;
  readonly inboxPrefix: string;
  readonly clock: Clock;
  readonly random: Random;
};

/** One epoch of a connection. */
export class Session {
  readonly epoch: number;
  readonly identity: BrokerIdentity;
  readonly #connection: NatsConnection;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #inboxPrefix: string;
  readonly #inbox: string;
  readonly #awaited = new Map<string, Awaited>();
  readonly #leave = new Set<() => void>();
  readonly #ended = new AbortController();
  #lastToken = 0;
  #inboxFailure: Failure | undefined;

  constructor(parts: SessionParts) {
    this.epoch = parts.epoch;
    this.identity = parts.identity;
    this.#connection = parts.connection;
    this.#clock = parts.clock;
    this.#random = parts.random;
    this.#inboxPrefix = parts.inboxPrefix;
    this.#inbox = this.newInbox();
    this.subscribe(`${this.#inbox}.*`, (message) => this.#onReply(message));
    inBackground(this.#watchDeadlines());
  }

  /** Aborts when the session ends. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Replies that are awaited now. */
  get awaitedCount(): number {
    return this.#awaited.size;
  }

  /** Sends a request whose replies go to `onReply`, never before this method has returned. */
  request(request: Request): void {
    const { subject, attempt, onReply } = request;
    const failure = this.#inboxFailure;
    if (failure !== undefined || this.ended.aborted) {
      queueMicrotask(() => onReply({ kind: "failed", failure: failure ?? connectionFailure(attempt, new errors.ClosedConnectionError()) }));
      return;
    }
    this.#lastToken += 1;
    const token = this.#lastToken.toString(36);
    this.#awaited.set(token, { subject, attempt, onReply, deadlineMs: (this.#clock.monotonicMs() + request.timeoutMs) as MonotonicMs });
    const isSent = this.send({ ...request, reply: `${this.#inbox}.${token}` });
    if (isSent) return;
    this.#awaited.delete(token);
    queueMicrotask(() => onReply({ kind: "failed", failure: connectionFailure(attempt, new errors.ClosedConnectionError()) }));
  }

  /** Hands a message to the connection; nothing tells whether it arrived. False when it was surely not sent. */
  send(message: { readonly subject: string; readonly headers?: HeaderList; readonly body: Uint8Array; readonly reply?: string }): boolean {
    if (this.ended.aborted || this.#connection.isClosed()) return false;
    const { subject, body, headers, reply } = message;
    this.#connection.publish(subject, body, {
      ...(reply === undefined ? {} : { reply }),
      ...(headers === undefined || headers.length === 0 ? {} : { headers: outgoingHeaders(headers) }),
    });
    return true;
  }

  /** A subscription for the rest of the session, unless it is ended earlier. */
  subscribe(subject: string, onMessage: (message: ReceivedMessage) => void): SessionSubscription {
    const subscription = this.#connection.subscribe(subject, {
      callback: (error: Error | null, message: Msg) => {
        if (error === null && !this.ended.aborted) onMessage(receivedMessage(message));
      },
    });
    const leave = (): void => {
      if (this.#leave.delete(leave)) subscription.unsubscribe();
    };
    const drain = async (): Promise<void> => {
      if (!this.#leave.has(leave) || this.#connection.isClosed()) return;
      // It fails only with its connection, which ends everything.
      await subscription.drain().catch(() => undefined);
      this.#leave.delete(leave);
    };
    this.#leave.add(leave);
    return { leave, drain };
  }

  /** A new inbox for replies that `subscribe` is to see. */
  newInbox(): string {
    return `${this.#inboxPrefix}.${this.#random.token(inboxTokenLength)}`;
  }

  /** Settles what the broker refuses to let this user publish or subscribe to. It sends no reply in that case. */
  refusePermission(error: InstanceType<typeof errors.PermissionViolationError>): void {
    if (error.operation === "subscription") {
      if (!error.subject.startsWith(this.#inbox)) return;
      this.#inboxFailure = connectionFailure("subscribe to the own inbox", error);
      this.#failAll(() => connectionFailure("subscribe to the own inbox", error), () => true);
    } else {
      this.#failAll(({ attempt }) => connectionFailure(attempt, error), ({ subject }) => subject === error.subject);
    }
  }

  /** Ends the session; everything awaited fails with `failure`. Idempotent. */
  end(failure: Failure): void {
    if (this.ended.aborted) return;
    for (const leave of [...this.#leave]) leave();
    this.#ended.abort();
    this.#failAll(() => failure, () => true);
  }

  /** Resolves when the broker has seen everything that was sent before; true if it did so in time. */
  async flush(timeoutMs: DurationMs): Promise<boolean> {
    const flushed = this.#connection.flush().then(() => true, () => false);
    return await Promise.race([flushed, this.#clock.sleep(timeoutMs, this.ended).then(() => false)]);
  }

  #onReply(message: ReceivedMessage): void {
    const token = message.subject.slice(this.#inbox.length + 1);
    const awaited = this.#awaited.get(token);
    if (awaited === undefined) return;
    const isUnserved = message.status === statusNoResponders;
    const reply: Reply = isUnserved ? { kind: "failed", failure: noRespondersFailure(awaited.attempt) } : { kind: "reply", message };
    const isSettled = awaited.onReply(reply);
    if (isSettled || isUnserved) this.#awaited.delete(token);
  }

  #failAll(failureOf: (awaited: Awaited) => Failure, isMeant: (awaited: Awaited) => boolean): void {
    for (const [token, awaited] of this.#awaited) {
      if (!isMeant(awaited)) continue;
      this.#awaited.delete(token);
      awaited.onReply({ kind: "failed", failure: failureOf(awaited) });
    }
  }

  async #watchDeadlines(): Promise<void> {
    while (!this.ended.aborted) {
      await this.#clock.sleep(deadlineCheckIntervalMs, this.ended);
      const nowMs = this.#clock.monotonicMs();
      this.#failAll(({ attempt }) => timeoutFailure(attempt), ({ deadlineMs }) => deadlineMs <= nowMs);
    }
  }
}

const inboxTokenLength = 22;
const deadlineCheckIntervalMs = 200 as DurationMs;
const statusNoResponders = 503;
