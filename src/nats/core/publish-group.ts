/**
 * Publishes a group of messages of one stream in the cheaper way, each with its own outcome: one by one when they are few,
 * because a batch has a fixed price, and as one atomic batch otherwise.
 *
 * A batch that was refused, or in which one expectation did not hold, is settled message by message: nothing of it is
 * stored, or, when storage ran out in the middle of it, expectations tell what is. One without an answer is unknown for
 * each of its messages.
 */
import { atomicBatchBytesMax, atomicBatchSizeMax, atomicBatchSizeMin } from "../../base/limits.ts";
import type { PortionLimits } from "../../base/portions.ts";
import type { JetStream, OutgoingMessage, PublishOutcome } from "./jetstream.ts";

/** What one group may hold. */
export const groupLimits: PortionLimits<OutgoingMessage> = { countMax: atomicBatchSizeMax, bytesMax: atomicBatchBytesMax, bytesOf: ({ body }) => body.length };

/** One outcome per message, in order; the group is within `groupLimits`. */
export async function publishGroup(jetStream: Pick<JetStream, "publish" | "publishAtomically">, messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]> {
  if (messages.length < atomicBatchSizeMin) return await jetStream.publish(messages);
  const outcome = await jetStream.publishAtomically(messages);
  switch (outcome.kind) {
    case "stored":
      return messages.map((_, index) => ({ kind: "stored", sequence: outcome.lastSequence - (messages.length - 1 - index), duplicate: false }));
    case "unknown":
      return messages.map(() => outcome);
    case "conflict":
    case "refused":
    default:
      return await jetStream.publish(messages);
  }
}
