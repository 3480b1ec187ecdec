/**
 * Messages that wait for a second look at the leader, with a share of their own: a flood of feedback for timers that
 * nobody knows would otherwise use up the look-ahead, each for the whole interval, and hold up everybody's feedback.
 *
 * K1 At most `doubtfulCountMax` messages and `doubtfulBytesMax` bytes are held for it.
 * K2 What finds no place is handed back for the interval, and its first look is remembered: the second one follows when
 *    it comes again. A worker that does not remember begins anew, so nothing is ever concluded from one look.
 */
import { doubtfulBytesMax, doubtfulCountMax, messagesRememberedMax, newerInputRecheckMs } from "../base/limits.ts";
import type { MonotonicMs } from "../base/units.ts";
import type { StoredMessage } from "../protocol/message.ts";
import type { Basis } from "../timer/decision.ts";
import type { InHand } from "./loop-options.ts";
import { MessageMemory } from "./message-memory.ts";

/** The messages of one loop that wait for a second look. */
export class SecondLooks {
  readonly #held = new Set<InHand>();
  readonly #first = new MessageMemory<MonotonicMs>({ countMax: messagesRememberedMax });
  #bytes = 0;

  get count(): number {
    return this.#held.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Gives the item a place until `release`; false when there is none, and then its first look is remembered. */
  hold(item: InHand, nowMs: MonotonicMs): boolean {
    if (this.#held.has(item)) return true;
    if (this.#held.size >= doubtfulCountMax || this.#bytes + item.bytes > doubtfulBytesMax) {
      this.#first.remember(item.delivery.message, nowMs);
      return false;
    }
    this.#held.add(item);
    this.#bytes += item.bytes;
    return true;
  }

  /** Frees the item's place, if it has one. */
  release(item: InHand): void {
    if (this.#held.delete(item)) this.#bytes -= item.bytes;
  }

  /** How to look at a message that has come: for the second time if its first look is remembered and long enough ago. */
  basisOf(message: StoredMessage, otherwise: Basis, nowMs: MonotonicMs): Basis {
    const lookedAtMs = this.#first.recall(message);
    if (lookedAtMs === undefined) return otherwise;
    if (nowMs - lookedAtMs < newerInputRecheckMs) return otherwise;
    this.#first.forget(message);
    return "leader_again";
  }
}
