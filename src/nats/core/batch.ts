/**
 * Atomic batches: all messages are stored in one step, or none. The client library's own batches drop options and hide
 * the server's answer, so the protocol is spoken here: headers count the messages, and the last one commits.
 *
 * Only the commit asks for a reply. A batch that went wrong earlier is answered there too, as incomplete.
 */
import { assert } from "../../base/assert.ts";
import { atomicBatchSizeMax, publishTimeoutMs } from "../../base/limits.ts";
import { malformedFailure } from "./classify.ts";
import type { HeaderList } from "./headers.ts";
import type { BatchOutcome, OutgoingMessage } from "./jetstream.ts";
import { disconnectedFailure } from "./link.ts";
import type { Link } from "./link.ts";
import { acknowledgement, publishHeaders, sizeFailure } from "./publisher.ts";
import type { Reply, Session } from "./session.ts";

/** Publishes one batch; its messages go to one stream and to distinct subjects. */
export function publishAtomically(link: Link, messages: readonly OutgoingMessage[]): Promise<BatchOutcome> {
  assert(messages.length >= 1 && messages.length <= atomicBatchSizeMax, "a batch within the limit");
  const attempt = `publish ${String(messages.length)} messages in one batch, the first to ${messages[0]?.subject ?? ""}`;
  const session = link.session();
  if (session === undefined) return Promise.resolve({ kind: "refused", failure: disconnectedFailure(link, attempt) });
  const failure = messages.map((message) => sizeFailure(message, session.identity.payloadBytesMax)).find((found) => found !== undefined);
  if (failure !== undefined) return Promise.resolve({ kind: "refused", failure });
  return send(session, messages, { attempt, batchId: link.random.token(batchIdLength) });
}

const batchIdLength = 22;

function send(session: Session, messages: readonly OutgoingMessage[], { attempt, batchId }: { readonly attempt: string; readonly batchId: string }): Promise<BatchOutcome> {
  const headersOf = (message: OutgoingMessage, index: number): HeaderList => [
    ...publishHeaders(message),
    ["Nats-Batch-Id", batchId],
    ["Nats-Batch-Sequence", String(index + 1)],
    ...(index === messages.length - 1 ? [["Nats-Batch-Commit", "1"] as const] : []),
  ];
  return new Promise((resolve) => {
    for (const [index, message] of messages.entries()) {
      const { subject, body } = message;
      const headers = headersOf(message, index);
      if (index < messages.length - 1) session.send({ subject, body, headers });
      else session.request({ subject, body, headers, attempt, timeoutMs: publishTimeoutMs, onReply: (reply) => (resolve(batchOutcome(attempt, reply, messages.length)), true) });
    }
  });
}

function batchOutcome(attempt: string, reply: Reply, messageCount: number): BatchOutcome {
  const ack = acknowledgement(attempt, reply);
  if (ack.kind !== "told") return ack;
  const { count, seq } = ack.value;
  if (count !== messageCount) return { kind: "unknown", failure: malformedFailure(attempt) };
  return { kind: "stored", lastSequence: Number(seq) };
}
