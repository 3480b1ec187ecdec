// Somebody who watches STATE during a chaos run, beside the servers' clients that are disturbed: records pass in stream order, so that
// numbers that go back and lives after the end are seen, and the last record of each timer is known when only its archive is left.

import { AckPolicy, DeliverPolicy, jetstreamManager } from "@nats-io/jetstream";
import { connect, createInbox, nanos, type Msg, type NatsConnection } from "@nats-io/transport-node";
import type { DurationMs } from "../../src/base/units.ts";
import { deliveryInfo } from "../../src/nats/core/received.ts";
import { stateRecordFilter, streamNames, timerKeyFromSubject } from "../../src/protocol/names.ts";
import { decodeRecord } from "../../src/protocol/record-codec.ts";
import { systemClock } from "../../src/system/clock.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import type { Surprise } from "./party.ts";

/** What was seen of one timer. */
export type SeenTimer = { record: TimerRecord; /** Of the record that ended it. */ lastBytes?: Uint8Array; isRemoved: boolean };

/** Watches until it is closed; what passes while no server can be reached is read afterwards, as far as it still lies there. */
export class StateWitness {
  readonly timers = new Map<string, SeenTimer>();
  readonly surprises: Surprise[] = [];
  recordCount = 0;
  readonly #closing = new AbortController();
  readonly #watching: Promise<void>;
  #connection: NatsConnection | undefined;
  #lastSequence = 0;

  constructor(urls: readonly string[]) {
    this.#watching = this.#watch(urls);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#connection?.close();
    await this.#watching;
  }

  async #watch(urls: readonly string[]): Promise<void> {
    while (!this.#closing.signal.aborted) {
      try {
        this.#connection ??= await connect({ servers: [...urls], maxReconnectAttempts: -1 });
        await this.#follow(this.#connection);
      } catch {
        // A server that is away; the next round reads on from the last record that was seen.
        await systemClock.sleep(retryMs, this.#closing.signal);
      }
    }
  }

  /** Until nothing comes any more, not even a heartbeat. Pushed, since a pull may come too late for a record that lives for milliseconds. */
  async #follow(connection: NatsConnection): Promise<void> {
    const inbox = createInbox();
    let heardAtMs = performance.now();
    const subscription = connection.subscribe(inbox, {
      callback: (error, message) => {
        if (error !== null) return;
        heardAtMs = performance.now();
        const sequence = deliveryInfo(message.reply ?? "")?.streamSequence;
        if (sequence !== undefined) this.#see(message, sequence);
      },
    });
    try {
      const manager = await jetstreamManager(connection, { timeout: apiMs });
      await manager.consumers.add(streamNames.state, {
        deliver_subject: inbox, filter_subject: stateRecordFilter, deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: this.#lastSequence + 1,
        ack_policy: AckPolicy.None, idle_heartbeat: nanos(heartbeatMs), inactive_threshold: nanos(5 * heartbeatMs), mem_storage: true, num_replicas: 1,
      });
      while (performance.now() - heardAtMs < 3 * heartbeatMs && !this.#closing.signal.aborted) await systemClock.sleep(heartbeatMs, this.#closing.signal);
    } finally {
      subscription.unsubscribe();
    }
  }

  #see(message: Msg, sequence: number): void {
    if (sequence <= this.#lastSequence) return;
    this.#lastSequence = sequence;
    const ref = timerKeyFromSubject(message.subject)?.ref ?? message.subject;
    const seen = this.timers.get(ref);
    if (message.data.length === 0) {
      if (seen !== undefined) seen.isRemoved = true;
      return;
    }
    const decoded = decodeRecord(message.data);
    if (!decoded.ok) return void this.surprises.push({ timer: ref, problem: `has a record that cannot be read: ${decoded.problem}` });
    this.recordCount += 1;
    const { record } = decoded;
    if (seen !== undefined) this.#compare(seen, record);
    this.timers.set(ref, { record, isRemoved: false, ...(record.phase === "terminal" ? { lastBytes: message.data } : {}) });
  }

  #compare(seen: SeenTimer, record: TimerRecord): void {
    const { execution } = record.lineage;
    const step = `went from ${standing(seen.record)} to ${standing(record)}`;
    if (seen.isRemoved) this.surprises.push({ timer: execution, problem: `${step} after it was removed` });
    if (seen.record.phase === "terminal") this.surprises.push({ timer: execution, problem: `${step} after its end` });
    if (record.fence <= seen.record.fence || record.generation < seen.record.generation) this.surprises.push({ timer: execution, problem: step });
  }
}

const retryMs = 200 as DurationMs;
const apiMs = 2_000;
const heartbeatMs = 500 as DurationMs;

function standing({ phase, generation, fence }: TimerRecord): string {
  return `${phase} at generation ${String(generation)} under fence ${String(fence)}`;
}
