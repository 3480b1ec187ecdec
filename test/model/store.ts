/**
 * What one stream holds: messages by sequence and by subject, a journal from which the last steps can be undone, and the
 * past of each subject, for replicas that lag behind.
 */
import type { MessageHeaders, StoredMessage } from "../../src/protocol/message.ts";

export type HeaderPair = readonly [name: string, value: string];

/** A message as the model keeps it. */
export type Kept = StoredMessage & {
  readonly headerList: readonly HeaderPair[];
  readonly bytes: number;
  readonly messageId?: string;
  readonly expiresAtMs?: number;
  readonly schedule?: { readonly fireAtMs: number; readonly target: string };
};

export class MessageStore {
  readonly #bySequence = new Map<number, Kept>();
  readonly #bySubject = new Map<string, number[]>();
  readonly #scheduled = new Map<number, Kept>();
  readonly #past = new Map<string, { readonly atMs: number; readonly kept: Kept | undefined }[]>();
  #journal: (() => void)[] = [];
  #bytes = 0;
  #lastSequence = 0;

  get count(): number {
    return this.#bySequence.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get lastSequence(): number {
    return this.#lastSequence;
  }

  get firstSequence(): number {
    return this.count === 0 ? this.#lastSequence + 1 : Math.min(...this.#bySequence.keys());
  }

  get(sequence: number): Kept | undefined {
    return this.#bySequence.get(sequence);
  }

  /** The last message on a subject without wildcards. */
  last(subject: string): Kept | undefined {
    const sequence = this.#bySubject.get(subject)?.at(-1);
    return sequence === undefined ? undefined : this.#bySequence.get(sequence);
  }

  /** The last message on a subject as it was at `atMs`. */
  lastAt(subject: string, atMs: number): Kept | undefined {
    return this.#past.get(subject)?.findLast((entry) => entry.atMs <= atMs)?.kept;
  }

  /** Messages on a subject, wildcards allowed, in the order of their sequences. */
  under(filter: string): readonly Kept[] {
    const sequences = hasWildcard(filter)
      ? [...this.#bySubject].flatMap(([subject, all]) => (matches(filter, subject) ? all : [])).sort((a, b) => a - b)
      : (this.#bySubject.get(filter) ?? []);
    return sequences.map((sequence) => this.#bySequence.get(sequence)).filter((kept) => kept !== undefined);
  }

  /** Schedules, in the order of their sequences. */
  scheduled(): readonly Kept[] {
    return [...this.#scheduled.values()].sort((a, b) => a.sequence - b.sequence);
  }

  append(kept: Kept, nowMs: number): void {
    const before = this.#lastSequence;
    this.#insert(kept);
    this.#lastSequence = kept.sequence;
    this.#remember(kept.subject, nowMs);
    this.#note(() => {
      this.#take(kept);
      this.#lastSequence = before;
    });
  }

  remove(kept: Kept, nowMs: number): void {
    this.#take(kept);
    this.#remember(kept.subject, nowMs);
    this.#note(() => this.#insert(kept));
  }

  /** Everything up to now is on disk. */
  sync(): void {
    this.#journal = [];
  }

  /** Takes back the last steps that are not on disk, at most `count`; how many they were. */
  loseTail(count: number, nowMs: number): number {
    const lost = this.#journal.splice(Math.max(0, this.#journal.length - count));
    for (const undo of lost.reverse()) undo();
    for (const subject of this.#past.keys()) this.#remember(subject, nowMs);
    return lost.length;
  }

  #note(undo: () => void): void {
    this.#journal.push(undo);
    if (this.#journal.length > journalSizeMax) this.#journal.shift();
  }

  #insert(kept: Kept): void {
    this.#bySequence.set(kept.sequence, kept);
    if (kept.schedule !== undefined) this.#scheduled.set(kept.sequence, kept);
    this.#bytes += kept.bytes;
    const sequences = this.#bySubject.get(kept.subject);
    if (sequences === undefined) this.#bySubject.set(kept.subject, [kept.sequence]);
    else {
      sequences.push(kept.sequence);
      sequences.sort((a, b) => a - b);
    }
  }

  #take(kept: Kept): void {
    if (!this.#bySequence.delete(kept.sequence)) return;
    this.#scheduled.delete(kept.sequence);
    this.#bytes -= kept.bytes;
    const left = (this.#bySubject.get(kept.subject) ?? []).filter((sequence) => sequence !== kept.sequence);
    if (left.length === 0) this.#bySubject.delete(kept.subject);
    else this.#bySubject.set(kept.subject, left);
  }

  #remember(subject: string, atMs: number): void {
    const past = this.#past.get(subject) ?? [];
    past.push({ atMs, kept: this.last(subject) });
    if (past.length > pastSizeMax) past.shift();
    this.#past.set(subject, past);
  }
}

/** Header lookup over a list of pairs, as the real headers do it: values trimmed, nameless ones passed over. */
export function headersOf(list: readonly HeaderPair[]): MessageHeaders {
  const values = (name: string): readonly string[] => list.filter(([own]) => own === name && own !== "").map(([, value]) => value.trim());
  return { get: (name) => values(name)[0], all: values };
}

export function hasWildcard(filter: string): boolean {
  return filter.includes("*") || filter.includes(">");
}

/** True when a filter, wildcards allowed, covers a subject. */
export function matches(filter: string, subject: string): boolean {
  if (filter === ">" || filter === subject) return true;
  if (filter.endsWith(".>") && !filter.includes("*")) return subject.startsWith(filter.slice(0, -1));
  const tokens = subject.split(".");
  const wanted = filter.split(".");
  for (const [index, token] of wanted.entries()) {
    if (token === ">") return tokens.length > index;
    if (tokens[index] === undefined || (token !== "*" && token !== tokens[index])) return false;
  }
  return tokens.length === wanted.length;
}

const journalSizeMax = 64;
const pastSizeMax = 32;
