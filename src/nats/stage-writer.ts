/**
 * Stores the messages of one stage in one stream: pipelined one by one, or as atomic batches where those are cheaper.
 *
 * 1. With one replica a batch costs one synchronisation of the disk instead of one per message, and has a fixed price:
 *    it is worth it from `atomicBatchSizeMin` messages on. With more replicas the servers group single messages.
 * 2. How a batch that did not succeed is settled: core/publish-group.ts.
 */
import { portionsOf } from "../base/portions.ts";
import type { JetStream, OutgoingMessage, PublishOutcome, StreamState } from "./core/jetstream.ts";
import { groupLimits, publishGroup } from "./core/publish-group.ts";

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
    const outcomes = await Promise.all(portionsOf(messages, groupLimits).map((group) => publishGroup(this.#jetStream, group)));
    return outcomes.flat();
  }
}
