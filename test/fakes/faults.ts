// Faults for fakes: what goes wrong at which call, chosen by the test beforehand.

import { Failure } from "../../src/base/failure.ts";
import type { WriteOutcome } from "../../src/worker/ports.ts";

export type WriteOperation =
  | "snapshots.create"
  | "snapshots.bury"
  | "state.write"
  | "state.remove"
  | "schedules.arm"
  | "schedules.disarm"
  | "resumes.publish"
  | "archive.create"
  | "archive.remove"
  | "notes.write";

export type ReadOperation = "snapshots.read" | "state.read" | "schedules.look" | "archive.read" | "notes.read";

/**
 * - `refuse`: not stored, and the caller is told so.
 * - `lose_request`: not stored, and no reply comes: unknown.
 * - `lose_reply`: stored, and no reply comes: unknown.
 */
export type WriteFault = "refuse" | "lose_request" | "lose_reply";

/** Thrown through the code under test in place of the process dying. */
export class Crash extends Error {
  override readonly name = "Crash";
}

/** Counts every write, over all stores and item by item from 1, and says what happens to it. */
export class Faults {
  /** Every write that was attempted, in order. */
  readonly attempts: WriteOperation[] = [];
  readonly #counts = new Map<WriteOperation, number>();
  readonly #writes = new Map<string, WriteFault>();
  readonly #failing = new Map<WriteOperation | ReadOperation, Failure>();
  #crash: { readonly at: number; readonly when: "before" | "after" } | undefined;

  /** The `nth` item written through `operation`, counted from 1, meets `fault`. */
  nthWrite(operation: WriteOperation, nth: number, fault: WriteFault): void {
    this.#writes.set(`${operation} ${String((this.#counts.get(operation) ?? 0) + nth)}`, fault);
  }

  /** Every call of `operation` is refused, or its read fails, until `heal`. */
  failAll(operation: WriteOperation | ReadOperation, failure = unreachableBroker()): void {
    this.#failing.set(operation, failure);
  }

  heal(): void {
    this.#writes.clear();
    this.#failing.clear();
    this.#crash = undefined;
  }

  /** Throws Crash before or after the `nth` write from now on, whatever it is. */
  crashAtWrite(nth: number, when: "before" | "after"): void {
    this.#crash = { at: this.attempts.length + nth, when };
  }

  readFailure(operation: ReadOperation): Failure | undefined {
    return this.#failing.get(operation);
  }

  /** Runs one write under the faults that were chosen for it. */
  write(operation: WriteOperation, store: () => WriteOutcome): WriteOutcome {
    this.attempts.push(operation);
    this.#counts.set(operation, (this.#counts.get(operation) ?? 0) + 1);
    const isCrash = this.#crash?.at === this.attempts.length;
    if (isCrash && this.#crash?.when === "before") throw new Crash(`before ${operation}`);
    const outcome = this.#writeOrFail(operation, store);
    if (isCrash) throw new Crash(`after ${operation}`);
    return outcome;
  }

  #writeOrFail(operation: WriteOperation, store: () => WriteOutcome): WriteOutcome {
    const failing = this.#failing.get(operation);
    if (failing !== undefined) return { kind: "refused", failure: failing };
    switch (this.#writes.get(`${operation} ${String(this.#counts.get(operation))}`)) {
      case "refuse":
        return { kind: "refused", failure: new Failure("capacity", "STREAM_FULL", `${operation} by a fake`) };
      case "lose_request":
        return { kind: "unknown", failure: lostReply(operation) };
      case "lose_reply":
        store();
        return { kind: "unknown", failure: lostReply(operation) };
      case undefined:
        return store();
    }
  }
}

function unreachableBroker(): Failure {
  return new Failure("transient", "BROKER_UNREACHABLE", "reach the fake broker");
}

function lostReply(operation: WriteOperation): Failure {
  return new Failure("transient", "BROKER_TIMEOUT", `${operation} by a fake`);
}
