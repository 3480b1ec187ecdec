/**
 * The one path on which commands leave a client.
 *
 * S1 A command whose acknowledgement did not come is sent again with the same message id, a bounded number of times:
 *    whether or not the first copy was stored, one of them is, and a second one changes nothing.
 * S2 A full stream is not waited out here: it is the caller's to slow down.
 * S3 A copy that the broker dropped as a duplicate is never seen by a worker. When its outcome is awaited it is sent once
 *    more without an id, and a worker answers `duplicate`.
 */
import { InvariantError } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { Failure } from "../base/failure.ts";
import { commandAttemptCountMax, commandRetryDelayMs } from "../base/limits.ts";
import type { DurationMs } from "../base/units.ts";
import type { JetStream, OutgoingMessage, PublishOutcome } from "../nats/core/jetstream.ts";
import { commandSubjects, headerNames } from "../protocol/names.ts";
import { CommandGatherer } from "./command-gatherer.ts";
import type { CommandMessage } from "./command-message.ts";
import { commandOutcome, type CommandOutcome } from "./outcome.ts";
import type { ReplyInbox } from "./reply-inbox.ts";

/** A command that the broker has. */
export type SentCommand = {
  /** Stream sequence of the stored command; of the first copy when this one is a duplicate. */
  readonly sequence: number;
  /** The broker already had it, within its duplicate window. */
  readonly duplicate: boolean;
  /** An earlier copy of this call was not acknowledged, and may be stored as well. */
  readonly resent: boolean;
  /** Present when it was awaited. */
  readonly outcome?: CommandOutcome;
};

type Stored = Pick<SentCommand, "sequence" | "duplicate" | "resent">;
type NotStored = Extract<PublishOutcome, { kind: "refused" | "unknown" }>;

/** Sends commands and awaits their outcomes. */
export class CommandSender {
  readonly #gatherers: Readonly<Record<"start" | "feedback", CommandGatherer>>;
  readonly #inbox: ReplyInbox;
  readonly #clock: Clock;
  readonly #stopped: AbortSignal;

  constructor(tools: { readonly jetStream: JetStream; readonly inbox: ReplyInbox; readonly clock: Clock; readonly stopped: AbortSignal }) {
    this.#gatherers = { start: new CommandGatherer(tools.jetStream), feedback: new CommandGatherer(tools.jetStream) };
    this.#inbox = tools.inbox;
    this.#clock = tools.clock;
    this.#stopped = tools.stopped;
  }

  /**
   * Resolves once the broker has stored the command; with `outcomeTimeoutMs`, once its outcome came or that time has
   * passed after storing. Rejects with a Failure: `capacity` when the stream is full.
   */
  async send(command: CommandMessage, outcomeTimeoutMs?: DurationMs): Promise<SentCommand> {
    if (outcomeTimeoutMs === undefined) return await this.#store(command, { messageId: command.messageId });
    const expected = this.#inbox.expect();
    try {
      const replyTo = expected.subject;
      const stored = await this.#store(command, { messageId: command.messageId, replyTo });
      if (stored.duplicate) await this.#store(command, { replyTo });
      return { ...stored, outcome: commandOutcome(await expected.within(outcomeTimeoutMs)) };
    } finally {
      expected.forget();
    }
  }

  /** Resolves once nothing waits to be sent or acknowledged. */
  async idle(): Promise<void> {
    await Promise.all(Object.values(this.#gatherers).map((gatherer) => gatherer.idle()));
  }

  async #store(command: CommandMessage, how: { readonly messageId?: string; readonly replyTo?: string }): Promise<Stored> {
    let resent = false;
    for (let attempt = 1; ; attempt += 1) {
      if (this.#stopped.aborted) throw stopped(command);
      // Starts and feedback lie in streams of their own, and a batch goes to one stream.
      const outcome = await this.#gatherers[command.verb === "start" ? "start" : "feedback"].publish(outgoing(command, how));
      if (outcome.kind === "stored") return { sequence: outcome.sequence, duplicate: outcome.duplicate, resent };
      // Nothing expects a sequence on a command's subject, so nothing can conflict.
      if (outcome.kind === "conflict") throw new InvariantError("expected: a command without an expectation never conflicts");
      if (!mayPass(outcome) || attempt >= commandAttemptCountMax) throw notStored(command, outcome);
      resent ||= outcome.kind === "unknown";
      await this.#clock.sleep((commandRetryDelayMs * 2 ** (attempt - 1)) as DurationMs, this.#stopped);
    }
  }
}

function outgoing(command: CommandMessage, how: { readonly messageId?: string; readonly replyTo?: string }): OutgoingMessage {
  return {
    subject: commandSubjects[command.verb],
    headers: [
      [headerNames.context, command.contextHeader],
      ...(how.replyTo === undefined ? [] : [[headerNames.replyTo, how.replyTo] as const]),
    ],
    body: command.body,
    ...(how.messageId === undefined ? {} : { messageId: how.messageId }),
  };
}

function mayPass(outcome: NotStored): boolean {
  return outcome.kind === "unknown" || outcome.failure.kind === "transient";
}

function notStored(command: CommandMessage, outcome: NotStored): Failure {
  const { failure } = outcome;
  const known = outcome.kind === "unknown" ? "; whether it was stored is not known, and sending it again is safe" : "";
  return new Failure(failure.kind, failure.code, `send ${command.verb} of timer ${command.ref}${known}`, { cause: failure });
}

function stopped(command: CommandMessage): Failure {
  return new Failure("transient", "STOPPED", `send ${command.verb} of timer ${command.ref} through a client that is closed`);
}
