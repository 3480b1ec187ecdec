/**
 * Tasks that live and die together: the first failure stops the others.
 *
 * 1. Every task gets the group's signal and must end soon after it aborts; `join` waits for all of them.
 * 2. Errors which only say that the group was aborted are no failures.
 * 3. After the first failure, later ones are dropped: they are usually its consequences.
 */
export class TaskGroup {
  readonly #controller = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #leaveParent: () => void;
  #failure: Error | undefined;

  constructor(parent?: AbortSignal) {
    const onAbort = (): void => this.abort();
    parent?.addEventListener("abort", onAbort, { once: true });
    this.#leaveParent = (): void => parent?.removeEventListener("abort", onAbort);
    if (parent?.aborted === true) this.abort();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Tasks that have not ended. */
  get runningCount(): number {
    return this.#running.size;
  }

  /** Starts `task`; `name` appears in the failure of the group. A task may start others. */
  spawn(name: string, task: (signal: AbortSignal) => Promise<void>): void {
    const running = this.#run(name, task).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Asks every task to end. Idempotent. */
  abort(): void {
    this.#controller.abort();
  }

  /** Resolves when no task runs any more; rejects with the first failure, whose cause is what the task threw. */
  async join(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
    this.#leaveParent();
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #run(name: string, task: (signal: AbortSignal) => Promise<void>): Promise<void> {
    try {
      await task(this.signal);
    } catch (error) {
      if (this.#isAbort(error)) return;
      this.#failure ??= new Error(`run task ${name}`, { cause: error });
      this.abort();
    }
  }

  #isAbort(error: unknown): boolean {
    if (!this.signal.aborted) return false;
    return error === this.signal.reason || (error instanceof Error && error.name === "AbortError");
  }
}
