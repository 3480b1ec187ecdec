/**
 * Items that become ready at an instant of the monotonic clock: held wakes and pending second looks. A binary heap;
 * its owner bounds its size by what may be in hand.
 */
import type { MonotonicMs } from "../base/units.ts";

type Entry<T> = { readonly readyAtMs: MonotonicMs; readonly item: T };

/** Items ordered by the instant at which they become ready. */
export class DelayQueue<T> {
  #heap: Entry<T>[] = [];

  size(): number {
    return this.#heap.length;
  }

  push(readyAtMs: MonotonicMs, item: T): void {
    this.#heap.push({ readyAtMs, item });
    this.#up(this.#heap.length - 1);
  }

  /** When the first item becomes ready. */
  nextReadyAtMs(): MonotonicMs | undefined {
    return this.#heap[0]?.readyAtMs;
  }

  /** Removes and returns every item that is ready at `nowMs`, earliest first. */
  takeReady(nowMs: MonotonicMs): readonly T[] {
    const ready: T[] = [];
    for (let first = this.#heap[0]; first !== undefined && first.readyAtMs <= nowMs; first = this.#heap[0]) {
      ready.push(first.item);
      this.#removeFirst();
    }
    return ready;
  }

  drain(): readonly T[] {
    const all = this.#heap.map(({ item }) => item);
    this.#heap = [];
    return all;
  }

  /** Removes what the predicate does not want to keep. */
  keep(isKept: (item: T) => boolean): void {
    const kept = this.#heap.filter(({ item }) => isKept(item));
    this.#heap = [];
    for (const { readyAtMs, item } of kept) this.push(readyAtMs, item);
  }

  #removeFirst(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#down(0);
  }

  #up(from: number): void {
    for (let at = from; at > 0;) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(at, parent)) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  #down(from: number): void {
    for (let at = from; ;) {
      let first = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < this.#heap.length && this.#isBefore(child, first)) first = child;
      }
      if (first === at) return;
      this.#swap(at, first);
      at = first;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [left, right] = [this.#heap[a], this.#heap[b]];
    return left !== undefined && right !== undefined && left.readyAtMs < right.readyAtMs;
  }

  #swap(a: number, b: number): void {
    const [left, right] = [this.#heap[a], this.#heap[b]];
    if (left === undefined || right === undefined) return;
    this.#heap[a] = right;
    this.#heap[b] = left;
  }
}
