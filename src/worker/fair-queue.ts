/**
 * Messages in hand that are ready to be worked on, taken turn by turn from each flow, so that a flood of one flow
 * cannot keep another's waiting here. It cannot help what still lies in the stream behind the flood.
 *
 * F1 Two items of one timer are never out at the same time: the second one waits until the first is done.
 * F2 Items of one flow leave in the order in which they came, but for F1.
 */
import type { TimerKey } from "../timer/identity.ts";

/** What the queue needs to know of an item. */
export type Queued = { readonly key: TimerKey; readonly bytes: number };

/** Ready items, taken turn by turn from each flow. */
export class FairQueue<T extends Queued> {
  readonly #flows = new Map<string, T[]>();
  readonly #out = new Set<string>();
  /** Items that wait, by timer. */
  readonly #waiting = new Map<string, number>();
  #size = 0;

  size(): number {
    return this.#size;
  }

  push(item: T): void {
    const flow = this.#flows.get(item.key.flow);
    if (flow === undefined) this.#flows.set(item.key.flow, [item]);
    else flow.push(item);
    this.#size += 1;
    this.#waiting.set(nameOf(item.key), (this.#waiting.get(nameOf(item.key)) ?? 0) + 1);
  }

  /** Takes up to `countMax` items of different timers, at least one however large, within `bytesMax`. */
  take(options: { readonly countMax: number; readonly bytesMax: number }): readonly T[] {
    const batch: T[] = [];
    let bytes = 0;
    let tookOne = true;
    while (tookOne && batch.length < options.countMax) {
      tookOne = false;
      for (const [flow, items] of [...this.#flows]) {
        if (batch.length >= options.countMax) break;
        const at = items.findIndex((item) => !this.#out.has(nameOf(item.key)));
        const item = items[at];
        if (item === undefined) continue;
        if (batch.length > 0 && bytes + item.bytes > options.bytesMax) continue;
        this.#remove({ flow, items, at });
        this.#out.add(nameOf(item.key));
        batch.push(item);
        bytes += item.bytes;
        tookOne = true;
      }
    }
    return batch;
  }

  /** The timer's next item may be taken. */
  done(key: TimerKey): void {
    this.#out.delete(nameOf(key));
  }

  /** Takes what waits for one timer, in the order in which it came. For a timer without any it costs nothing. */
  takeWaiting(key: TimerKey): readonly T[] {
    if (!this.#waiting.has(nameOf(key))) return [];
    const isMeant = (item: T): boolean => nameOf(item.key) === nameOf(key);
    const items = this.#flows.get(key.flow) ?? [];
    const taken = items.filter(isMeant);
    const rest = items.filter((item) => !isMeant(item));
    if (rest.length === 0) this.#flows.delete(key.flow);
    else this.#flows.set(key.flow, rest);
    this.#waiting.delete(nameOf(key));
    this.#size -= taken.length;
    return taken;
  }

  /** Takes everything that is not out, in no particular order. */
  drain(): readonly T[] {
    const all = [...this.#flows.values()].flat();
    this.#flows.clear();
    this.#waiting.clear();
    this.#size = 0;
    return all;
  }

  /** Removes what the predicate does not want to keep. */
  keep(isKept: (item: T) => boolean): void {
    const kept = this.drain().filter(isKept);
    for (const item of kept) this.push(item);
  }

  #remove({ flow, items, at }: { readonly flow: string; readonly items: T[]; readonly at: number }): void {
    const [item] = items.splice(at, 1);
    this.#size -= 1;
    if (item !== undefined) this.#leave(nameOf(item.key));
    // A flow that had its turn goes behind the others.
    this.#flows.delete(flow);
    if (items.length > 0) this.#flows.set(flow, items);
  }

  #leave(name: string): void {
    const count = (this.#waiting.get(name) ?? 0) - 1;
    if (count > 0) this.#waiting.set(name, count);
    else this.#waiting.delete(name);
  }
}

const nameOf = (key: TimerKey): string => `${key.flow}.${key.ref}`;
