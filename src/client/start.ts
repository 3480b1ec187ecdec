/** Starts: from what a flow's owner asks for to the command on the wire. */
import type { Sha256 } from "../base/sha256.ts";
import { startInput } from "../protocol/command.ts";
import { startContextSchema } from "../protocol/context.ts";
import { startMessageId } from "../protocol/ids.ts";
import { payloadHash } from "../timer/hashes.ts";
import { timerKey } from "../timer/identity.ts";
import { checkBody, checkContext, refusal, type CommandMessage } from "./command-message.ts";
import type { FeedbackTarget } from "./feedback.ts";

/**
 * A timer to start. Flow, version, execution and node together are its identity: starting the same one twice changes
 * nothing and is answered `duplicate`, or rejected with `start_conflict` when anything else differs.
 */
export type StartRequest = {
  readonly flow: { readonly id: string; readonly version: string };
  /** Root execution: the run of the flow that the timer belongs to. */
  readonly execution: string;
  readonly node: string;
  /** The retry edge is required when `maxRetries` is above 0. */
  readonly edges: { readonly start: string; readonly elapsed: string; readonly retry?: string };
  /** Counted from the moment at which the broker stores the start, on the broker's clock; or an instant on that clock. */
  readonly wait: { readonly delayMs: number } | { readonly dueAt: Date };
  /** How often feedback may ask for another wait; 0 by default. */
  readonly maxRetries?: number;
  /** Wait of a retried generation; the delay of `wait` by default, required when `wait` is an instant. */
  readonly retryWait?: { readonly delayMs: number };
  /** The event: comes back byte for byte with the resume, and is never looked into. */
  readonly body: Uint8Array;
};

/** A start on the wire, and what its sender can know beforehand. */
export type PreparedStart = {
  readonly message: CommandMessage;
  /** The timer as it will wait: generation 0 under fence 1. */
  readonly waiting: FeedbackTarget;
};

/** Checks a start and brings it to its wire form. Throws a Failure that names the field. */
export function prepareStart(request: StartRequest, at: { readonly brokerPayloadBytesMax: number | undefined }, sha256: Sha256): PreparedStart {
  const { body, ...asked } = request;
  checkBody("start", body, at.brokerPayloadBytesMax);
  const { header, context } = checkContext(
    "start",
    { ...asked, v: 1, wait: wireWait(asked.wait), maxRetries: asked.maxRetries ?? 0, payloadHash: payloadHash(body, sha256) },
    startContextSchema,
  );
  const { lineage, snapshotHash } = startInput(context, { receivedAtNs: 0n, payloadBytes: body.length }, sha256);
  const key = timerKey(lineage, sha256);
  return {
    message: { verb: "start", ref: key.ref, contextHeader: header, body, messageId: startMessageId(key, snapshotHash) },
    waiting: { lineage, generation: 0, fence: 1, snapshotHash },
  };
}

/** Other fields stay, so that the schema can name what does not belong. */
function wireWait(wait: StartRequest["wait"]): object {
  if (!("dueAt" in wait)) return wait;
  const { dueAt, ...rest } = wait;
  if (!(dueAt instanceof Date) || Number.isNaN(dueAt.getTime())) throw refusal("start", "wait.dueAt must be a valid Date");
  return { ...rest, dueAt: dueAt.toISOString() };
}
