/**
 * A standing pull on a durable consumer: one pull request at a time, and a bounded buffer of what came and was not taken.
 *
 * 1. Buffered and requested messages together never exceed the look-ahead, and their bytes have a bound of their own.
 * 2. It goes on by itself: after a reconnect, a server restart, a leader change, and when a missing consumer appears.
 *    A request whose heartbeats stop, or that brings nothing although messages wait, is given up and made anew.
 * 3. When a session ends, or the consumer turns out to be another one, everything buffered is dropped: the broker
 *    delivers it again.
 * 4. Nothing is asked for before the first `take`.
 * 5. What waits in the buffer has its acknowledgement wait extended. A pause hands it back, ends the request, and hands
 *    back what is still on its way: others get it at once, not after the acknowledgement wait.
 */
import { assert } from "../../base/assert.ts";
import { utf8 } from "../../base/bytes.ts";
import { ackExtendIntervalMs, messageOverheadBytesMax, pullBackoffMsMax, pullBackoffMsMin, pullBufferBytesMax, pullExpiresMs, pullHeartbeatMs } from "../../base/limits.ts";
import type { DurationMs, MonotonicMs } from "../../base/units.ts";
import { backoffMs } from "../../concurrency/backoff.ts";
import { inBackground } from "./background.ts";
import { Custody } from "./custody.ts";
import { NatsDelivered } from "./delivered.ts";
import type { ConsumerState, Delivered, PullSource } from "./jetstream.ts";
import type { Link } from "./link.ts";
import { PullStall } from "./pull-stall.ts";
import { PullWindow } from "./pull-window.ts";
import { deliveryInfo } from "./received.ts";
import type { ReceivedMessage } from "./received.ts";
import type { Session, SessionSubscription } from "./session.ts";
import { consumerState } from "./stream-state.ts";
import { Takers } from "./takers.ts";

/** Which consumer to pull from, and how far ahead. */
export type PullTarget = { readonly stream: string; readonly consumer: string; readonly lookahead: number; readonly onStalled?: () => void };

/** A source over one consumer; several may share it, here or elsewhere. */
export class NatsPullSource implements PullSource {
  readonly #link: Link;
  readonly #target: PullTarget;
  readonly #takers: Takers;
  readonly #closing = new AbortController();
  readonly #window = new PullWindow();
  readonly #stall = new PullStall();
  #buffer: NatsDelivered[] = [];
  #bufferBytes = 0;
  #forgetSessions: (() => void) | undefined;
  #session: Session | undefined;
  #inbox = "";
  #inboxSubscription: SessionSubscription | undefined;
  #draining: Promise<void> = Promise.resolve();
  #failureCount = 0;
  #custody: Custody | undefined;
  #isRecovering = false;
  #isPaused = false;

  constructor(link: Link, target: PullTarget) {
    assert(Number.isInteger(target.lookahead) && target.lookahead >= 1, "a look-ahead of at least one message");
    this.#link = link;
    this.#target = target;
    this.#takers = new Takers(link.clock);
  }

