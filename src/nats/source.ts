/** Commands and wakes to work on, from the durable consumers. */
import type { DurationMs } from "../base/units.ts";
import type { StoredMessage } from "../protocol/message.ts";
import type { Delivery, Source } from "../worker/ports.ts";
import type { Delivered, JetStream } from "./core/jetstream.ts";

/** Which consumer, and how far ahead. */
export type SourceTarget = { readonly stream: string; readonly consumer: string; readonly lookahead: number };

/** `epoch` is the connection's present one; `onDelivered` sees each message first; `onStalled` hears of each stall. */
export type SourceTools = { readonly epoch: () => number; readonly onDelivered?: (delivered: Delivered) => void; readonly onStalled?: () => void };

/** A source over one durable consumer. */
export function natsSource(jetStream: JetStream, target: SourceTarget, tools: SourceTools): Source {
  const pulls = jetStream.openSource({ ...target, ...(tools.onStalled === undefined ? {} : { onStalled: tools.onStalled }) });
  return {
    async take(options) {
      const delivered = await pulls.take(options);
      for (const one of delivered) tools.onDelivered?.(one);
      return delivered.map((one) => new NatsDelivery(one, tools.epoch));
    },
    pause: () => pulls.pause(),
    resume: () => pulls.resume(),
    close: () => pulls.close(),
  };
}

class NatsDelivery implements Delivery {
  readonly #delivered: Delivered;
  readonly #epoch: () => number;

  constructor(delivered: Delivered, epoch: () => number) {
    this.#delivered = delivered;
    this.#epoch = epoch;
  }

  get message(): StoredMessage {
    return this.#delivered.message;
  }

  get deliveryCount(): number {
    return this.#delivered.deliveryCount;
  }

  isCurrent(): boolean {
    return this.#delivered.epoch === this.#epoch();
  }

  ack(): boolean {
    return this.#delivered.settle({ kind: "ack" });
  }

  nak(delayMs: DurationMs): boolean {
    return this.#delivered.settle({ kind: "nak", delayMs });
  }

  extend(): boolean {
    return this.#delivered.settle({ kind: "extend" });
  }

  terminate(reason: string): boolean {
    return this.#delivered.settle({ kind: "terminate", reason });
  }
}
