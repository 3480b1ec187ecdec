/**
 * What a loop remembers of messages that it handed back, for when they come again. It is a help and no promise: another
 * worker may get the message, and beyond `countMax` the oldest memory goes.
 *
 * A message is known by its timestamp and sequence: a stream that was made anew gives sequences out again.
 */
import type { StoredMessage } from "../protocol/message.ts";

/** A bounded memory of messages. */
export class MessageMemory<T> {
  readonly #countMax: number;
  readonly #known = new Map<string, T>();

  constructor(options: { readonly countMax: number }) {
    this.#countMax = options.countMax;
  }

  recall(message: StoredMessage): T | undefined {
    return this.#known.get(nameOf(message));
  }

  remember(message: StoredMessage, value: T): void {
    const name = nameOf(message);
    this.#known.delete(name);
    this.#known.set(name, value);
    if (this.#known.size <= this.#countMax) return;
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      return;
    }
  }

  forget(message: StoredMessage): void {
    this.#known.delete(nameOf(message));
  }
}

const nameOf = ({ timestampNs, sequence }: StoredMessage): string => `${String(timestampNs)}:${String(sequence)}`;
