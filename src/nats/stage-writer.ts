/**
 * Stores the messages of one stage in one stream: pipelined one by one, or as atomic batches where those are cheaper.
 *
 * 1. With one replica a batch costs one synchronisation of the disk instead of one per message, and has a fixed price:
 *    it is worth it from `atomicBatchSizeMin` messages on. With more replicas the servers group single messages.
 * 2. A batch that was refused, or in which one expectation did not hold, is settled message by message: nothing of it is
 *    stored, or, when storage ran out in the middle of it, expectations tell what is.
 * 3. A batch without an answer is unknown for each of its messages.
 */
import { atomicBatchBytesMax, atomicBatchSizeMax, atomicBatchSizeMin } from "../base/limits.ts";
import type { JetStream, OutgoingMessage, PublishOutcome, StreamState } from "./core/jetstream.ts";

/** One per connection; it remembers which streams are worth batching. */
export class StageWriter {
  readonly #jetStream: JetStream;
  readonly #worthBatching = new Map<string, boolean>();

  constructor(jetStream: JetStream) {
    this.#jetStream = jetStream;
  }

  /** Learns from a stream's state whether batches are possible and cheap there. Until then none are used. */
  learn(state: StreamState): void {
    this.#worthBatching.set(state.name, state.config["num_replicas"] === 1 && state.config["allow_atomic"] === true);
  }

  /** One outcome per message, in order. No two messages with an expectation may have one subject. */
  async write(stream: string, messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]> {
    if (messages.length === 0) return [];
    if (this.#worthBatching.get(stream) !== true) return await this.#jetStream.publish(messages);
    const groups = batches(messages).map((group) => (group.length < atomicBatchSizeMin ? this.#jetStream.publish(group) : this.#writeBatch(group)));
    return (await Promise.all(groups)).flat();
  }

  async #writeBatch(messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]> {
    const outcome = await this.#jetStream.publishAtomically(messages);
    switch (outcome.kind) {
      case "stored":
        return messages.map((_, index) => ({ kind: "stored", sequence: outcome.lastSequence - (messages.length - 1 - index), duplicate: false }));
      case "unknown":
        return messages.map(() => outcome);
      case "conflict":
      case "refused":
      default:
        return await this.#jetStream.publish(messages);
    }
  }
}

/** Consecutive groups, each within the limits of one batch. */
function batches(messages: readonly OutgoingMessage[]): readonly (readonly OutgoingMessage[])[] {
  const groups: OutgoingMessage[][] = [];
  let group: OutgoingMessage[] = [];
  let bytes = 0;
  for (const message of messages) {
    const isFull = group.length === atomicBatchSizeMax || (group.length > 0 && bytes + message.body.length > atomicBatchBytesMax);
    if (isFull) {
      groups.push(group);
      group = [];
      bytes = 0;
    }
    group.push(message);
    bytes += message.body.length;
  }
  return group.length === 0 ? groups : [...groups, group];
}
