/**
 * Where outcomes arrive: one subscription per client, one subject per command under it.
 *
 * It owns the wait for an outcome, not its meaning. What it holds is bounded by `outcomesAwaitedMax`: beyond it, a
 * command that wants its outcome is refused before it is sent.
 */
import type { Clock } from "../base/clock.ts";
import { Failure } from "../base/failure.ts";
import { outcomesAwaitedMax } from "../base/limits.ts";
import type { DurationMs } from "../base/units.ts";
import type { JetStream } from "../nats/core/jetstream.ts";
import { decodeOutcome, type Outcome } from "../protocol/outcome.ts";

/** One outcome to come. `forget` ends it, whether it came or not. */
export type ExpectedOutcome = {
  readonly subject: string;
  /** The first outcome that came since `expect`, or undefined when none has come within `timeoutMs` from now. */
  within(timeoutMs: DurationMs): Promise<Outcome | undefined>;
  forget(): void;
};

type Pending = { outcome: Outcome | undefined; readonly settled: AbortController };

/** The replies of one client. */
export class ReplyInbox {
  readonly #jetStream: JetStream;
  readonly #clock: Clock;
  readonly #prefix: string;
  readonly #pending = new Map<string, Pending>();
  #commandCount = 0;
  #stopListening: (() => void) | undefined;

  /** `prefix` must be unique to this client and lie below the reply prefix that the workers accept. */
  constructor(tools: { readonly jetStream: JetStream; readonly clock: Clock; readonly prefix: string }) {
    this.#jetStream = tools.jetStream;
    this.#clock = tools.clock;
    this.#prefix = tools.prefix;
  }

  /** Opens a subject for one outcome; listening has begun when it returns. */
  expect(): ExpectedOutcome {
    if (this.#pending.size >= outcomesAwaitedMax) {
      throw new Failure("capacity", "BROKER_OVERLOADED", `await more than ${String(outcomesAwaitedMax)} outcomes at once`);
    }
    this.#stopListening ??= this.#jetStream.listen(`${this.#prefix}.*`, (message) => { this.#receive(message); });
    this.#commandCount += 1;
    const subject = `${this.#prefix}.${String(this.#commandCount)}`;
    const pending: Pending = { outcome: undefined, settled: new AbortController() };
    this.#pending.set(subject, pending);
    return {
      subject,
      within: async (timeoutMs) => {
        await this.#clock.sleep(timeoutMs, pending.settled.signal);
        return pending.outcome;
      },
      forget: () => { this.#pending.delete(subject); },
    };
  }

  /** Ends every wait, without an outcome where none has come. */
  close(): void {
    this.#stopListening?.();
    this.#stopListening = undefined;
    for (const pending of this.#pending.values()) pending.settled.abort();
  }

  #receive(message: { readonly subject: string; readonly body: Uint8Array }): void {
    const pending = this.#pending.get(message.subject);
    if (pending === undefined || pending.outcome !== undefined) return;
    pending.outcome = decodeOutcome(message.body);
    if (pending.outcome !== undefined) pending.settled.abort();
  }
}
