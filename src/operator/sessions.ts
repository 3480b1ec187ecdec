/**
 * Broker sessions by resource: opened on the first look, kept across passes, replaced when servers or credentials change,
 * closed when the resource is gone. Options with secrets live here, in memory, and nowhere else.
 *
 * 1. At most one session per resource is in use; a replaced one is closed in the background.
 * 2. A change of a session's connection is told to `onChange`, so that nobody waits for the next regular look.
 */
import type { DurationMs, MonotonicMs } from "../base/units.ts";
import type { ResourceKey } from "./plan/observed.ts";
import { SequenceMemory } from "./sequence-memory.ts";
import type { BrokerConnectionOptions, BrokerPort, BrokerSession } from "./ports.ts";

type Opened = { readonly fingerprint: string; readonly session: BrokerSession; readonly stopListening: () => void };

const looks = ["connection", "topology"] as const;
/** What can fail for a while: what a session is made of, and what it shows. */
type Look = (typeof looks)[number];

/** Sessions of all resources of one operator. */
export class BrokerSessions {
  readonly #broker: BrokerPort;
  readonly #onChange: (key: ResourceKey) => void;
  readonly #opened = new Map<string, Opened>();
  /** By look and resource. */
  readonly #failingSinceMs = new Map<string, MonotonicMs>();
  readonly #sequences = new Map<string, SequenceMemory>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: { readonly broker: BrokerPort; readonly onChange: (key: ResourceKey) => void }) {
    this.#broker = options.broker;
    this.#onChange = options.onChange;
  }

  /** Sessions in use. */
  get size(): number {
    return this.#opened.size;
  }

  /** The session of `key`; a new one when there was none or the options differ. */
  open(key: ResourceKey, options: BrokerConnectionOptions): BrokerSession {
    const fingerprint = JSON.stringify(options);
    const present = this.#opened.get(keyText(key));
    if (present?.fingerprint === fingerprint) return present.session;
    this.#end(key);
    const session = this.#broker.open(options);
    const stopListening = session.onChange(() => this.#onChange(key));
    this.#opened.set(keyText(key), { fingerprint, session, stopListening });
    return session;
  }

  /** The session of `key`, if one was opened. */
  current(key: ResourceKey): BrokerSession | undefined {
    return this.#opened.get(keyText(key))?.session;
  }

  /** How long a look has been failing, one time after the other; `failedAtMs` is absent when it did not fail. */
  failedForMs(key: ResourceKey, look: Look, failedAtMs: MonotonicMs | undefined): DurationMs {
    const text = `${look} ${keyText(key)}`;
    if (failedAtMs === undefined) {
      this.#failingSinceMs.delete(text);
      return 0 as DurationMs;
    }
    const sinceMs = this.#failingSinceMs.get(text) ?? failedAtMs;
    this.#failingSinceMs.set(text, sinceMs);
    return (failedAtMs - sinceMs) as DurationMs;
  }

  /** What was seen of the streams of `key`. It outlives a session: other credentials lead to the same streams. */
  sequences(key: ResourceKey): SequenceMemory {
    const memory = this.#sequences.get(keyText(key)) ?? new SequenceMemory();
    this.#sequences.set(keyText(key), memory);
    return memory;
  }

  /** Ends the session of `key` and forgets the resource. Idempotent. */
  close(key: ResourceKey): void {
    this.#sequences.delete(keyText(key));
    this.#end(key);
  }

  #end(key: ResourceKey): void {
    for (const look of looks) this.#failingSinceMs.delete(`${look} ${keyText(key)}`);
    const present = this.#opened.get(keyText(key));
    if (present === undefined) return;
    this.#opened.delete(keyText(key));
    present.stopListening();
    const closing = present.session.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /** Ends every session and waits for their ends. */
  async closeAll(): Promise<void> {
    for (const text of [...this.#opened.keys()]) this.close(keyFromText(text));
    await Promise.all(this.#closing);
  }
}

/** A key as one string, for queues and maps. */
export function keyText({ namespace, name }: ResourceKey): string {
  return `${namespace}/${name}`;
}

/** The key behind a text of `keyText`. */
export function keyFromText(text: string): ResourceKey {
  const slash = text.indexOf("/");
  return { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}
