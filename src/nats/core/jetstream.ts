/**
 * The narrow interface through which everything of ours meets JetStream. A model of JetStream implements it for
 * simulation, and one conformance suite runs against both; so it is small, says what each outcome means, and leaves
 * nothing of the client library visible.
 *
 * J1 Nothing here rejects for what a broker answers: outcomes are values. Only a programming error throws; `scan` is
 *    the one exception.
 * J2 A publish without a reply is `unknown`, never retried here.
 * J3 A settlement goes out only on the connection on which its message came (`epoch`), and only to the very consumer
 *    that delivered it, not to another one of the same name.
 */
import type { Failure } from "../../base/failure.ts";
import type { DurationMs, EpochMs, MonotonicMs } from "../../base/units.ts";
import type { StoredMessage } from "../../protocol/message.ts";

/** A message to store. */
export type OutgoingMessage = {
  readonly subject: string;
  /** Own headers, beside those that the options below add. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array;
  /** Suppresses a second copy within the duplicate window. */
  readonly messageId?: string;
  /** Sequence of the last message on the subject; 0 for none. */
  readonly expectedLastSubjectSequence?: number;
  readonly ttlMs?: DurationMs;
  /** Removes earlier messages of the subject. */
  readonly rollup?: boolean;
  readonly schedule?: { readonly fireAtMs: EpochMs; readonly target: string };
};

export type PublishOutcome =
  | { readonly kind: "stored"; readonly sequence: number; readonly duplicate: boolean }
  /** The expected sequence was not the last one. */
  | { readonly kind: "conflict" }
  | { readonly kind: "refused"; readonly failure: Failure }
  | { readonly kind: "unknown"; readonly failure: Failure };

export type BatchOutcome =
  /** All stored; the last message has this sequence, those before count down from it. */
  | { readonly kind: "stored"; readonly lastSequence: number }
  /** Nothing stored: some expectation or message id did not hold. Which one is not told. */
  | { readonly kind: "conflict" }
  | { readonly kind: "refused"; readonly failure: Failure }
  | { readonly kind: "unknown"; readonly failure: Failure };

/** What lies last on a subject. */
export type LastMessage =
  | { readonly kind: "found"; readonly message: StoredMessage }
  | { readonly kind: "absent" }
  | { readonly kind: "failed"; readonly failure: Failure };

/** A delivered message of a durable pull consumer. Settling it in a later epoch does nothing and returns false. */
export interface Delivered {
  readonly message: StoredMessage;
  readonly deliveryCount: number;
  readonly receivedAtMs: MonotonicMs;
  readonly epoch: number;
  settle(how: Settlement): boolean;
}

/** What becomes of a delivery. All but `extend` are final. */
export type Settlement =
  | { readonly kind: "ack" }
  | { readonly kind: "nak"; readonly delayMs: DurationMs }
  | { readonly kind: "extend" }
  | { readonly kind: "terminate"; readonly reason: string };

/** A standing pull on one durable consumer, with a bounded look-ahead. */
export interface PullSource {
  take(options: { readonly max: number; readonly expiresMs: DurationMs; readonly signal: AbortSignal }): Promise<readonly Delivered[]>;
  pause(): void;
  resume(): void;
  close(): Promise<void>;
}

export type StreamState = {
  readonly name: string;
  /** As the server reports it, in the server's own field names. */
  readonly config: Readonly<Record<string, unknown>>;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly messages: number;
  readonly bytes: number;
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** Name of the leader, absent on a single server. */
  readonly leader?: string;
  readonly replicas: readonly { readonly name: string; readonly current: boolean; readonly offline: boolean; readonly lag: number }[];
  /** The answering leader's clock, in epoch milliseconds, when it said it. */
  readonly serverTimeMs?: EpochMs;
};

export type ConsumerState = {
  readonly name: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly createdAt: string;
  readonly pending: number;
  readonly ackPending: number;
  readonly redelivered: number;
  /** Deliveries so far, second ones included; absent when the server does not say. */
  readonly deliveredCount?: number;
  readonly waitingPulls: number;
  /** Servers that keep it; absent on a single server. */
  readonly replicaCount?: number;
  readonly paused: boolean;
  /** Remaining pause. */
  readonly pauseRemainingMs?: DurationMs;
};

export type AccountState = {
  readonly storageBytes: number;
  readonly storageBytesMax?: number;
  /** Reserved by the limits of streams. */
  readonly storageBytesReserved: number;
  readonly apiLevel: number;
  readonly streams: number;
  readonly domain?: string;
};

export type UserState = {
  /** Name of the account that the connection's user belongs to. */
  readonly accountName: string;
  /** Clock of the server that answered. */
  readonly serverTimeMs: EpochMs;
};

/** What a connection knows of its broker. */
export type BrokerIdentity = {
  readonly serverId: string;
  readonly serverName: string;
  readonly version: string;
  readonly clusterName?: string;
  readonly payloadBytesMax: number;
  readonly isClustered: boolean;
};

/** An answer, or why there is none. */
export type Told<T> = { readonly kind: "told"; readonly value: T } | { readonly kind: "failed"; readonly failure: Failure };

