/** Limits how many pieces of work run at once; waiters are served in the order in which they came. */
import { assert } from "../base/assert.ts";
import { WaiterList } from "./waiters.ts";

/** Gives the permit back. Calling it again does nothing. */
export type Release = () => void;

/** A number of permits. Whoever got one must release it. */
export class Semaphore {
  readonly #permitCountMax: number;
  readonly #waiters = new WaiterList<Release>();
  #heldCount = 0;

  constructor(permitCountMax: number) {
    assert(Number.isInteger(permitCountMax) && permitCountMax >= 1, "a semaphore with a permit");
    this.#permitCountMax = permitCountMax;
  }

  get heldCount(): number {
    return this.#heldCount;
  }

  get waitingCount(): number {
    return this.#waiters.size;
  }

  /** Waits for a permit; undefined when `signal` aborts first. */
  async acquire(signal?: AbortSignal): Promise<Release | undefined> {
    if (signal?.aborted === true) return undefined;
    if (this.#heldCount < this.#permitCountMax) return this.#grant();
    return await this.#waiters.wait(signal);
  }

  /** A permit if one is free now. */
  tryAcquire(): Release | undefined {
    return this.#heldCount < this.#permitCountMax ? this.#grant() : undefined;
  }

  #grant(): Release {
    this.#heldCount += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#heldCount -= 1;
      this.#passOn();
    };
  }

  #passOn(): void {
    if (this.#waiters.size === 0) return;
    this.#waiters.serve(this.#grant());
  }
}
