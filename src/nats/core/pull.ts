/**
 * A standing pull on a durable consumer: one pull request at a time, and a bounded buffer of what came and was not taken.
 *
 * 1. Buffered and requested messages together never exceed the look-ahead, and their bytes have a bound of their own.
 * 2. It goes on by itself: after a reconnect, a server restart, a leader change, and when a missing consumer appears.
 *    A request whose heartbeats stop is given up and made anew.
 * 3. When a session ends, everything buffered is dropped: the broker delivers it again.
 * 4. Nothing is asked for before the first `take`.
 * 5. What waits in the buffer has its acknowledgement wait extended; while paused it is handed back instead.
 */
import { assert } from "../../base/assert.ts";
import { utf8 } from "../../base/bytes.ts";
import { ackExtendIntervalMs, messageOverheadBytesMax, pullBackoffMsMax, pullBackoffMsMin, pullBufferBytesMax, pullExpiresMs, pullHeartbeatMs } from "../../base/limits.ts";
import type { DurationMs, MonotonicMs } from "../../base/units.ts";
import { backoffMs } from "../../concurrency/backoff.ts";
import { WaiterList } from "../../concurrency/waiters.ts";
import { inBackground } from "./background.ts";
import { NatsDelivered } from "./delivered.ts";
import type { Delivered, PullSource } from "./jetstream.ts";
import type { Link } from "./link.ts";
import { deliveryInfo } from "./received.ts";
import type { ReceivedMessage } from "./received.ts";
import type { Session } from "./session.ts";

/** Which consumer to pull from, and how far ahead. */
export type PullTarget = { readonly stream: string; readonly consumer: string; readonly lookahead: number };

type Pull = { readonly token: string; remaining: number; heardAtMs: MonotonicMs };

/** A source over one consumer; several may share it, here or elsewhere. */
export class NatsPullSource implements PullSource {
  readonly #link: Link;
  readonly #target: PullTarget;
  readonly #takers = new WaiterList<true>();
  readonly #closing = new AbortController();
  #buffer: NatsDelivered[] = [];
  #bufferBytes = 0;
  #forgetSessions: (() => void) | undefined;
  #session: Session | undefined;
  #inbox = "";
  #leaveInbox: (() => void) | undefined;
  #pull: Pull | undefined;
  #pullCount = 0;
  #failureCount = 0;
  #isBackingOff = false;
  #isPaused = false;

  constructor(link: Link, target: PullTarget) {
    assert(Number.isInteger(target.lookahead) && target.lookahead >= 1, "a look-ahead of at least one message");
    this.#link = link;
    this.#target = target;
  }

