/**
 * A command in its wire form, checked with the schemas that its reader will use: what a worker would refuse as malformed
 * is refused here, before anything is sent, with the field named.
 */
import { Failure } from "../base/failure.ts";
import { payloadBytesMax, payloadHeadroomBytes } from "../base/limits.ts";
import { readContext, writeContext } from "../protocol/context.ts";
import type { CommandVerb } from "../protocol/names.ts";

/** A command that is ready to be sent, any number of times. */
export type CommandMessage = {
  readonly verb: CommandVerb;
  /** Name of the timer that it is about. */
  readonly ref: string;
  readonly contextHeader: string;
  readonly body: Uint8Array;
  /** The same for equal commands: within the broker's duplicate window the second one is not stored. */
  readonly messageId: string;
};

type Schema<T> = Parameters<typeof readContext<T>>[1];

/** The header text of `context` and the context as its reader will see it. Throws a Failure that names the field. */
export function checkContext<T>(verb: CommandVerb, context: object, schema: Schema<T>): { readonly header: string; readonly context: T } {
  const header = writeContext(context as Parameters<typeof writeContext>[0]);
  const read = readContext(header, schema);
  if (!read.ok) throw refusal(verb, `${read.field} ${read.problem}`);
  return { header, context: read.context };
}

/** Throws a Failure unless `body` is bytes that the broker and the default limit allow. */
export function checkBody(verb: CommandVerb, body: unknown, brokerPayloadBytesMax: number | undefined): asserts body is Uint8Array {
  if (!(body instanceof Uint8Array)) throw refusal(verb, "body must be a Uint8Array");
  const limit = Math.min(payloadBytesMax, (brokerPayloadBytesMax ?? Infinity) - payloadHeadroomBytes);
  if (body.length <= limit) return;
  throw new Failure("invalid", "MESSAGE_TOO_LARGE", `${verb}: body is ${String(body.length)} bytes; the limit is ${String(limit)}`);
}

/** The failure of a request that can never succeed as it is. */
export function refusal(verb: CommandVerb, problem: string): Failure {
  return new Failure("invalid", "REQUEST_INVALID", `${verb}: ${problem}`);
}
