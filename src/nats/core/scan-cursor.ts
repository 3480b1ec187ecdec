/** One ephemeral consumer of a walk, read part by part. It lives no longer than the session in which it was made. */
import { assert } from "../../base/assert.ts";
import { noBytes, utf8 } from "../../base/bytes.ts";
import { messageOverheadBytesMax, pullBufferBytesMax, pullExpiresMs, pullHeartbeatMs } from "../../base/limits.ts";
import type { DurationMs } from "../../base/units.ts";
import type { StoredMessage } from "../../protocol/message.ts";
import { consumerCreateSubject } from "./admin.ts";
import { apiFailure, timeoutFailure } from "./classify.ts";
import { messageHeaders } from "./headers.ts";
import { consumerStateFrom } from "./info.ts";
import type { Told } from "./jetstream.ts";
import { disconnectedFailure, requestJson } from "./link.ts";
import type { Link } from "./link.ts";
import { deliveredMessage, deliveryInfo } from "./received.ts";
import type { ReceivedMessage } from "./received.ts";
import type { Session } from "./session.ts";

/** Where a part of a walk begins, and how large its parts are. */
export type CursorOptions = {
  readonly stream: string;
  readonly filter: string;
  readonly fromSequence: number;
  readonly batchSize: number;
  readonly headersOnly?: boolean;
};

/** Makes the consumer of a walk. It goes by itself when nobody reads for a minute. */
export async function openCursor(link: Link, options: CursorOptions): Promise<Told<Cursor>> {
  const { stream, filter, fromSequence } = options;
  const session = link.session();
  const attempt = `walk over ${filter} of ${stream}`;
  if (session === undefined) return { kind: "failed", failure: disconnectedFailure(link, attempt) };
  const consumer = `durable-timer-walk-${link.random.token(12)}`;
  const config = {
    name: consumer,
    deliver_policy: "by_start_sequence",
    opt_start_seq: fromSequence,
    ack_policy: "none",
    filter_subject: filter,
    headers_only: options.headersOnly === true,
    mem_storage: true,
    num_replicas: 1,
    inactive_threshold: inactiveNs,
  };
  const subject = `${link.apiPrefix}.${consumerCreateSubject(stream, consumer, config)}`;
  const told = await requestJson(link, { subject, attempt, payload: { stream_name: stream, config, action: "create" } });
  if (told.kind === "failed") return told;
  const state = consumerStateFrom(attempt, told.value);
  if (state.kind === "failed") return state;
  return { kind: "told", value: new Cursor({ link, session, options, consumer, attempt, pending: state.value.pending }) };
}

/** A walk that stands still for longer starts a new consumer. */
const inactiveNs = 60_000_000_000;

type CursorParts = {
  readonly link: Link;
  readonly session: Session;
  readonly options: CursorOptions;
  readonly consumer: string;
  readonly attempt: string;
  readonly pending: number;
};

/** Reads one consumer part by part; close it. */
export class Cursor {
  readonly #parts: CursorParts;
  readonly #inbox: string;
  readonly #leave: () => void;
  #pending: number;
  #onMessage: ((received: ReceivedMessage) => void) | undefined;

  constructor(parts: CursorParts) {
    this.#parts = parts;
    this.#pending = parts.pending;
    this.#inbox = parts.session.newInbox();
    this.#leave = parts.session.subscribe(this.#inbox, (received) => this.#onMessage?.(received)).leave;
  }

  /** True when nothing under the filter lies behind what was read. */
  isDrained(): boolean {
    return this.#pending === 0;
  }

  /** The next messages, at least one; it stops early behind `lastSequence`. */
  async next(lastSequence: number): Promise<Told<readonly StoredMessage[]>> {
    assert(this.#onMessage === undefined, "one reader of a walk");
    const { session, link, attempt } = this.#parts;
    const messages: StoredMessage[] = [];
    let status: number | undefined;
    let heardAtMs = link.clock.monotonicMs();
    const done = new AbortController();
    this.#onMessage = (received) => {
      heardAtMs = link.clock.monotonicMs();
      const info = deliveryInfo(received.reply);
      if (info === undefined) {
        // A request may be told to be done before its messages come.
        if (received.status === statusHeartbeat || messageHeaders(received.headerBytes).get("Nats-Pending-Messages") === "0") return;
        status = received.status;
        return done.abort();
      }
      messages.push(deliveredMessage(received, info));
      this.#pending = info.pending;
      if (messages.length >= this.#parts.options.batchSize || info.pending === 0 || info.streamSequence >= lastSequence) done.abort();
    };
    this.#request();
    const until = AbortSignal.any([done.signal, session.ended]);
    while (!until.aborted && link.clock.monotonicMs() - heardAtMs < silenceMsMax) await link.clock.sleep(pullHeartbeatMs, until);
    this.#onMessage = undefined;
    if (messages.length > 0) return { kind: "told", value: messages };
    if (session.ended.aborted) return { kind: "failed", failure: disconnectedFailure(link, attempt) };
    return { kind: "failed", failure: status === undefined ? timeoutFailure(attempt) : apiFailure(attempt, { code: status, err_code: 0, description: `status ${String(status)}` }) };
  }

  close(): void {
    this.#leave();
    const { session, link, options, consumer } = this.#parts;
    session.send({ subject: `${link.apiPrefix}.CONSUMER.DELETE.${options.stream}.${consumer}`, body: noBytes });
  }

  #request(): void {
    const { session, link, options, consumer } = this.#parts;
    const max_bytes = Math.max(pullBufferBytesMax, session.identity.payloadBytesMax + messageOverheadBytesMax);
    const pull = { batch: options.batchSize, max_bytes, expires: nanos(pullExpiresMs), idle_heartbeat: nanos(pullHeartbeatMs) };
    session.send({ subject: `${link.apiPrefix}.CONSUMER.MSG.NEXT.${options.stream}.${consumer}`, reply: this.#inbox, body: utf8(JSON.stringify(pull)) });
  }
}

const statusHeartbeat = 100;
const silenceMsMax = 2.5 * pullHeartbeatMs;

function nanos(duration: DurationMs): number {
  return duration * 1_000_000;
}
