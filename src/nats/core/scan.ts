/**
 * A walk over a stream: an ephemeral pull consumer without acknowledgements, in memory, deleted afterwards.
 *
 * 1. It ends at the sequence that was last when it began: under load, draining to the end would never finish.
 * 2. Each message comes once and in order. After a lost connection or a lost consumer it goes on behind the last one.
 * 3. It asks for the next part only when the caller wants it, so nothing piles up here.
 * 4. It throws when several attempts in a row bring nothing, and when the stream is gone: a walk that ended early must
 *    not look complete.
 */
import { assert } from "../../base/assert.ts";
import { scanAttemptsMax, scanRetryDelayMs } from "../../base/limits.ts";
import type { StoredMessage } from "../../protocol/message.ts";
import type { Told } from "./jetstream.ts";
import type { Link } from "./link.ts";
import { openCursor } from "./scan-cursor.ts";
import type { Cursor } from "./scan-cursor.ts";
import { streamState } from "./stream-state.ts";

/** What to walk over; the walk stops when `signal` aborts. */
export type ScanOptions = { readonly stream: string; readonly filter: string; readonly batchSize: number; readonly headersOnly?: boolean; readonly signal: AbortSignal };

/** Walks over the messages under a filter; see the promises above. */
export async function* scan(link: Link, options: ScanOptions): AsyncIterable<readonly StoredMessage[]> {
  assert(options.batchSize >= 1, "a part of at least one message");
  const scanner = new Scanner(link, options);
  let failureCount = 0;
  try {
    while (!options.signal.aborted) {
      const part = await scanner.readPart();
      failureCount = part.kind === "failed" ? failureCount + 1 : 0;
      if (part.kind === "failed" && (failureCount >= scanAttemptsMax || part.failure.code === "STREAM_MISSING")) throw part.failure;
      if (part.kind === "failed") await link.clock.sleep(scanRetryDelayMs, options.signal);
      else if (part.value.messages.length > 0) yield part.value.messages;
      if (part.kind === "told" && part.value.isLast) return;
    }
  } finally {
    scanner.close();
  }
}

type Part = { readonly messages: readonly StoredMessage[]; readonly isLast: boolean };

class Scanner {
  readonly #link: Link;
  readonly #options: ScanOptions;
  #cursor: Cursor | undefined;
  #nextSequence = 1;
  #lastSequence: number | undefined;

  constructor(link: Link, options: ScanOptions) {
    this.#link = link;
    this.#options = options;
  }

  async readPart(): Promise<Told<Part>> {
    const lastSequence = await this.#findLast();
    if (lastSequence.kind === "failed") return lastSequence;
    if (lastSequence.value < this.#nextSequence) return ended;
    const cursor = await this.#findCursor();
    if (cursor.kind === "failed") return cursor;
    if (cursor.value.isDrained()) return ended;
    const told = await cursor.value.next(lastSequence.value);
    if (told.kind === "failed") {
      this.close();
      return told;
    }
    const messages = told.value.filter(({ sequence }) => sequence <= lastSequence.value);
    this.#nextSequence = (told.value.at(-1)?.sequence ?? this.#nextSequence - 1) + 1;
    return { kind: "told", value: { messages, isLast: this.#nextSequence > lastSequence.value || cursor.value.isDrained() } };
  }

  close(): void {
    this.#cursor?.close();
    this.#cursor = undefined;
  }

  async #findLast(): Promise<Told<number>> {
    if (this.#lastSequence !== undefined) return { kind: "told", value: this.#lastSequence };
    const told = await streamState(this.#link, this.#options.stream);
    if (told.kind === "failed") return told;
    this.#lastSequence = told.value.lastSequence;
    return { kind: "told", value: this.#lastSequence };
  }

  async #findCursor(): Promise<Told<Cursor>> {
    if (this.#cursor !== undefined) return { kind: "told", value: this.#cursor };
    const opened = await openCursor(this.#link, { ...this.#options, fromSequence: this.#nextSequence });
    if (opened.kind === "told") this.#cursor = opened.value;
    return opened;
  }
}

const ended: Told<Part> = { kind: "told", value: { messages: [], isLast: true } };
