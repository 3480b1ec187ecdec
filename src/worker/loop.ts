/**
 * The loop of one source: takes messages, keeps those that are not due, hands batches to `step`, and settles each
 * message by its result.
 *
 * L1 At most `lookahead` messages are in hand, taken and not settled; nothing more is taken while they hold
 *    `workerInHandBytesMax` bytes: as many starts of the largest size would not fit in the process. What waits for a
 *    second look has bounds of its own (second-looks.ts) and does not count here.
 * L2 At most `workerBatchesInFlightMax` batches are being stepped; when one ends, everything that is ready goes next.
 *    One small batch per tick instead would drown in per-batch cost.
 * L3 A message is settled only after everything its decision asked for is durable, and only in its own epoch.
 * L4 No flow starves another in what is in hand: batches take from each flow in turn, and from what came in order.
 * L5 What is in hand has its acknowledgement wait extended; what came before a disconnect is dropped unsettled, for
 *    the broker will deliver it again.
 */
import { present } from "../base/assert.ts";
import {
  ackExtendIntervalMs, loopStallMsMax, messagesRememberedMax, newerInputRecheckMs, wakeEarlyMsMax, workerBatchBytesMax, workerBatchesInFlightMax, workerBatchMsMax,
  workerBatchSizeMax, workerInHandBytesMax,
} from "../base/limits.ts";
import { since, epochMsFromNanos, type DurationMs, type MonotonicMs } from "../base/units.ts";
import { stepAdmitted } from "./admitted-step.ts";
import { decode } from "./decode.ts";
import { DelayQueue } from "./delay-queue.ts";
import { FairQueue } from "./fair-queue.ts";
import { foregone, knownFrom } from "./foregone.ts";
import { waitForDue } from "./due.ts";
import type { Delivery, SourceName } from "./ports.ts";
import type { InHand, LoopOptions } from "./loop-options.ts";
import { MessageMemory } from "./message-memory.ts";
import { SecondLooks } from "./second-looks.ts";
import { foreign, malformed, settle } from "./settle.ts";
import type { StepResult } from "./step.ts";

/** Takes, keeps, steps and settles the messages of one source. */
export class WorkLoop {
  readonly #options: LoopOptions;
  readonly #ready = new FairQueue<InHand>();
  readonly #delayed = new DelayQueue<InHand>();
  /** Batches that are being stepped, with when each began. */
  readonly #inFlight = new Map<Promise<void>, MonotonicMs>();
  readonly #inHand = new Set<InHand>();
  readonly #secondLooks = new SecondLooks();
  readonly #handBacks = new MessageMemory<number>({ countMax: messagesRememberedMax });
  #inHandBytes = 0;
  readonly #stopping = new AbortController();
  #wakeUp: () => void = () => undefined;
  #progressAtMs: MonotonicMs;
  /** Since when the source has been asked; it answers within `takeExpiresMs`. */
  #takingSinceMs: MonotonicMs | undefined;
  #refreshing = false;
  #failure: Error | undefined;

  constructor(options: LoopOptions) {
    this.#options = options;
    this.#progressAtMs = options.clock.monotonicMs();
  }

  get name(): SourceName {
    return this.#options.name;
  }

  /** Messages taken and not settled. */
  inHandCount(): number {
    return this.#inHand.size;
  }

