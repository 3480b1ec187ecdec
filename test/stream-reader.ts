/** Reads everything that a stream holds, by sequence: work queues allow that too, whereas a second consumer on them is refused. */
import { jetstreamManager, type CompletionResult, type JetStreamManager, type StoredMsg } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { nanosFromRfc3339 } from "../src/nats/core/received.ts";
import type { StoredMessage } from "../src/protocol/message.ts";

/** Every message under a filter, in order; from whichever replica answers, so that one that lags may leave out the newest. */
export async function readAll(urls: readonly string[], { stream, filter }: { readonly stream: string; readonly filter: string }): Promise<readonly StoredMessage[]> {
  const connection = await connect({ servers: [...urls] });
  try {
    const manager = await jetstreamManager(connection);
    const all: StoredMessage[] = [];
    for (let sequence = 1; ;) {
      const part = await readPart(manager, { stream, filter, sequence });
      all.push(...part);
      const last = part.at(-1);
      if (last === undefined) return all;
      sequence = last.sequence + 1;
    }
  } finally {
    await connection.close();
  }
}

async function readPart(manager: JetStreamManager, at: { readonly stream: string; readonly filter: string; readonly sequence: number }): Promise<readonly StoredMessage[]> {
  const part: StoredMessage[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<undefined>();
  const query = { seq: at.sequence, batch: 500, ...(at.filter === ">" ? {} : { next_by_subj: at.filter }) };
  await manager.direct.getBatch(at.stream, {
    ...query,
    callback: (done: CompletionResult | null, message: StoredMsg) => {
      if (done === null) part.push(storedMessage(message));
      else if (done.err === undefined || /not found/i.test(done.err.message)) resolve(undefined);
      else reject(done.err);
    },
  });
  await promise;
  return part;
}

function storedMessage(message: StoredMsg): StoredMessage {
  const { header } = message;
  return {
    subject: message.subject, sequence: message.seq, timestampNs: nanosFromRfc3339(message.timestamp) ?? 0n, body: message.data,
    headers: { get: (name) => (header.has(name) ? header.get(name) : undefined), all: (name) => header.values(name) },
  };
}
