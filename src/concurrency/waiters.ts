/**
 * Callers who wait for something that is handed out one by one, first come first served.
 *
 * 1. A waiter leaves the list when it is served or when its signal aborts, whichever comes first; never both.
 * 2. No listener stays on a signal after its waiter has left.
 */
export class WaiterList<T> {
  readonly #waiters = new Set<(value: T | undefined) => void>();

  get size(): number {
    return this.#waiters.size;
  }

  /** Resolves with what `serve` hands out, or with undefined when `signal` aborts or the list is dismissed. */
  wait(signal?: AbortSignal): Promise<T | undefined> {
    if (signal?.aborted === true) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const leave = (value: T | undefined): void => {
        this.#waiters.delete(leave);
        signal?.removeEventListener("abort", onAbort);
        resolve(value);
      };
      const onAbort = (): void => leave(undefined);
      this.#waiters.add(leave);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Hands `value` to the first waiter; false when nobody waits. */
  serve(value: T): boolean {
    for (const leave of this.#waiters) {
      leave(value);
      return true;
    }
    return false;
  }

  /** Sends every waiter away empty-handed. */
  dismiss(): void {
    for (const leave of [...this.#waiters]) leave(undefined);
  }
}