  async take(options: { readonly max: number; readonly expiresMs: DurationMs; readonly signal: AbortSignal }): Promise<readonly Delivered[]> {
    this.#start();
    const taken = this.#takeNow(options.max);
    if (taken.length > 0 || options.signal.aborted) return taken;
    const untilMs = this.#link.clock.monotonicMs() + options.expiresMs;
    while (!options.signal.aborted && !this.#closing.signal.aborted && this.#link.clock.monotonicMs() < untilMs) {
      await this.#takers.wait(untilMs, options.signal);
      const arrived = this.#takeNow(options.max);
      if (arrived.length > 0) return arrived;
    }
    return [];
  }

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#draining = this.#inboxSubscription?.drain() ?? Promise.resolve();
    this.#inboxSubscription = undefined;
    this.#inbox = "";
    this.#window.reset();
    this.#handBack();
  }

  resume(): void {
    if (!this.#isPaused || this.#closing.signal.aborted) return;
    this.#isPaused = false;
    if (this.#session !== undefined) this.#renewInbox(this.#session);
    this.#topUp();
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.pause();
    this.#closing.abort();
    this.#forgetSessions?.();
    this.#takers.dismiss();
    await this.#draining;
  }

  #takeNow(max: number): readonly NatsDelivered[] {
    if (this.#buffer.length === 0) return [];
    const taken = this.#buffer.splice(0, max);
    this.#bufferBytes -= taken.reduce((sum, { heldBytes }) => sum + heldBytes, 0);
    if (this.#buffer.length > 0) this.#takers.wake();
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
    if (!this.#isPaused) this.#renewInbox(session);
    inBackground(this.#recover(session));
  }

  #drop(): void {
    this.#session = undefined;
    this.#custody = undefined;
    this.#window.reset();
    this.#inboxSubscription = undefined;
    this.#isRecovering = false;
    this.#buffer = [];
    this.#bufferBytes = 0;
  }

  /** A request that was given up may still be served: what comes for it must not count for the next one. */
  #renewInbox(session: Session): void {
    this.#inboxSubscription?.leave();
    this.#window.reset();
    const inbox = session.newInbox();
    this.#inbox = inbox;
    this.#inboxSubscription = session.subscribe(`${inbox}.*`, (received) => {
      if (this.#inbox === inbox) this.#onMessage(session, received);
      else this.#onLate(session, received);
    });
  }

  /** What was on its way when a pause ended its request would otherwise wait for the end of its acknowledgement wait. */
  #onLate(session: Session, received: ReceivedMessage): void {
    const info = deliveryInfo(received.reply);
    if (info === undefined || this.#custody === undefined) return;
    new NatsDelivered({ session, custody: this.#custody, received, info, clock: this.#link.clock }).settle({ kind: "nak", delayMs: 0 as DurationMs });
  }

  /** Finds out whether the consumer is there and still the same, until it is known; only then is anything asked of it. */
  async #recover(session: Session): Promise<void> {
    if (this.#isRecovering) return;
    this.#isRecovering = true;
    this.#custody?.doubt();
    const until = AbortSignal.any([session.ended, this.#closing.signal]);
    while (!until.aborted && !(await this.#identify(session, "after trouble"))) await this.#backOff(until);
    // Refusals in a row by a consumer that is there are answered ever more slowly, too.
    if (this.#failureCount > 0) await this.#backOff(until);
    if (until.aborted) return;
    this.#isRecovering = false;
    this.#failureCount += 1;
    this.#topUp();
  }

  async #backOff(until: AbortSignal): Promise<void> {
    const waitMs = backoffMs({ minMs: pullBackoffMsMin, maxMs: pullBackoffMsMax }, Math.max(1, this.#failureCount), this.#link.random.fraction());
    this.#failureCount += 1;
    await this.#link.clock.sleep(waitMs, until);
  }

  /** Compares the consumer with the one whose deliveries are held. True when it is known which one it is. */
  async #identify(session: Session, when: "after trouble" | "in passing"): Promise<boolean> {
    const told = await consumerState(this.#link, this.#target.stream, this.#target.consumer);
    if (session.ended.aborted) return false;
    // Without replicas, the only server that keeps it may have come back from a crash without its last messages.
    if (told.kind === "told" && told.value.replicaCount === 1 && when === "after trouble") this.#takeCustody(undefined);
    if (told.kind === "told") {
      this.#judge(session, told.value);
      return this.#meet(told.value.createdAt);
    }
    const { code, kind } = told.failure;
    if (code === "STREAM_MISSING" || code === "CONSUMER_MISSING") this.#takeCustody(undefined);
    else if (kind === "denied") return this.#meet(undefined);
    return false;
  }

  /** Only the request is made anew: the consumer holds what was delivered to others, and is not ours to change. */
  #judge(session: Session, state: ConsumerState): void {
    const isAsking = this.#window.isOpen && !this.#isPaused && !this.#isRecovering;
    if (!this.#stall.isStalled(state, { isAsking, nowMs: this.#link.clock.monotonicMs() })) return;
    this.#renewInbox(session);
    this.#target.onStalled?.();
  }

  #meet(life: string | undefined): boolean {
    const nowMs = this.#link.clock.monotonicMs();
    if (this.#custody === undefined || this.#custody.life !== life) this.#takeCustody(new Custody(life, nowMs));
    this.#custody?.confirm(nowMs);
    return true;
  }

  #takeCustody(custody: Custody | undefined): void {
    this.#custody?.revoke();
    this.#custody = custody;
    this.#buffer = [];
    this.#bufferBytes = 0;
  }

  #topUp(): void {
    const session = this.#session;
    const mayAsk = !this.#isPaused && !this.#isRecovering && !this.#closing.signal.aborted;
    if (session === undefined || this.#custody === undefined || this.#window.isOpen || !mayAsk) return;
    const room = this.#target.lookahead - this.#buffer.length - this.#window.expected;
    // A pull without room for the next message would fail for as long as that message is the next one.
    const bytes = Math.max(pullBufferBytesMax, messageBytesMax(session)) - this.#bufferBytes;
    if (room < 1 || bytes < messageBytesMax(session)) return;
    const { stream, consumer } = this.#target;
    session.send({
      subject: `${this.#link.apiPrefix}.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
      reply: `${this.#inbox}.${this.#window.open(room, this.#link.clock.monotonicMs())}`,
      body: utf8(JSON.stringify({ batch: room, max_bytes: bytes, expires: nanos(pullExpiresMs), idle_heartbeat: nanos(pullHeartbeatMs) })),
    });
  }

  #onMessage(session: Session, received: ReceivedMessage): void {
    this.#window.heard(this.#link.clock.monotonicMs());
    // Only a delivery has an acknowledgement subject; its publisher may have given it any status line.
    const info = deliveryInfo(received.reply);
    if (info === undefined) return this.#onStatus(session, received);
    this.#window.arrived();
    if (this.#custody === undefined) return;
    this.#failureCount = 0;
    const delivered = new NatsDelivered({ session, custody: this.#custody, received, info, clock: this.#link.clock });
    this.#buffer.push(delivered);
    this.#bufferBytes += delivered.heldBytes;
    this.#takers.wake();
    this.#topUp();
  }

  #onStatus(session: Session, { subject, status, headerBytes }: ReceivedMessage): void {
    const token = subject.slice(this.#inbox.length + 1);
    const meaning = this.#window.status({ token, ...(status === undefined ? {} : { status }), ...(headerBytes === undefined ? {} : { headerBytes }) }, messageBytesMax(session));
    if (meaning === "trouble") inBackground(this.#recover(session));
    if (meaning !== "ended") return;
    this.#failureCount = 0;
    this.#topUp();
  }

  async #watch(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      await this.#link.clock.sleep(pullHeartbeatMs, this.#closing.signal);
      const nowMs = this.#link.clock.monotonicMs();
      if (this.#session !== undefined) await this.#look(this.#session, nowMs);
      this.#extendWaits(nowMs);
      this.#topUp();
    }
  }

  /** A request that has fallen silent is given up; without a sign of trouble the consumer is looked at all the same. */
  async #look(session: Session, nowMs: MonotonicMs): Promise<void> {
    if (this.#isRecovering) return;
    const isSilent = this.#window.isSilent(nowMs, silenceMsMax);
    if (isSilent) this.#renewInbox(session);
    const isKnown = !isSilent && (await this.#identify(session, "in passing"));
    const isLost = isSilent || (!isKnown && this.#custody === undefined);
    if (isLost && !session.ended.aborted) inBackground(this.#recover(session));
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

/** Two heartbeats missed, and a little for a busy machine. */
const silenceMsMax = 2.5 * pullHeartbeatMs;

/** The room that any message of this broker needs. */
function messageBytesMax({ identity }: Session): number {
  return identity.payloadBytesMax + messageOverheadBytesMax;
}

function nanos(duration: DurationMs): number {
  return duration * 1_000_000;
}
