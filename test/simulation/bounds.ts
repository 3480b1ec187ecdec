/**
 * I13 and I10 as the broker can see them: whatever is stored, asked for or held is within its bound, and nothing is ever
 * evicted to make room for something else.
 */
import { atomicBatchSizeMax, contextBytesMax, doubtfulCountMax, multiGetSizeMax } from "../../src/base/limits.ts";
import { headerNames, stateSubject } from "../../src/protocol/names.ts";
import type { ModelBroker } from "../model/broker.ts";
import type { Meter, Holding } from "../model/meter.ts";
import type { Kept } from "../model/store.ts";
import type { Change } from "../model/stream.ts";
import type { Operation } from "../model/weather.ts";
import type { Checks } from "./checks.ts";

export class Bounds implements Meter {
  readonly #checks: Checks;
  readonly #lookahead: number;
  #broker: ModelBroker | undefined;

  constructor(parts: { readonly checks: Checks; readonly lookahead: number }) {
    this.#checks = parts.checks;
    this.#lookahead = parts.lookahead;
  }

  watch(broker: ModelBroker): void {
    this.#broker = broker;
    broker.watch((change) => this.#on(change));
  }

  /** One read of the leader is many requests of one subject each, bounded where they are made. */
  asked({ client, kind, count }: Operation): void {
    if (!client.startsWith(workerPrefix)) return;
    if (kind === "batch") this.#checks.hold("I13", count <= atomicBatchSizeMax, () => `${client} put ${String(count)} messages into one batch`);
    if (kind === "read") this.#checks.hold("I13", count <= multiGetSizeMax, () => `${client} read ${String(count)} subjects at once`);
  }

  /** A loop has in hand what it looks ahead and what waits for a second look, and its source as much as it looks ahead. */
  held({ client, consumer, count }: Holding): void {
    if (client.startsWith(workerPrefix)) this.#checks.hold("I13", count <= 2 * this.#lookahead + doubtfulCountMax, () => `${client} has ${String(count)} messages of ${consumer} in hand`);
  }

  #on(change: Change): void {
    if (change.kind === "removed") this.#checks.hold("I10", change.why !== "evicted", () => `${change.message.subject} was evicted from ${change.stream}`);
    if (change.kind === "stored") this.#onStored(change.message);
  }

  #onStored(message: Kept): void {
    const { subject, messageId = "", headers } = message;
    const contextBytes = headers.get(headerNames.context)?.length ?? 0;
    const isBounded = subject.length <= subjectCharsMax && messageId.length <= messageIdCharsMax && contextBytes <= contextBytesMax;
    this.#checks.hold("I13", isBounded, () => `a subject, message id or context is too long: ${subject} ${messageId}`);
    if (!subject.startsWith(notePrefix)) return;
    const noteCount = this.#broker?.streamOf(subject)?.store.under(`${notePrefix}>`).length ?? 0;
    this.#checks.hold("I13", noteCount <= noteCountMax, () => `${String(noteCount)} notes lie in the state`);
  }
}

const workerPrefix = "worker";
const notePrefix = stateSubject("l.");
/** Owner, leases and summaries; a note that is written is there twice for a moment. */
const noteCountMax = 6;
const subjectCharsMax = 200;
const messageIdCharsMax = 128;