  /**
   * When the loop last went round, its source answered, and its batches were not older than they may get. An old value
   * while the process lives means that something hangs.
   */
  progressAtMs(): MonotonicMs {
    const takingMs = (this.#takingSinceMs ?? Infinity) + takeExpiresMs;
    const steppingMs = Math.min(...this.#inFlight.values()) + workerBatchMsMax - loopStallMsMax;
    return Math.min(this.#progressAtMs, takingMs, steppingMs) as MonotonicMs;
  }

  /** Runs until `stop`; resolves once nothing is in flight any more. Rejects only for a bug in a step. */
  async run(): Promise<void> {
    await Promise.all([this.#takeLoop(), this.#dispatchLoop(), this.#extendLoop()]);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Stops taking, hands back what has not been begun, and gives what is in flight `graceMs` to finish. */
  async stop(graceMs: DurationMs): Promise<void> {
    this.#options.ports.sources[this.name].pause();
    this.#stopping.abort();
    this.#wakeUp();
    this.#handBack([...this.#ready.drain(), ...this.#delayed.drain()]);
    this.#reportHeld();
    await Promise.race([Promise.all(this.#inFlight.keys()), this.#options.clock.sleep(graceMs)]);
    this.#handBack([...this.#inHand]);
  }

  async #takeLoop(): Promise<void> {
    const { signal } = this.#stopping;
    const source = this.#options.ports.sources[this.name];
    while (!signal.aborted) {
      await this.#waitForGate(signal);
      const room = this.#options.lookahead - (this.#inHand.size - this.#secondLooks.count);
      if (signal.aborted) break;
      if (room <= 0 || this.#inHandBytes - this.#secondLooks.bytes >= workerInHandBytesMax) {
        await this.#options.clock.sleep(fullPauseMs, signal);
        continue;
      }
      const max = Math.min(room, takeCountMax);
      this.#takingSinceMs = this.#options.clock.monotonicMs();
      const deliveries = await source.take({ max, expiresMs: takeExpiresMs, signal });
      this.#takingSinceMs = undefined;
      this.#accept(deliveries);
    }
  }

  async #waitForGate(signal: AbortSignal): Promise<void> {
    const { gate, ports } = this.#options;
    if (gate === undefined || gate.isOpen()) return;
    const source = ports.sources[this.name];
    source.pause();
    this.#handBack(this.#ready.drain());
    await gate.waitOpen(signal);
    if (!signal.aborted) source.resume();
  }

  #accept(deliveries: readonly Delivery[]): void {
    if (deliveries.length === 0) return;
    const { name, clock, metrics } = this.#options;
    const nowMs = clock.monotonicMs();
    const brokerNowMs = this.#options.ports.clock.lowerBoundMs();
    const oldest = present(deliveries[0], "a first delivery").message;
    const oldestAgeMs = brokerNowMs === undefined ? undefined : since(brokerNowMs, epochMsFromNanos(oldest.timestampNs));
    metrics.taken(name, { count: deliveries.length, ...(oldestAgeMs === undefined ? {} : { oldestAgeMs }) });
    for (const delivery of deliveries) this.#acceptOne(delivery, nowMs);
    this.#wakeUp();
  }

  #acceptOne(delivery: Delivery, nowMs: MonotonicMs): void {
    const decoded = decode(this.name, delivery.message, this.#options);
    if (decoded.kind === "malformed") return malformed(this.#options, delivery, decoded.command);
    if (decoded.kind === "foreign") return foreign(this.#options, delivery, decoded.problem);
    const { replyTo, dueAtMs } = decoded;
    const { message } = delivery;
    const work = { ...decoded.work, basis: this.#secondLooks.basisOf(message, decoded.work.basis, nowMs) };
    const item: InHand = {
      delivery, work, key: work.key, bytes: message.body.length + (message.headers.byteCount ?? 0), extendedAtMs: nowMs,
      handBackCount: this.#handBacks.recall(message) ?? 0,
      ...(replyTo === undefined ? {} : { replyTo }), ...(dueAtMs === undefined ? {} : { dueAtMs }),
    };
    this.#inHand.add(item);
    this.#inHandBytes += item.bytes;
    this.#enqueue(item, nowMs);
  }

  /** Ready now, or later by the broker's clock. A wake that claims to be far too early is not believed: its record knows. */
  #enqueue(item: InHand, nowMs: MonotonicMs): void {
    const waitMs = item.dueAtMs === undefined ? 0 : waitForDue(item.dueAtMs, this.#options.ports.clock.lowerBoundMs());
    if (waitMs <= 0 || waitMs > wakeEarlyMsMax) this.#ready.push(item);
    else this.#delayed.push((nowMs + waitMs) as MonotonicMs, item);
  }

  async #dispatchLoop(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#progressAtMs = this.#options.clock.monotonicMs();
      const awakened = new Promise<void>((resolve) => { this.#wakeUp = resolve; });
      this.#promoteDelayed();
      this.#dispatch();
      await this.#sleepUntilNext(awakened);
    }
    await Promise.all(this.#inFlight.keys());
  }

  /** Moves what has become ready; a wake that the broker's clock does not yet confirm goes back to waiting. */
  #promoteDelayed(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const item of this.#delayed.takeReady(nowMs)) this.#enqueue(item, nowMs);
    if (this.name !== "wake") return;
    this.#reportHeld();
    if (this.#delayed.size() > 0 && this.#options.ports.clock.lowerBoundMs() === undefined) this.#refreshClock();
  }

  #reportHeld(): void {
    if (this.name === "wake") this.#options.metrics.wakesHeld(this.#delayed.size());
  }

  #refreshClock(): void {
    if (this.#refreshing) return;
    this.#refreshing = true;
    const done = (): void => { this.#refreshing = false; };
    this.#options.ports.clock.refresh().then(done, done);
  }

  #dispatch(): void {
    while (this.#inFlight.size < workerBatchesInFlightMax) {
      const batch = this.#ready.take({ countMax: workerBatchSizeMax, bytesMax: workerBatchBytesMax });
      if (batch.length === 0) return;
      const running = this.#runBatch(batch).catch((error: unknown) => { this.#fail(error); }).finally(() => {
        this.#inFlight.delete(running);
        this.#wakeUp();
      });
      this.#inFlight.set(running, this.#options.clock.monotonicMs());
    }
  }

  async #sleepUntilNext(awakened: Promise<void>): Promise<void> {
    const next = this.#delayed.nextReadyAtMs();
    const waitMs = next === undefined ? idleTickMs : Math.min(idleTickMs, Math.max(0, next - this.#options.clock.monotonicMs()));
    const timer = new AbortController();
    await Promise.race([awakened, this.#options.clock.sleep(waitMs as DurationMs, timer.signal)]);
    timer.abort();
  }

  async #runBatch(batch: readonly InHand[]): Promise<void> {
    const { clock, metrics, name } = this.#options;
    const beganAtMs = clock.monotonicMs();
    const current = batch.filter((item) => item.delivery.isCurrent());
    for (const item of batch) if (!item.delivery.isCurrent()) this.#release(item);
    const results = await stepAdmitted(this.#options, current.map(({ work }) => work));
    current.forEach((item, index) => { this.#conclude(item, present(results[index], "one result per work")); });
    metrics.batchFinished(name, (clock.monotonicMs() - beganAtMs) as DurationMs);
  }

  /** A bug: the process must end. Its messages come back after their acknowledgement wait. */
  #fail(error: unknown): void {
    this.#failure ??= new Error(`step a batch of the ${this.name} loop`, { cause: error });
    this.#stopping.abort();
  }

  #conclude(item: InHand, result: StepResult): void {
    const nowMs = this.#options.clock.monotonicMs();
    this.#ready.done(item.key);
    if (this.#stopping.signal.aborted && (result.kind === "hold" || result.kind === "recheck")) return this.#handBack([item]);
    if (result.kind === "hold") {
      const waitMs = Math.max(1, waitForDue(result.dueAtMs, this.#options.ports.clock.lowerBoundMs()));
      this.#delayed.push((nowMs + waitMs) as MonotonicMs, item);
      return;
    }
    if (result.kind === "recheck") return this.#lookAgain(item, nowMs);
    settle(this.#options, item, result);
    this.#forget(item);
    if (result.kind === "hand_back") this.#handBacks.remember(item.delivery.message, item.handBackCount + 1);
    else this.#handBacks.forget(item.delivery.message);
    this.#answerWaiting(item, result);
  }

  /** What is known of the timer now answers others that wait for it; the rest goes on waiting. */
  #answerWaiting({ key }: InHand, result: StepResult): void {
    const known = this.name === "wake" ? undefined : knownFrom(result, this.name === "start");
    if (known === undefined) return;
    for (const waiting of this.#ready.takeWaiting(key)) {
      const answer = waiting.delivery.isCurrent() ? foregone(known, waiting.work.input) : undefined;
      if (answer === undefined) this.#ready.push(waiting);
      else {
        settle(this.#options, waiting, answer);
        this.#forget(waiting);
      }
    }
  }

  #lookAgain(item: InHand, nowMs: MonotonicMs): void {
    if (!this.#secondLooks.hold(item, nowMs)) return this.#handBack([item], newerInputRecheckMs);
    item.work = { ...item.work, basis: "leader_again" };
    this.#delayed.push((nowMs + newerInputRecheckMs) as MonotonicMs, item);
  }

  /** Forgets an item of a batch without settling it. */
  #release(item: InHand): void {
    this.#ready.done(item.key);
    this.#forget(item);
  }

  /** False when it was not in hand any more. */
  #forget(item: InHand): boolean {
    if (!this.#inHand.delete(item)) return false;
    this.#inHandBytes -= item.bytes;
    this.#secondLooks.release(item);
    return true;
  }

  #handBack(items: readonly InHand[], delayMs = 0 as DurationMs): void {
    for (const item of items) {
      if (this.#forget(item)) item.delivery.nak(delayMs);
    }
    if (items.length > 0) this.#options.metrics.settled(this.name, "handed_back", items.length);
  }

  async #extendLoop(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stopping.signal.aborted) {
      await clock.sleep(extendTickMs, this.#stopping.signal);
      const nowMs = clock.monotonicMs();
      for (const item of this.#inHand) {
        if (item.delivery.isCurrent() && nowMs - item.extendedAtMs >= ackExtendIntervalMs) {
          item.delivery.extend();
          item.extendedAtMs = nowMs;
        }
      }
      this.#dropOld();
      if (this.name === "wake" && this.#delayed.size() > 0) this.#refreshClock();
    }
  }

  /** L5: messages of an earlier epoch that are not being stepped right now. */
  #dropOld(): void {
    const isKept = (item: InHand): boolean => {
      if (item.delivery.isCurrent()) return true;
      this.#forget(item);
      return false;
    };
    this.#ready.keep(isKept);
    this.#delayed.keep(isKept);
  }
}

/** Messages asked for in one go. */
const takeCountMax = 500;
/** How long one take waits for a first message. */
const takeExpiresMs = 5_000 as DurationMs;
/** Pause while the look-ahead is used up. */
const fullPauseMs = 2 as DurationMs;
/** The dispatcher goes round at least this often, which shows that it lives. */
const idleTickMs = 1_000;
/** How often messages in hand are examined for extension; a fraction of the extension interval. */
const extendTickMs = 2_000 as DurationMs;
