/**
 * The last message of each of many subjects, from the stream's leader or from any replica.
 *
 * From the leader: one request per subject, a bounded number at once. From a replica: many subjects in one request, whose
 * replies end with a status. The server ends early at a number of bytes; what is missing then is asked for again, because
 * an absent message and one that was not sent look the same. Without that number it would send as much as it would cut a
 * slow client off for.
 */
import { apiTimeoutMs, leaderReadsInFlightMax, multiGetBytesMax, multiGetSizeMax } from "../../base/limits.ts";
import { utf8 } from "../../base/bytes.ts";
import type { Failure } from "../../base/failure.ts";
import { Semaphore } from "../../concurrency/semaphore.ts";
import type { StoredMessage } from "../../protocol/message.ts";
import { apiFailure, malformedFailure, serverErrorCode } from "./classify.ts";
import { messageHeaders } from "./headers.ts";
import type { LastMessage } from "./jetstream.ts";
import { disconnectedFailure, requestJson } from "./link.ts";
import type { Link } from "./link.ts";
import { apiMessage, directMessage } from "./received.ts";

/** Reads over the present session; one per connection, because it bounds what is in flight. */
export class Reader {
  readonly #link: Link;
  readonly #leaderReads = new Semaphore(leaderReadsInFlightMax);

  constructor(link: Link) {
    this.#link = link;
  }

  async fromLeader(stream: string, subjects: readonly string[]): Promise<readonly LastMessage[]> {
    return await Promise.all(subjects.map((subject) => this.#readOne(stream, subject)));
  }

  async fromReplica(stream: string, subjects: readonly string[]): Promise<readonly LastMessage[]> {
    const groups = Array.from({ length: Math.ceil(subjects.length / multiGetSizeMax) }, (_, index) => subjects.slice(index * multiGetSizeMax, (index + 1) * multiGetSizeMax));
    const results: LastMessage[] = [];
    for (const group of groups) results.push(...(await this.#readGroup(stream, group)));
    return results;
  }

  async #readOne(stream: string, subject: string): Promise<LastMessage> {
    const release = await this.#leaderReads.acquire();
    try {
      const attempt = `read ${subject} from the leader of ${stream}`;
      const told = await requestJson(this.#link, { subject: `${this.#link.apiPrefix}.STREAM.MSG.GET.${stream}`, payload: { last_by_subj: subject }, attempt });
      if (told.kind === "failed") return serverErrorCode(told.failure) === noMessageFound ? { kind: "absent" } : told;
      const message = apiMessage(told.value["message"]);
      return message === undefined ? { kind: "failed", failure: malformedFailure(attempt) } : { kind: "found", message };
    } finally {
      release?.();
    }
  }

  async #readGroup(stream: string, subjects: readonly string[]): Promise<readonly LastMessage[]> {
    const found = new Map<string, StoredMessage>();
    let missing = subjects;
    for (;;) {
      const part = await this.#multiGet(stream, missing);
      if (part.kind === "failed") return subjects.map(() => part);
      for (const message of part.messages) found.set(message.subject, message);
      missing = missing.filter((subject) => !found.has(subject));
      if (part.isComplete || missing.length === 0) break;
    }
    return subjects.map((subject) => {
      const message = found.get(subject);
      return message === undefined ? { kind: "absent" } : { kind: "found", message };
    });
  }

  #multiGet(stream: string, subjects: readonly string[]): Promise<Part> {
    const attempt = `read ${String(subjects.length)} subjects of ${stream}`;
    const session = this.#link.session();
    if (session === undefined) return Promise.resolve({ kind: "failed", failure: disconnectedFailure(this.#link, attempt) });
    const messages: StoredMessage[] = [];
    return new Promise((resolve) => {
      session.request({
        subject: `${this.#link.apiPrefix}.DIRECT.GET.${stream}`,
        body: utf8(JSON.stringify({ multi_last: subjects, batch: subjects.length, max_bytes: multiGetBytesMax })),
        timeoutMs: apiTimeoutMs,
        attempt,
        onReply: (reply) => {
          if (reply.kind === "failed") return resolve(reply), true;
          const { status, headerBytes } = reply.message;
          if (status === undefined) {
            const message = directMessage(reply.message);
            if (message !== undefined) messages.push(message);
            return false;
          }
          resolve(endOfPart({ status, pending: messageHeaders(headerBytes).get("Nats-Num-Pending"), messages, attempt }));
          return true;
        },
      });
    });
  }
}

type Part =
  | { readonly kind: "told"; readonly messages: readonly StoredMessage[]; readonly isComplete: boolean }
  | { readonly kind: "failed"; readonly failure: Failure };

function endOfPart({ status, pending, messages, attempt }: { readonly status: number; readonly pending: string | undefined; readonly messages: readonly StoredMessage[]; readonly attempt: string }): Part {
  const isComplete = pending === undefined || pending === "0";
  // An incomplete part without a message would be asked for again without end.
  if (status === statusEndOfBatch && !isComplete && messages.length === 0) return { kind: "failed", failure: malformedFailure(attempt) };
  if (status === statusEndOfBatch) return { kind: "told", messages, isComplete };
  if (status === statusNoResults) return { kind: "told", messages, isComplete: true };
  return { kind: "failed", failure: apiFailure(attempt, { code: status, err_code: 0, description: `status ${String(status)}` }) };
}

const noMessageFound = 10037;
const statusEndOfBatch = 204;
const statusNoResults = 404;
