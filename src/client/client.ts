/**
 * The client of durable timers: one connection, on which a flow's owner starts timers, receives their resumes and says
 * how each one goes on.
 *
 * Commands are stored by the broker before a call returns; whether they took effect is their outcome, which a worker
 * tells. Everything here may be repeated safely: identity, generation and fence make a second copy harmless.
 */
import { noBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import { outcomeTimeoutMs } from "../base/limits.ts";
import type { Random } from "../base/random.ts";
import type { Sha256 } from "../base/sha256.ts";
import type { DurationMs } from "../base/units.ts";
import type { BrokerConnection } from "../nats/core/jetstream.ts";
import type { FailureCause } from "../timer/record.ts";
import { CommandSender, type SentCommand } from "./command-sender.ts";
import { prepareFeedback, type FeedbackRequest, type FeedbackTarget } from "./feedback.ts";
import type { CommandOutcome } from "./outcome.ts";
import { ReplyInbox } from "./reply-inbox.ts";
import { ResumeIterations, type ResumeDelivery, type ResumesOptions } from "./resumes.ts";
import { prepareStart, type StartRequest } from "./start.ts";

/** Whether and how long to wait for a command's outcome. */
export type SendOptions = {
  /** For starts false by default, for feedback true. */
  readonly awaitOutcome?: boolean;
  /** From the moment at which the broker has the command; 10 seconds by default. Then the outcome is `unknown`. */
  readonly outcomeTimeoutMs?: number;
};

/** Feedback may carry a body: it is part of what makes a second copy recognisable, and is not stored. */
export type FeedbackOptions = SendOptions & { readonly body?: Uint8Array };

/** The broker has the command. */
export type CommandReceipt = {
  /** Name of the timer, the same for equal identities. */
  readonly ref: string;
  /** Stream sequence of the command, or of its first copy. */
  readonly sequence: number;
  /** The broker already had the same command, sent within the last two minutes. */
  readonly duplicate: boolean;
  /**
   * This call sent it more than once, since an acknowledgement did not come. Together with `duplicate` it says that
   * `stale` may be the answer to a second copy of a command that had its effect.
   */
  readonly resent: boolean;
  /** Present exactly when it was awaited. */
  readonly outcome?: CommandOutcome;
};

/** The broker has the start. */
export type StartReceipt = CommandReceipt & {
  /** Hash over the start's meaning; two starts of one timer are the same exactly when their hashes are. */
  readonly snapshotHash: string;
  /** The timer as it waits for the first time: what `fail` takes to end it early. */
  readonly waiting: FeedbackTarget;
};

/** Starts timers, consumes their resumes, gives feedback. Safe to share between concurrent callers. */
export interface TimerClient {
  /**
   * Starts a timer. Resolves once the broker has stored the start: from then on it is waiting, or refused and counted,
   * never gone. Rejects with a Failure: `invalid` names the field, `capacity` means that the stream is full and
   * nothing was stored, `transient` that sending the same start again is safe and advised.
   */
  start(request: StartRequest, options?: SendOptions): Promise<StartReceipt>;
  /** Lets an elapsed timer wait once more, under the next generation. Beyond `maxRetries` it ends the timer as failed. */
  retry(target: FeedbackTarget, options?: FeedbackOptions): Promise<CommandReceipt>;
  /** Ends an elapsed timer as completed. */
  complete(target: FeedbackTarget, options?: FeedbackOptions): Promise<CommandReceipt>;
  /**
   * Ends a timer as failed, also one that still waits. Await its start's outcome first: starts and feedback travel in
   * separate streams, so that an early fail may overtake its start and be rejected with `unknown_timer`.
   */
  fail(target: FeedbackTarget, failure: FailureCause, options?: FeedbackOptions): Promise<CommandReceipt>;
  /**
   * Resumes as they come, each at least once and never before its timer is due. All clients of one account share them:
   * each goes to one. Ends when its signal aborts or the client closes; never rejects for a lost connection.
   */
  resumes(options?: ResumesOptions): AsyncIterableIterator<ResumeDelivery, void, undefined>;
  /** Ends iterations, lets what is being sent finish, then disconnects. Idempotent. */
  close(): Promise<void>;
}

/** What a client is made of; `connectTimers` brings it. */
export type ClientTools = {
  readonly connection: BrokerConnection;
  /** Outcomes are sent below it; must be what the resource says. */
  readonly replyPrefix: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly sha256: Sha256;
};

/** A client over a connection, which it closes with itself. */
export function timerClient(tools: ClientTools): TimerClient {
  const { connection, clock, sha256 } = tools;
  const { jetStream } = connection;
  const stopping = new AbortController();
  const stopped = stopping.signal;
  const inbox = new ReplyInbox({ jetStream, clock, prefix: `${tools.replyPrefix}.${tools.random.token(24)}` });
  const sender = new CommandSender({ jetStream, inbox, clock, stopped });
  const iterations = new ResumeIterations({ jetStream, sha256, stopped });
  const brokerLimits = () => ({ brokerPayloadBytesMax: connection.identity()?.payloadBytesMax });

  const giveFeedback = async (request: FeedbackRequest, options: FeedbackOptions): Promise<CommandReceipt> => {
    const message = prepareFeedback(request, brokerLimits(), sha256);
    return receipt(message.ref, await sender.send(message, timeoutOf(options, { awaitOutcome: true })));
  };
  return {
    start: async (request, options = {}) => {
      const { message, waiting } = prepareStart(request, brokerLimits(), sha256);
      const sent = await sender.send(message, timeoutOf(options, { awaitOutcome: false }));
      return { ...receipt(message.ref, sent), snapshotHash: waiting.snapshotHash, waiting };
    },
    retry: (target, options = {}) => giveFeedback({ verb: "retry", target, body: options.body ?? noBytes }, options),
    complete: (target, options = {}) => giveFeedback({ verb: "complete", target, body: options.body ?? noBytes }, options),
    fail: (target, failure, options = {}) => giveFeedback({ verb: "fail", failure, target, body: options.body ?? noBytes }, options),
    resumes: (options = {}) => iterations.open(options),
    close: async () => {
      stopping.abort();
      inbox.close();
      await iterations.end();
      await sender.idle();
      await connection.close();
    },
  };
}

function timeoutOf(options: SendOptions, defaults: { readonly awaitOutcome: boolean }): DurationMs | undefined {
  if (!(options.awaitOutcome ?? defaults.awaitOutcome)) return undefined;
  return (options.outcomeTimeoutMs ?? outcomeTimeoutMs) as DurationMs;
}

function receipt(ref: string, sent: SentCommand): CommandReceipt {
  return { ref, ...sent };
}
