/**
 * One stream of the model: what may be written to it, what it keeps, and the schedules that it fires.
 *
 * Every refusal is the server's own error code, so that the classification of the real adapters sees what it would see.
 */
import { publishHeaders } from "../../src/nats/core/publisher.ts";
import type { OutgoingMessage } from "../../src/nats/core/jetstream.ts";
import { ModelConsumer } from "./consumer.ts";
import { headersOf, matches, MessageStore, type HeaderPair, type Kept } from "./store.ts";

/** What one publish comes to. */
export type Written = { readonly kind: "stored"; readonly sequence: number; readonly duplicate: boolean } | Refused;
/** The server's error code, and the HTTP-like status that goes with it. */
export type Refused = { readonly kind: "error"; readonly code: number; readonly status: number };

/** Why a message has gone. */
export type Departure = "acked" | "terminated" | "replaced" | "purged" | "expired" | "fired" | "evicted";

/** A change of a stream, for whoever watches. */
export type Change =
  | { readonly kind: "stored"; readonly stream: string; readonly message: Kept }
  | { readonly kind: "removed"; readonly stream: string; readonly message: Kept; readonly why: Departure }
  | { readonly kind: "tail_lost"; readonly stream: string; readonly count: number };

export type StreamConfig = Readonly<Record<string, unknown>>;

/** What a stream needs of its broker. */
export type StreamSurroundings = {
  readonly nowMs: () => number;
  readonly after: (delayMs: number, act: () => void) => () => void;
  /** The broker's own clock, which may jump. */
  readonly clockMs: () => number;
  readonly hasRoom: (bytes: number) => boolean;
  readonly refusesWake: (subject: string) => boolean;
  readonly nextRedelivery: (count: number) => number;
  readonly isUp: () => boolean;
  readonly onChange: (change: Change) => void;
};

export class ModelStream {
  readonly name: string;
  readonly createdAt: string;
  readonly store = new MessageStore();
  readonly consumers = new Map<string, ModelConsumer>();
  config: StreamConfig;
  readonly #around: StreamSurroundings;
  readonly #ids = new Map<string, { readonly sequence: number; readonly atMs: number }>();
  readonly #stuck = new Set<number>();
  #lastStampNs = 0n;
  #lastPassAtMs = 0;
  #cancelPass: () => void = () => undefined;

  constructor(config: StreamConfig, around: StreamSurroundings) {
    this.name = String(config["name"]);
    this.config = config;
    this.#around = around;
    this.createdAt = new Date(around.clockMs()).toISOString();
  }

  covers(subject: string): boolean {
    return (this.config["subjects"] as readonly string[]).some((filter) => matches(filter, subject));
  }

