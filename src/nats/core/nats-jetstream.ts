/** The data plane over a real connection: each method hands over to the file that knows how. */
import { Failure } from "../../base/failure.ts";
import { publishAtomically } from "./batch.ts";
import type { AccountState, BatchOutcome, ConsumerState, JetStream, LastMessage, OutgoingMessage, PublishOutcome, PullSource, StreamState, Told } from "./jetstream.ts";
import { requestJson } from "./link.ts";
import type { Link } from "./link.ts";
import { Publisher } from "./publisher.ts";
import { NatsPullSource } from "./pull.ts";
import { Reader } from "./reads.ts";
import { scan } from "./scan.ts";
import { accountState, consumerState, streamState } from "./stream-state.ts";
import type { StoredMessage } from "../../protocol/message.ts";

/** The narrow interface over a link. */
export class NatsJetStream implements JetStream {
  readonly #link: Link;
  readonly #publisher: Publisher;
  readonly #reader: Reader;

  constructor(link: Link) {
    this.#link = link;
    this.#publisher = new Publisher(link);
    this.#reader = new Reader(link);
  }

  publish(messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]> {
    return this.#publisher.publish(messages);
  }

  publishAtomically(messages: readonly OutgoingMessage[]): Promise<BatchOutcome> {
    return publishAtomically(this.#link, messages);
  }

  readLast({ stream, subjects, from }: { readonly stream: string; readonly subjects: readonly string[]; readonly from: "replica" | "leader" }): Promise<readonly LastMessage[]> {
    return from === "leader" ? this.#reader.fromLeader(stream, subjects) : this.#reader.fromReplica(stream, subjects);
  }

  async purge({ stream, subject }: { readonly stream: string; readonly subject: string }): Promise<Told<{ readonly purged: number }>> {
    const attempt = `purge ${subject} of ${stream}`;
    const told = await requestJson(this.#link, { subject: `${this.#link.apiPrefix}.STREAM.PURGE.${stream}`, payload: { filter: subject }, attempt });
    if (told.kind === "failed") return told;
    const { success, purged } = told.value;
    if (success === true) return { kind: "told", value: { purged: Number(purged ?? 0) } };
    return { kind: "failed", failure: new Failure("transient", "BROKER_REFUSED", attempt) };
  }

  openSource(options: { readonly stream: string; readonly consumer: string; readonly lookahead: number; readonly onStalled?: () => void }): PullSource {
    return new NatsPullSource(this.#link, options);
  }

  scan(options: { readonly stream: string; readonly filter: string; readonly batchSize: number; readonly signal: AbortSignal }): AsyncIterable<readonly StoredMessage[]> {
    return scan(this.#link, options);
  }

  send(message: { readonly subject: string; readonly headers?: readonly (readonly [string, string])[]; readonly body: Uint8Array }): void {
    this.#link.session()?.send(message);
  }

  listen(subject: string, listener: (message: { readonly subject: string; readonly body: Uint8Array }) => void): () => void {
    let leave: (() => void) | undefined;
    const forget = this.#link.onSession((session) => {
      ({ leave } = session.subscribe(subject, ({ subject: actual, body }) => listener({ subject: actual, body })));
    });
    return () => {
      forget();
      leave?.();
    };
  }

  streamState(stream: string): Promise<Told<StreamState>> {
    return streamState(this.#link, stream);
  }

  consumerState(stream: string, consumer: string): Promise<Told<ConsumerState>> {
    return consumerState(this.#link, stream, consumer);
  }

  accountState(): Promise<Told<AccountState>> {
    return accountState(this.#link);
  }
}
