/** Feedback: what a flow's owner says of a timer that has elapsed, or, with fail, of one that still waits. */
import type { Sha256 } from "../base/sha256.ts";
import { feedbackInput } from "../protocol/command.ts";
import { failContextSchema, feedbackContextSchema } from "../protocol/context.ts";
import { feedbackMessageId } from "../protocol/ids.ts";
import { payloadHash } from "../timer/hashes.ts";
import { timerKey, type Lineage } from "../timer/identity.ts";
import type { FailureCause, FeedbackVerb } from "../timer/record.ts";
import { checkBody, checkContext, type CommandMessage } from "./command-message.ts";

/**
 * One point in a timer's life. A resume is one; a start's receipt carries another, for failing the timer while it
 * waits. Feedback on a point that has passed is rejected and changes nothing.
 */
export type FeedbackTarget = {
  readonly lineage: Lineage;
  readonly generation: number;
  readonly fence: number;
  /** `sha256:` and 64 hexadecimal characters: names the start that the timer came from. */
  readonly snapshotHash: string;
};

/** A feedback as its sender means it. */
export type FeedbackRequest = {
  readonly target: FeedbackTarget;
  readonly body: Uint8Array;
} & (
  | { readonly verb: Exclude<FeedbackVerb, "fail"> }
  | { readonly verb: "fail"; readonly failure: FailureCause }
);

/** Checks a feedback and brings it to its wire form. Throws a Failure that names the field. */
export function prepareFeedback(request: FeedbackRequest, at: { readonly brokerPayloadBytesMax: number | undefined }, sha256: Sha256): CommandMessage {
  const { verb, target, body } = request;
  checkBody(verb, body, at.brokerPayloadBytesMax);
  const { flow, execution, node, edges } = target.lineage;
  const asked = {
    v: 1, flow, execution, node, edges,
    generation: target.generation, fence: target.fence, snapshotHash: target.snapshotHash, payloadHash: payloadHash(body, sha256),
  };
  const { header, context } = verb === "fail"
    ? checkContext(verb, { ...asked, failure: request.failure }, failContextSchema)
    : checkContext(verb, asked, feedbackContextSchema);
  const { lineage, receiptHash } = feedbackInput(context, { verb, receivedAtNs: 0n }, sha256);
  const key = timerKey(lineage, sha256);
  const messageId = feedbackMessageId(key, { verb, generation: target.generation, fence: target.fence, receiptHash });
  return { verb, ref: key.ref, contextHeader: header, body, messageId };
}