  /** Stores one message, or says with which code the server would refuse it. */
  publish(message: OutgoingMessage): Written {
    const known = this.#knownId(message.messageId);
    const refused = this.#refusal(message);
    // One replica looks at the expectation first, several at the message id.
    if (refused !== undefined && (known === undefined || this.config["num_replicas"] === 1)) return refused;
    if (known !== undefined) return { kind: "stored", sequence: known, duplicate: true };
    const full = this.#fullness([message]);
    return full ?? { kind: "stored", sequence: this.#keep(message), duplicate: false };
  }

  /** Stores all messages or none. */
  publishAtomically(messages: readonly OutgoingMessage[]): { readonly kind: "stored"; readonly lastSequence: number } | Refused {
    if (this.config["allow_atomic"] !== true) return refusal(10174);
    const written = new Set<string>();
    for (const message of messages) {
      if (this.#knownId(message.messageId) !== undefined) return refusal(10201);
      if (message.expectedLastSubjectSequence !== undefined && written.has(message.subject)) return refusal(10164);
      const refused = this.#refusal(message);
      if (refused !== undefined) return refused;
      written.add(message.subject);
    }
    const full = this.#fullness(messages);
    if (full !== undefined) return full;
    for (const message of messages) this.#keep(message);
    return { kind: "stored", lastSequence: this.store.lastSequence };
  }

  purge(filter: string): number {
    const all = this.store.under(filter);
    for (const kept of all) this.drop(kept, "purged");
    return all.length;
  }

  drop(kept: Kept, why: Departure): void {
    this.store.remove(kept, this.#around.nowMs());
    this.#stuck.delete(kept.sequence);
    for (const consumer of this.consumers.values()) consumer.forget(kept.sequence);
    this.#around.onChange({ kind: "removed", stream: this.name, message: kept, why });
  }

  addConsumer(config: StreamConfig): ModelConsumer {
    const consumer = new ModelConsumer(this, config, this.#around);
    this.consumers.set(consumer.name, consumer);
    return consumer;
  }

  /** The process is gone: what it only had in memory is too, and `tail` steps more that were not on disk. */
  crash(tail: number): void {
    this.#cancelPass();
    const lost = this.#isAsync() ? this.store.loseTail(tail, this.#around.nowMs()) : 0;
    if (lost > 0) this.#around.onChange({ kind: "tail_lost", stream: this.name, count: lost });
    for (const consumer of this.consumers.values()) consumer.disconnectAll();
  }

  /** A new process, or a new leader: message ids and schedules are read from what is stored. */
  lead(options: { readonly isNewProcess: boolean }): void {
    this.#stuck.clear();
    if (options.isNewProcess) {
      this.#ids.clear();
      for (const kept of this.store.under(">")) if (kept.messageId !== undefined) this.#ids.set(kept.messageId, { sequence: kept.sequence, atMs: this.#around.clockMs() });
    }
    for (const consumer of this.consumers.values()) consumer.recover();
    this.planPass();
  }

  /** What has expired by the new time goes, and schedules are looked at anew. */
  onClockJump(): void {
    const clockMs = this.#around.clockMs();
    for (const kept of this.store.under(">")) if ((kept.expiresAtMs ?? Infinity) <= clockMs) this.drop(kept, "expired");
    this.planPass();
  }

  /** Looks when the next schedule is due; passes are at least 250 ms apart. */
  planPass(): void {
    this.#cancelPass();
    if (this.config["allow_msg_schedules"] !== true || !this.#around.isUp()) return;
    const waiting = this.#schedules();
    if (waiting.length === 0) return;
    const firstAtMs = Math.min(...waiting.map(({ schedule }) => schedule?.fireAtMs ?? Infinity));
    const inMs = Math.max(firstAtMs - this.#around.clockMs(), this.#lastPassAtMs + passIntervalMs - this.#around.nowMs(), 0);
    this.#cancelPass = this.#around.after(inMs, () => this.#pass());
  }

  #schedules(): readonly Kept[] {
    return this.store.scheduled().filter(({ sequence }) => !this.#stuck.has(sequence));
  }

  #pass(): void {
    const clockMs = this.#around.clockMs();
    this.#lastPassAtMs = this.#around.nowMs();
    for (const kept of this.#schedules()) {
      if (kept.schedule === undefined || kept.schedule.fireAtMs > clockMs) continue;
      if (this.#around.refusesWake(kept.schedule.target)) this.#stuck.add(kept.sequence);
      else this.#fire(kept, kept.schedule.target);
    }
    this.planPass();
  }

  /** Wake first, then purge: a crash in between leaves both. */
  #fire(kept: Kept, target: string): void {
    const own = kept.headerList.filter(([name]) => !name.startsWith("Nats-"));
    this.#append({ subject: target, body: kept.body, headerList: [...own, ["Nats-Scheduler", kept.subject], ["Nats-Schedule-Next", "purge"]] });
    this.drop(kept, "fired");
  }

  #isAsync(): boolean {
    return this.config["persist_mode"] === "async";
  }

  #knownId(messageId: string | undefined): number | undefined {
    if (messageId === undefined) return undefined;
    const known = this.#ids.get(messageId);
    const windowMs = Number(this.config["duplicate_window"] ?? 120_000_000_000) / 1_000_000;
    return known !== undefined && this.#around.clockMs() - known.atMs < windowMs ? known.sequence : undefined;
  }

  #refusal(message: OutgoingMessage): Refused | undefined {
    const wants = [[message.ttlMs !== undefined, "allow_msg_ttl", 10166], [message.schedule !== undefined, "allow_msg_schedules", 10188], [message.rollup === true, "allow_rollup_hdrs", 10111]] as const;
    const missing = wants.find(([isWanted, feature]) => isWanted && this.config[feature] !== true);
    if (missing !== undefined) return refusal(missing[2]);
    const expected = message.expectedLastSubjectSequence;
    if (expected !== undefined && (this.store.last(message.subject)?.sequence ?? 0) !== expected) return refusal(10071);
    return undefined;
  }

  /** A message that does not fit is refused. One replica lets a replacement pass that is no larger; several do not. */
  #fullness(messages: readonly OutgoingMessage[]): Refused | undefined {
    const bytes = messages.reduce((sum, message) => sum + sizeOf(message.subject, publishHeaders(message), message.body), 0);
    const replaced = messages.flatMap((message) => this.#earlierOn(message)).reduce((sum, kept) => sum + kept.bytes, 0);
    if (this.config["num_replicas"] === 1 && replaced >= bytes) return undefined;
    if (this.config["discard"] === "new" && this.#isBeyond(messages.length, bytes)) return refusal(10077);
    return this.#around.hasRoom(bytes) ? undefined : refusal(10002);
  }

  /** True when this much more than now is beyond a limit of the stream. */
  #isBeyond(count: number, bytes: number): boolean {
    const [countMax = Infinity, bytesMax = Infinity] = [this.config["max_msgs"], this.config["max_bytes"]].map((max) => (typeof max === "number" && max > 0 ? max : Infinity));
    return this.store.count + count > countMax || this.store.bytes + bytes > bytesMax;
  }

  /** Where the old is discarded, the oldest messages make room for the new ones. */
  #evict(): void {
    while (this.config["discard"] !== "new" && this.#isBeyond(0, 0)) {
      const oldest = this.store.get(this.store.firstSequence);
      if (oldest === undefined) return;
      this.drop(oldest, "evicted");
    }
  }

  #keep(message: OutgoingMessage): number {
    const { subject, body, messageId, ttlMs, schedule } = message;
    const earlier = this.#earlierOn(message);
    const expiry = ttlMs === undefined ? {} : { expiresAtMs: this.#around.clockMs() + ttlMs };
    const kept = this.#append({
      subject, body, headerList: publishHeaders(message), ...expiry,
      ...(messageId === undefined ? {} : { messageId }), ...(schedule === undefined ? {} : { schedule }),
    });
    for (const one of earlier) this.drop(one, "replaced");
    this.#evict();
    if (messageId !== undefined) this.#ids.set(messageId, { sequence: kept.sequence, atMs: this.#around.clockMs() });
    if (expiry.expiresAtMs !== undefined) this.#expire(kept);
    if (schedule !== undefined) this.planPass();
    return kept.sequence;
  }

  #earlierOn(message: OutgoingMessage): readonly Kept[] {
    const onSubject = this.store.under(message.subject);
    if (message.rollup === true || message.schedule !== undefined) return onSubject;
    const perSubject = this.config["max_msgs_per_subject"];
    return typeof perSubject === "number" && perSubject > 0 ? onSubject.slice(0, Math.max(0, onSubject.length + 1 - perSubject)) : [];
  }

  #append(parts: Pick<Kept, "subject" | "body" | "messageId" | "schedule" | "expiresAtMs"> & { readonly headerList: readonly HeaderPair[] }): Kept {
    const clockNs = BigInt(Math.floor(this.#around.clockMs() * 1_000)) * 1_000n;
    const timestampNs = clockNs === this.#lastStampNs ? clockNs + 1n : clockNs;
    this.#lastStampNs = timestampNs;
    const kept: Kept = {
      ...parts, sequence: this.store.lastSequence + 1, timestampNs,
      headers: headersOf(parts.headerList), bytes: sizeOf(parts.subject, parts.headerList, parts.body),
    };
    this.store.append(kept, this.#around.nowMs());
    this.#around.onChange({ kind: "stored", stream: this.name, message: kept });
    for (const consumer of this.consumers.values()) consumer.deliver();
    return kept;
  }

  #expire(kept: Kept): void {
    const inMs = Math.max(1, (kept.expiresAtMs ?? 0) - this.#around.clockMs());
    this.#around.after(inMs, () => {
      if (this.store.get(kept.sequence) !== kept) return;
      if (this.#around.clockMs() >= (kept.expiresAtMs ?? 0)) this.drop(kept, "expired");
      else this.#expire(kept);
    });
  }
}

export function refusal(code: number): Refused {
  return { kind: "error", code, status: code === 10077 || code === 10002 ? 503 : 400 };
}

function sizeOf(subject: string, headers: readonly HeaderPair[], body: Uint8Array): number {
  return recordOverheadBytes + subject.length + body.length + headers.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
}

const recordOverheadBytes = 30;
const passIntervalMs = 250;
