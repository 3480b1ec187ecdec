/**
 * Publishing with acknowledgements: many in flight at once, each tracked by its own reply.
 *
 * 1. A message that was not sent is `refused`; one that was sent and not answered is `unknown` and never sent again here.
 * 2. At most `publishesInFlightMax` are in flight; further ones wait their turn.
 */
import { Failure } from "../../base/failure.ts";
import type { FailureCode } from "../../base/failure.ts";
import { payloadHeadroomBytes, publishesInFlightMax, publishTimeoutMs } from "../../base/limits.ts";
import { isoFromEpochMs } from "../../base/units.ts";
import { Semaphore } from "../../concurrency/semaphore.ts";
import type { Release } from "../../concurrency/semaphore.ts";
import type { HeaderList } from "./headers.ts";
import type { OutgoingMessage, PublishOutcome } from "./jetstream.ts";
import { disconnectedFailure, readJson } from "./link.ts";
import type { Link } from "./link.ts";
import type { Reply } from "./session.ts";

/** Publishes over the present session; one per connection, because it bounds what is in flight. */
export class Publisher {
  readonly #link: Link;
  readonly #inFlight = new Semaphore(publishesInFlightMax);

  constructor(link: Link) {
    this.#link = link;
  }

  async publish(messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]> {
    const outcomes: Promise<PublishOutcome>[] = [];
    for (const message of messages) {
      const release = this.#inFlight.tryAcquire() ?? (await this.#inFlight.acquire());
      outcomes.push(this.#publishOne(message, release));
    }
    return await Promise.all(outcomes);
  }

  #publishOne(message: OutgoingMessage, release: Release | undefined): Promise<PublishOutcome> {
    return new Promise((resolve) => {
      const settle = (outcome: PublishOutcome): void => {
        release?.();
        resolve(outcome);
      };
      const attempt = `publish to ${message.subject}`;
      const session = this.#link.session();
      if (session === undefined) return settle({ kind: "refused", failure: disconnectedFailure(this.#link, attempt) });
      const failure = sizeFailure(message, session.identity.payloadBytesMax);
      if (failure !== undefined) return settle({ kind: "refused", failure });
      session.request({
        subject: message.subject,
        headers: publishHeaders(message),
        body: message.body,
        timeoutMs: publishTimeoutMs,
        attempt,
        onReply: (reply) => {
          settle(publishOutcome(attempt, reply));
          return true;
        },
      });
    });
  }
}

/** The headers of a message: its own, and those that carry its options. */
export function publishHeaders(message: OutgoingMessage): HeaderList {
  const { headers, messageId, expectedLastSubjectSequence, ttlMs, rollup, schedule } = message;
  const all: (readonly [string, string])[] = [...headers];
  if (messageId !== undefined) all.push(["Nats-Msg-Id", messageId]);
  if (expectedLastSubjectSequence !== undefined) all.push(["Nats-Expected-Last-Subject-Sequence", String(expectedLastSubjectSequence)]);
  if (ttlMs !== undefined) all.push(["Nats-TTL", `${String(Math.max(1, Math.ceil(ttlMs / 1_000)))}s`]);
  if (rollup === true) all.push(["Nats-Rollup", "sub"]);
  if (schedule !== undefined) all.push(["Nats-Schedule", `@at ${isoFromEpochMs(schedule.fireAtMs)}`], ["Nats-Schedule-Target", schedule.target]);
  return all;
}

/** The refusal of a message that the server would not take: it closes the connection of whoever sends one. */
export function sizeFailure(message: OutgoingMessage, payloadBytesMax: number): Failure | undefined {
  if (message.body.length + payloadHeadroomBytes <= payloadBytesMax) return undefined;
  const headerBytes = publishHeaders(message).reduce((sum, [name, value]) => sum + name.length + value.length + headerOverheadBytes, headerOverheadBytes);
  if (message.body.length + headerBytes <= payloadBytesMax) return undefined;
  return new Failure("invalid", "MESSAGE_TOO_LARGE", `publish ${String(message.body.length)} bytes to ${message.subject}, of at most ${String(payloadBytesMax)}`);
}

/** More than colon, space and line break take, so that the estimate errs on the safe side. */
const headerOverheadBytes = 16;

function publishOutcome(attempt: string, reply: Reply): PublishOutcome {
  const ack = acknowledgement(attempt, reply);
  if (ack.kind !== "told") return ack;
  return { kind: "stored", sequence: Number(ack.value["seq"]), duplicate: ack.value["duplicate"] === true };
}

/** The acknowledgement in a reply, or what its absence means. */
export function acknowledgement(attempt: string, reply: Reply): Acknowledgement {
  const told = reply.kind === "failed" ? reply : readJson(attempt, reply.message);
  if (told.kind === "told") return told;
  const { failure } = told;
  if (failure.kind === "conflict") return { kind: "conflict" };
  const isUnanswered = reply.kind === "failed" && !surelyNotStored.has(failure.code);
  return { kind: isUnanswered || failure.code === "BROKER_REPLY_MALFORMED" ? "unknown" : "refused", failure };
}

/** What a reply to a publish or to the commit of a batch says. */
export type Acknowledgement =
  | { readonly kind: "told"; readonly value: Readonly<Record<string, unknown>> }
  | { readonly kind: "conflict" }
  | { readonly kind: "refused" | "unknown"; readonly failure: Failure };

/** Nobody serving the subject, and a refused permission, are answers too. */
const surelyNotStored: ReadonlySet<FailureCode> = new Set<FailureCode>(["BROKER_NO_RESPONDERS", "BROKER_PERMISSION"]);