/** Data plane: what workers and clients use. */
export interface JetStream {
  /** Pipelined single publishes; one outcome per message, in order. */
  publish(messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]>;
  /** One atomic batch on one stream: at most `atomicBatchSizeMax` messages, those with an expectation on distinct subjects. */
  publishAtomically(messages: readonly OutgoingMessage[]): Promise<BatchOutcome>;
  /** The last message of each subject. From the leader, a subject may be a wildcard: the last of all that match. */
  readLast(options: { readonly stream: string; readonly subjects: readonly string[]; readonly from: "replica" | "leader" }): Promise<readonly LastMessage[]>;
  /** Removes what lies on a subject; literal or wildcard. Idempotent. */
  purge(options: { readonly stream: string; readonly subject: string }): Promise<Told<{ readonly purged: number }>>;
  /**
   * `lookahead` bounds what is pulled and not yet taken; at most that many are buffered here. `onStalled` hears each time
   * that the consumer held messages and delivered none although it was asked: it has been asked anew.
   */
  openSource(options: { readonly stream: string; readonly consumer: string; readonly lookahead: number; readonly onStalled?: () => void }): PullSource;
  /**
   * Messages under `filter` in stream order, each once, up to the sequence that is last when it begins. Acknowledges
   * nothing. Goes on by itself after a lost connection; throws a Failure when the broker stays silent, because a walk
   * that ended early must not look like a complete one. Ends without a word only when `signal` aborts. With
   * `headersOnly` bodies come empty.
   */
  scan(options: { readonly stream: string; readonly filter: string; readonly batchSize: number; readonly headersOnly?: boolean; readonly signal: AbortSignal }): AsyncIterable<readonly StoredMessage[]>;
  /** A core message; best effort. */
  send(message: { readonly subject: string; readonly headers?: readonly (readonly [string, string])[]; readonly body: Uint8Array }): void;
  /**
   * Core messages on a subject, wildcards allowed, until the returned function is called; survives reconnects. Best
   * effort: what is sent while disconnected is not seen. `listener` must not throw.
   */
  listen(subject: string, listener: (message: { readonly subject: string; readonly body: Uint8Array }) => void): () => void;
  streamState(stream: string): Promise<Told<StreamState>>;
  consumerState(stream: string, consumer: string): Promise<Told<ConsumerState>>;
  accountState(): Promise<Told<AccountState>>;
}

/** Control plane: what the operator alone uses. Configurations are in the server's own field names. */
export interface JetStreamAdmin {
  createStream(config: Readonly<Record<string, unknown>>): Promise<Told<StreamState>>;
  updateStream(config: Readonly<Record<string, unknown>>): Promise<Told<StreamState>>;
  deleteStream(stream: string): Promise<Told<null>>;
  createConsumer(stream: string, config: Readonly<Record<string, unknown>>): Promise<Told<ConsumerState>>;
  updateConsumer(stream: string, config: Readonly<Record<string, unknown>>): Promise<Told<ConsumerState>>;
  /** Pauses until the instant; an instant in the past resumes. */
  pauseConsumer(options: { readonly stream: string; readonly consumer: string; readonly untilMs: EpochMs }): Promise<Told<null>>;
  /** Who the broker takes us for, and its clock. */
  user(): Promise<Told<UserState>>;
}

/** Life of a connection. Every reconnect starts a new epoch. */
export interface BrokerConnection {
  readonly jetStream: JetStream;
  readonly admin: JetStreamAdmin;
  isConnected(): boolean;
  /** Counts from 1; grows at each disconnect, so that what was received before it is recognised as old. */
  epoch(): number;
  identity(): BrokerIdentity | undefined;
  /** Resolves once connected, or with a failure when `timeoutMs` passes or `signal` aborts first. */
  connected(timeoutMs: DurationMs, signal?: AbortSignal): Promise<Told<BrokerIdentity>>;
  onEvent(listener: (event: BrokerEvent) => void): () => void;
  /** Finishes what is in flight, then closes. Idempotent. */
  close(): Promise<void>;
}

/** What happens to a connection. An `error` alone ends nothing. */
export type BrokerEvent =
  | { readonly kind: "connected"; readonly identity: BrokerIdentity; readonly epoch: number }
  | { readonly kind: "disconnected" }
  | { readonly kind: "lame_duck" }
  | { readonly kind: "error"; readonly failure: Failure }
  | { readonly kind: "closed"; readonly failure?: Failure };

/** How to reach a broker. Files are read anew at each dial, so that rotated secrets take effect on reconnect. */
export type BrokerOptions = {
  readonly servers: readonly string[];
  readonly name: string;
  readonly domain?: string;
  readonly auth?: BrokerAuth;
  readonly tls?: BrokerTls;
  /** Replies are received below this subject; `_INBOX` without it. */
  readonly inboxPrefix?: string;
};

/** Each part as a file, or as the PEM text itself; files win. An empty object demands TLS with the system's roots. */
export type BrokerTls = {
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** TLS before the server has said a word; the server must be configured for it too. */
  readonly handshakeFirst?: boolean;
};

/** A secret in files, or itself. A file that cannot be read fails that dial, not the process. */
export type BrokerAuth =
  | { readonly kind: "credentials"; readonly file: string }
  | { readonly kind: "credentials"; readonly text: string }
  | { readonly kind: "nkey"; readonly seedFile: string }
  | { readonly kind: "nkey"; readonly seed: string }
  | { readonly kind: "user"; readonly userFile: string; readonly passwordFile: string }
  | { readonly kind: "user"; readonly user: string; readonly password: string }
  | { readonly kind: "token"; readonly file: string }
  | { readonly kind: "token"; readonly token: string };
