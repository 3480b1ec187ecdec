/** The data plane of the model: the narrow interface, each call a request that may get lost. */
import type { Failure } from "../../src/base/failure.ts";
import { assert, present } from "../../src/base/assert.ts";
import { atomicBatchSizeMax, scanAttemptsMax, scanRetryDelayMs } from "../../src/base/limits.ts";
import type { EpochMs } from "../../src/base/units.ts";
import { apiFailure, noRespondersFailure } from "../../src/nats/core/classify.ts";
import type {
  AccountState, BatchOutcome, ConsumerState, JetStream, LastMessage, OutgoingMessage, PublishOutcome, PullSource, StreamState, Told,
} from "../../src/nats/core/jetstream.ts";
import { sizeFailure } from "../../src/nats/core/publisher.ts";
import type { StoredMessage } from "../../src/protocol/message.ts";
import type { ModelBroker } from "./broker.ts";
import type { ModelConnection, Reply } from "./connection.ts";
import type { ModelConsumer } from "./consumer.ts";
import { ModelSource } from "./source.ts";
import { hasWildcard, matches, type Kept } from "./store.ts";
import type { ModelStream, Refused } from "./stream.ts";

export class ModelJetStream implements JetStream {
  readonly #connection: ModelConnection;

  constructor(connection: ModelConnection) {
    this.#connection = connection;
  }

