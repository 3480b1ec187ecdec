/**
 * A first-in first-out queue of limited size between asynchronous producers and consumers: producers wait for room.
 *
 * 1. Never more than `sizeMax` items are held (I13), and none is dropped.
 * 2. After `close`, nothing more gets in; what is inside can still be taken.
 */
import { assert } from "../base/assert.ts";
import { WaiterList } from "./waiters.ts";

export class BoundedQueue<T extends object | string | number> {
  readonly #sizeMax: number;
  readonly #items: T[] = [];
  readonly #takers = new WaiterList<T>();
  readonly #putters = new WaiterList<true>();
  #isClosed = false;

  constructor(options: { readonly sizeMax: number }) {
    assert(Number.isInteger(options.sizeMax) && options.sizeMax >= 1, "a queue with room");
    this.#sizeMax = options.sizeMax;
  }

  get size(): number {
    return this.#items.length;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Puts `item` if there is room now; false when full or closed. */
  tryPut(item: T): boolean {
    if (this.#isClosed || this.#items.length >= this.#sizeMax) return false;
    if (!this.#takers.serve(item)) this.#items.push(item);
    return true;
  }

  /** Waits for room and puts `item`; false when closed or when `signal` aborts first. */
  async put(item: T, signal?: AbortSignal): Promise<boolean> {
    while (signal?.aborted !== true && !this.#isClosed) {
      if (this.tryPut(item)) return true;
      await this.#putters.wait(signal);
    }
    // Room may have been offered to this putter in the moment in which it gave up.
    if (this.#items.length < this.#sizeMax) this.#putters.serve(true);
    return false;
  }

  /** The oldest item, waiting for one; undefined when closed and empty, or when `signal` aborts first. */
  async take(signal?: AbortSignal): Promise<T | undefined> {
    if (signal?.aborted === true) return undefined;
    const item = this.#items.shift();
    if (item !== undefined) {
      this.#putters.serve(true);
      return item;
    }
    if (this.#isClosed) return undefined;
    return await this.#takers.wait(signal);
  }

  /** Waits for one item and returns what is there, at most `max`; none when closed and empty, or on abort. */
  async takeMany(max: number, signal?: AbortSignal): Promise<readonly T[]> {
    assert(max >= 1, "an item to take");
    const first = await this.take(signal);
    if (first === undefined) return [];
    const rest = this.#items.splice(0, max - 1);
    for (let index = 0; index < rest.length; index += 1) this.#putters.serve(true);
    return [first, ...rest];
  }

  /** Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#putters.dismiss();
    this.#takers.dismiss();
  }
}