  async take(options: { readonly max: number; readonly expiresMs: DurationMs; readonly signal: AbortSignal }): Promise<readonly Delivered[]> {
    this.#start();
    const taken = this.#takeNow(options.max);
    if (taken.length > 0 || options.signal.aborted) return taken;
    const giveUp = new AbortController();
    const onAbort = (): void => giveUp.abort();
    const until = AbortSignal.any([options.signal, this.#closing.signal, giveUp.signal]);
    inBackground(this.#link.clock.sleep(options.expiresMs, until).then(onAbort));
    try {
      while (!until.aborted) {
        await this.#takers.wait(until);
        const arrived = this.#takeNow(options.max);
        if (arrived.length > 0) return arrived;
      }
      return [];
    } finally {
      onAbort();
    }
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#topUp();
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    this.#forgetSessions?.();
    this.#leaveInbox?.();
    this.#handBack();
    this.#takers.dismiss();
  }

  #takeNow(max: number): readonly NatsDelivered[] {
    if (this.#buffer.length === 0) return [];
    const taken = this.#buffer.splice(0, max);
    this.#bufferBytes -= taken.reduce((sum, { heldBytes }) => sum + heldBytes, 0);
    if (this.#buffer.length > 0) this.#takers.serve(true);
    this.#topUp();
    return taken;
  }

  #start(): void {
    if (this.#forgetSessions !== undefined || this.#closing.signal.aborted) return;
    this.#forgetSessions = this.#link.onSession((session) => this.#begin(session));
    inBackground(this.#watch());
  }

  #begin(session: Session): void {
    this.#session = session;
    session.ended.addEventListener("abort", () => this.#drop(), { once: true });
    this.#failureCount = 0;
    this.#renewInbox(session);
    this.#topUp();
  }

  #drop(): void {
    this.#session = undefined;
    this.#pull = undefined;
    this.#leaveInbox = undefined;
    this.#buffer = [];
    this.#bufferBytes = 0;
  }

  /** A request that was given up may still be served: what comes for it must not count for the next one. */
  #renewInbox(session: Session): void {
    this.#leaveInbox?.();
    this.#pull = undefined;
    this.#inbox = session.newInbox();
    this.#leaveInbox = session.subscribe(`${this.#inbox}.*`, (received) => this.#onMessage(session, received));
  }

  #topUp(): void {
    const session = this.#session;
    const mayAsk = !this.#isPaused && !this.#isBackingOff && !this.#closing.signal.aborted;
    if (session === undefined || this.#pull !== undefined || !mayAsk) return;
    const room = this.#target.lookahead - this.#buffer.length;
    // A pull without room for the next message would fail for as long as that message is the next one.
    const messageBytesMax = session.identity.payloadBytesMax + messageOverheadBytesMax;
    const bytes = Math.max(pullBufferBytesMax, messageBytesMax) - this.#bufferBytes;
    if (room < 1 || bytes < messageBytesMax) return;
    this.#pullCount += 1;
    this.#pull = { token: this.#pullCount.toString(36), remaining: room, heardAtMs: this.#link.clock.monotonicMs() };
    const { stream, consumer } = this.#target;
    session.send({
      subject: `${this.#link.apiPrefix}.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
      reply: `${this.#inbox}.${this.#pull.token}`,
      body: utf8(JSON.stringify({ batch: room, max_bytes: bytes, expires: nanos(pullExpiresMs), idle_heartbeat: nanos(pullHeartbeatMs) })),
    });
  }

  #onMessage(session: Session, received: ReceivedMessage): void {
    const nowMs = this.#link.clock.monotonicMs();
    if (this.#pull !== undefined) this.#pull.heardAtMs = nowMs;
    // Only a delivery has an acknowledgement subject; its publisher may have given it any status line.
    const info = deliveryInfo(received.reply);
    if (info === undefined) return this.#onStatus(received);
    this.#failureCount = 0;
    const delivered = new NatsDelivered({ session, received, info, receivedAtMs: nowMs });
    this.#buffer.push(delivered);
    this.#bufferBytes += delivered.heldBytes;
    if (this.#pull !== undefined) {
      this.#pull.remaining -= 1;
      if (this.#pull.remaining <= 0) this.#pull = undefined;
    }
    this.#takers.serve(true);
    this.#topUp();
  }

  #onStatus({ subject, status }: ReceivedMessage): void {
    if (status === undefined || status === statusHeartbeat) return;
    if (this.#pull?.token !== subject.slice(this.#inbox.length + 1)) return;
    this.#pull = undefined;
    if (status === statusRequestTimeout) this.#failureCount = 0;
    else inBackground(this.#backOff());
    this.#topUp();
  }

  async #backOff(): Promise<void> {
    this.#isBackingOff = true;
    this.#failureCount += 1;
    const waitMs = backoffMs({ minMs: pullBackoffMsMin, maxMs: pullBackoffMsMax }, this.#failureCount, this.#link.random.fraction());
    await this.#link.clock.sleep(waitMs, this.#closing.signal);
    this.#isBackingOff = false;
    this.#topUp();
  }

  async #watch(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      await this.#link.clock.sleep(pullHeartbeatMs, this.#closing.signal);
      const nowMs = this.#link.clock.monotonicMs();
      const session = this.#session;
      if (session !== undefined && this.#pull !== undefined && nowMs - this.#pull.heardAtMs > silenceMsMax) this.#renewInbox(session);
      if (this.#isPaused) this.#handBack();
      else this.#extendWaits(nowMs);
      this.#topUp();
    }
  }

  #extendWaits(nowMs: MonotonicMs): void {
    for (const delivered of this.#buffer) {
      if (nowMs - delivered.waitBeganAtMs < ackExtendIntervalMs) continue;
      delivered.waitBeganAtMs = nowMs;
      delivered.settle({ kind: "extend" });
    }
  }

  #handBack(): void {
    for (const delivered of this.#buffer) delivered.settle({ kind: "nak", delayMs: 0 as DurationMs });
    this.#buffer = [];
    this.#bufferBytes = 0;
  }
}

const statusHeartbeat = 100;
const statusRequestTimeout = 408;
/** Two heartbeats missed, and a little for a busy machine. */
const silenceMsMax = 2.5 * pullHeartbeatMs;

function nanos(duration: DurationMs): number {
  return duration * 1_000_000;
}