  async publish(messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]> {
    return await Promise.all(messages.map((message) => this.#publishOne(message)));
  }

  async publishAtomically(messages: readonly OutgoingMessage[]): Promise<BatchOutcome> {
    assert(messages.length >= 1 && messages.length <= atomicBatchSizeMax, "a batch within the limit");
    const first = present(messages[0], "a first message");
    const attempt = `publish ${String(messages.length)} messages in one batch, the first to ${first.subject}`;
    const failure = messages.map((message) => sizeFailure(message, this.#broker.identity().payloadBytesMax)).find((found) => found !== undefined);
    if (failure !== undefined) return { kind: "refused", failure };
    const reply = await this.#connection.request({
      operation: { kind: "batch", stream: this.#streamNameOf(first.subject), subject: first.subject, count: messages.length }, attempt,
      act: () => this.#broker.streamOf(first.subject)?.publishAtomically(messages) ?? "unserved",
    });
    return outcomeOf(attempt, reply);
  }

  async readLast({ stream, subjects, from }: { readonly stream: string; readonly subjects: readonly string[]; readonly from: "replica" | "leader" }): Promise<readonly LastMessage[]> {
    if (subjects.length === 0) return [];
    assert(from === "leader" || !subjects.some(hasWildcard), "wildcards are for the leader");
    const attempt = `read ${String(subjects.length)} subjects of ${stream} from the ${from}`;
    const reply = await this.#connection.request({
      operation: { kind: "read", stream, subject: subjects[0] ?? "", count: from === "leader" ? 1 : subjects.length }, attempt,
      act: () => {
        const found = this.#broker.streams.get(stream);
        if (found === undefined) return "missing";
        const lagMs = from === "leader" ? 0 : this.#broker.weather.replicaLagMs(stream);
        return subjects.map((subject) => lastOn(found, subject, lagMs === 0 ? undefined : this.#broker.timeline.nowMs() - lagMs));
      },
    });
    if (reply.kind !== "answer") return subjects.map(() => ({ kind: "failed", failure: reply.failure }));
    const { value } = reply;
    if (value !== "missing") return value.map((kept) => (kept === undefined ? { kind: "absent" } : { kind: "found", message: kept }));
    const failure = from === "leader" ? apiError(attempt, streamNotFound) : noRespondersFailure(attempt);
    return subjects.map(() => ({ kind: "failed", failure }));
  }

  purge({ stream, subject }: { readonly stream: string; readonly subject: string }): Promise<Told<{ readonly purged: number }>> {
    return this.ask({
      kind: "purge", stream, subject, attempt: `purge ${subject} of ${stream}`,
      act: (found) => ({ purged: found.purge(subject) }),
    });
  }

  openSource(options: { readonly stream: string; readonly consumer: string; readonly lookahead: number }): PullSource {
    return new ModelSource(this.#connection, options);
  }

  async *scan(options: { readonly stream: string; readonly filter: string; readonly batchSize: number; readonly headersOnly?: boolean; readonly signal: AbortSignal }): AsyncIterable<readonly StoredMessage[]> {
    let next = 1;
    let last: number | undefined;
    for (let failureCount = 0; !options.signal.aborted;) {
      const part = await this.#readPart(options, next, last);
      if (part.kind === "failed") {
        failureCount += 1;
        if (failureCount >= scanAttemptsMax || part.failure.code === "STREAM_MISSING") throw part.failure;
        await this.#pause(scanRetryDelayMs);
        continue;
      }
      failureCount = 0;
      last = part.value.last;
      next = (part.value.messages.at(-1)?.sequence ?? last) + 1;
      if (part.value.messages.length > 0) yield part.value.messages;
      if (part.value.isLast) return;
    }
  }

  send(message: { readonly subject: string; readonly body: Uint8Array }): void {
    this.#connection.tell({ kind: "info", stream: "", subject: message.subject }, () => this.#broker.send(message.subject, message.body, matches));
  }

  listen(subject: string, listener: (message: { readonly subject: string; readonly body: Uint8Array }) => void): () => void {
    return this.#broker.subscribe(subject, (actual, body) => {
      if (this.#connection.isConnected()) this.#connection.receive(this.#broker.weather.deliveryMs(), () => listener({ subject: actual, body }));
    });
  }

  streamState(stream: string): Promise<Told<StreamState>> {
    return this.ask({ kind: "info", stream, subject: "", attempt: `ask for stream ${stream}`, act: (found) => streamStateOf(this.#broker, found) });
  }

  async consumerState(stream: string, consumer: string): Promise<Told<ConsumerState>> {
    const attempt = `ask for consumer ${consumer} of ${stream}`;
    const told = await this.ask({
      kind: "info", stream, subject: "", attempt,
      act: (found) => { const one = found.consumers.get(consumer); return one === undefined ? "missing" : consumerStateOf(this.#broker, one); },
    });
    if (told.kind === "failed") return told;
    return told.value === "missing" ? { kind: "failed", failure: apiError(attempt, consumerNotFound) } : { kind: "told", value: told.value };
  }

  async accountState(): Promise<Told<AccountState>> {
    const reply = await this.#connection.request({
      operation: { kind: "info", stream: "", subject: "" }, attempt: "ask for the account's usage",
      act: (): AccountState => {
        const max = this.#broker.storageBytesMax;
        const used = { storageBytes: this.#broker.storageBytes(), storageBytesReserved: 0, apiLevel: 4, streams: this.#broker.streams.size };
        return max === undefined ? used : { ...used, storageBytesMax: max };
      },
    });
    return reply.kind === "answer" ? { kind: "told", value: reply.value } : { kind: "failed", failure: reply.failure };
  }

  /** One question about a stream, answered by its leader. */
  async ask<T>(question: { readonly kind: "purge" | "info"; readonly stream: string; readonly subject: string; readonly attempt: string; readonly act: (stream: ModelStream) => T }): Promise<Told<T>> {
    const { kind, stream, subject, attempt, act } = question;
    const reply = await this.#connection.request({
      operation: { kind, stream, subject }, attempt,
      act: (): { readonly value: T } | "missing" => { const found = this.#broker.streams.get(stream); return found === undefined ? "missing" : { value: act(found) }; },
    });
    if (reply.kind !== "answer") return { kind: "failed", failure: reply.failure };
    return reply.value === "missing" ? { kind: "failed", failure: apiError(attempt, streamNotFound) } : { kind: "told", value: reply.value.value };
  }

  get #broker(): ModelBroker {
    return this.#connection.broker;
  }

  #streamNameOf(subject: string): string {
    return this.#broker.streamOf(subject)?.name ?? "";
  }

  async #publishOne(message: OutgoingMessage): Promise<PublishOutcome> {
    const attempt = `publish to ${message.subject}`;
    const failure = sizeFailure(message, this.#broker.identity().payloadBytesMax);
    if (failure !== undefined && this.#connection.isConnected()) return { kind: "refused", failure };
    const reply = await this.#connection.request({
      operation: { kind: "publish", stream: this.#streamNameOf(message.subject), subject: message.subject }, attempt,
      act: () => this.#broker.streamOf(message.subject)?.publish(message) ?? "unserved",
    });
    return outcomeOf(attempt, reply);
  }

  #readPart(options: { readonly stream: string; readonly filter: string; readonly batchSize: number; readonly headersOnly?: boolean }, from: number, until: number | undefined): Promise<Told<{ readonly messages: readonly Kept[]; readonly last: number; readonly isLast: boolean }>> {
    return this.ask({
      kind: "info", stream: options.stream, subject: options.filter, attempt: `walk over ${options.filter} of ${options.stream}`,
      act: ({ store }) => {
        const last = until ?? store.lastSequence;
        const left = store.under(options.filter).filter(({ sequence }) => sequence >= from && sequence <= last);
        const part = left.slice(0, options.batchSize);
        return { messages: options.headersOnly === true ? part.map((kept) => ({ ...kept, body: new Uint8Array(0) })) : part, last, isLast: left.length <= options.batchSize };
      },
    });
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => { this.#broker.timeline.after(delayMs, () => { if (!this.#connection.isDead()) resolve(); }); });
  }
}

/** The last message on a subject, now or as it was. */
function lastOn(stream: ModelStream, subject: string, atMs: number | undefined): Kept | undefined {
  if (hasWildcard(subject)) return stream.store.under(subject).at(-1);
  return atMs === undefined ? stream.store.last(subject) : stream.store.lastAt(subject, atMs);
}

function outcomeOf<T extends { readonly kind: "stored" }>(attempt: string, reply: Reply<T | Refused | "unserved">): T | { readonly kind: "conflict" } | { readonly kind: "refused" | "unknown"; readonly failure: Failure } {
  if (reply.kind !== "answer") return { kind: reply.kind === "unsent" ? "refused" : "unknown", failure: reply.failure };
  const { value } = reply;
  if (value === "unserved") return { kind: "refused", failure: noRespondersFailure(attempt) };
  if (value.kind !== "error") return value;
  const failure = apiError(attempt, value);
  return failure.kind === "conflict" ? { kind: "conflict" } : { kind: "refused", failure };
}

/** The failure that the real adapter would make of the server's code. */
export function apiError(attempt: string, { code, status }: { readonly code: number; readonly status: number }): Failure {
  return apiFailure(attempt, { code: status, err_code: code, description: "said the model" });
}

export function streamStateOf(broker: ModelBroker, stream: ModelStream): StreamState {
  const { store } = stream;
  const leader = broker.leader();
  return {
    name: stream.name, config: stream.config, createdAt: stream.createdAt,
    messages: store.count, bytes: store.bytes, firstSequence: store.firstSequence, lastSequence: store.lastSequence,
    replicas: Array.from({ length: broker.replicas - 1 }, (_, index) => ({ name: `model-peer-${String(index)}`, current: true, offline: false, lag: 0 })),
    ...(leader === undefined ? {} : { leader }),
    serverTimeMs: Math.floor(broker.clockMs()) as EpochMs,
  };
}

export function consumerStateOf(broker: ModelBroker, consumer: ModelConsumer): ConsumerState {
  const remainingMs = Math.max(0, consumer.pausedUntilMs - broker.clockMs());
  return {
    name: consumer.name, config: consumer.config, createdAt: consumer.createdAt, pending: consumer.pending, ackPending: consumer.ackPending,
    redelivered: consumer.redeliveredCount, waitingPulls: consumer.waitingPulls, paused: consumer.isPaused(),
    ...(remainingMs === 0 ? {} : { pauseRemainingMs: remainingMs as never }),
  };
}

export const streamNotFound = { code: 10059, status: 404 } as const;
export const consumerNotFound = { code: 10014, status: 404 } as const;
