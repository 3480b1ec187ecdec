/** What the JetStream side of a connection sees of it: the present session, and the tools to wait. */
import { noBytes, utf8 } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { apiTimeoutMs } from "../../base/limits.ts";
import type { Random } from "../../base/random.ts";
import { apiErrorIn, apiFailure, malformedFailure } from "./classify.ts";
import type { HeaderList } from "./headers.ts";
import type { Told } from "./jetstream.ts";
import type { ReceivedMessage } from "./received.ts";
import type { Session } from "./session.ts";

export type Link = {
  readonly clock: Clock;
  readonly random: Random;
  /** Undefined while there is no connection. */
  readonly session: () => Session | undefined;
  readonly epoch: () => number;
  /** Calls `listener` with the present session and each later one, until the returned function is called. */
  readonly onSession: (listener: (session: Session) => void) => () => void;
  /** Why there is no connection, when that is known. */
  readonly whyNot: () => Failure | undefined;
  /** `$JS.API`, or the same inside a domain. */
  readonly apiPrefix: string;
};

/** The failure of an attempt that was not sent, for want of a connection. */
export function disconnectedFailure(link: Link, attempt: string): Failure {
  return new Failure(link.whyNot()?.kind ?? "transient", link.whyNot()?.code ?? "BROKER_UNREACHABLE", attempt, { cause: link.whyNot() });
}

/** One request with one JSON reply, refusals told apart from answers. */
export function requestJson(link: Link, request: { readonly subject: string; readonly headers?: HeaderList; readonly payload?: unknown; readonly attempt: string }): Promise<Told<Record<string, unknown>>> {
  const { subject, payload, attempt } = request;
  const session = link.session();
  if (session === undefined) return Promise.resolve({ kind: "failed", failure: disconnectedFailure(link, attempt) });
  return new Promise((resolve) => {
    session.request({
      subject,
      attempt,
      body: payload === undefined ? noBytes : utf8(JSON.stringify(payload)),
      timeoutMs: apiTimeoutMs,
      ...(request.headers === undefined ? {} : { headers: request.headers }),
      onReply: (reply) => {
        resolve(reply.kind === "failed" ? reply : readJson(attempt, reply.message));
        return true;
      },
    });
  });
}

/** The JSON object in a reply; a refusal or anything else is a failure. */
export function readJson(attempt: string, message: ReceivedMessage): Told<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(decoder.decode(message.body));
    if (typeof value !== "object" || value === null) return { kind: "failed", failure: malformedFailure(attempt) };
    const error = apiErrorIn(value);
    if (error !== undefined) return { kind: "failed", failure: apiFailure(attempt, error) };
    return { kind: "told", value: value as Record<string, unknown> };
  } catch (error) {
    return { kind: "failed", failure: malformedFailure(attempt, error) };
  }
}

const decoder = new TextDecoder();
