// A JetStream whose answers a test writes down beforehand, and which keeps what was asked of it. Only what a client uses.

import type { Delivered, JetStream, OutgoingMessage, PublishOutcome, PullSource, Settlement } from "../../src/nats/core/jetstream.ts";
import type { StoredMessage } from "../../src/protocol/message.ts";

type Reply = (message: { readonly subject: string; readonly body: Uint8Array }) => void;

export class ScriptedJetStream {
  /** What was published, in order. */
  readonly published: OutgoingMessage[] = [];
  /** Answers to publishes, first come first served; `stored` with the next sequence when none is left. */
  readonly answers: PublishOutcome[] = [];
  /** Batches for the next takes of the source. */
  readonly batches: Delivered[][] = [];
  readonly listening = new Map<string, Reply>();
  sourceState: "none" | "open" | "closed" = "none";
  readonly lookaheads: number[] = [];
  /** How each take asked. */
  readonly pulls: { readonly max: number; readonly expiresMs: number }[] = [];
  #sequence = 0;

  asJetStream(): JetStream {
    const used: Pick<JetStream, "publish" | "listen" | "openSource"> = {
      publish: async (messages) => {
        this.published.push(...messages);
        return messages.map(() => this.answers.shift() ?? { kind: "stored", sequence: (this.#sequence += 1), duplicate: false });
      },
      listen: (subject, listener) => {
        this.listening.set(subject, listener);
        return () => { this.listening.delete(subject); };
      },
      openSource: ({ lookahead }) => this.#openSource(lookahead),
    };
    return used as JetStream;
  }

  /** Sends `text` to a reply subject. */
  reply(subject: string, text: string): void {
    for (const [filter, listener] of this.listening) {
      if (subject.startsWith(filter.slice(0, -1))) listener({ subject, body: new TextEncoder().encode(text) });
    }
  }

  /** The reply subject of the last published message. */
  lastReplyTo(): string | undefined {
    return this.published.at(-1)?.headers.find(([name]) => name === "Durable-Timer-Reply-To")?.[1];
  }

  #openSource(lookahead: number): PullSource {
    this.sourceState = "open";
    this.lookaheads.push(lookahead);
    return {
      take: ({ max, expiresMs, signal }) => {
        this.pulls.push({ max, expiresMs });
        const batch = this.batches.shift();
        if (batch !== undefined || signal.aborted) return Promise.resolve(batch ?? []);
        return new Promise((resolve) => { signal.addEventListener("abort", () => { resolve([]); }, { once: true }); });
      },
      pause: () => undefined,
      resume: () => undefined,
      close: async () => { this.sourceState = "closed"; },
    };
  }
}

/** A delivered message that keeps how it was settled. */
export function deliveredMessage(message: Partial<StoredMessage> & { readonly headers: StoredMessage["headers"] }): Delivered & { readonly settlements: Settlement[] } {
  const settlements: Settlement[] = [];
  return {
    message: { subject: "triggers.v2.durable_timer.resume.v1", sequence: 7, timestampNs: 1_000_000_000_000_000_001n, body: new Uint8Array(0), ...message },
    deliveryCount: 1,
    receivedAtMs: 0 as Delivered["receivedAtMs"],
    epoch: 1,
    settlements,
    settle: (how) => {
      settlements.push(how);
      return true;
    },
  };
}
