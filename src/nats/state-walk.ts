/** A walk over every record of STATE; what is no timer's key, and markers of removed records, are passed over. */
import { sweepPortionSizeMax, sweepPullSizeMax } from "../base/limits.ts";
import { stateRecordFilter, streamNames, timerKeyFromSubject } from "../protocol/names.ts";
import type { StoredMessage } from "../protocol/message.ts";
import type { StateWalk, WalkedRecord } from "../worker/ports.ts";
import type { JetStream } from "./core/jetstream.ts";
import { recordIn } from "./records.ts";

/** Walks in parts of the largest size; throws a Failure when it cannot go on. */
export function natsStateWalk(jetStream: JetStream): StateWalk {
  return {
    async *walk(signal) {
      const parts = jetStream.scan({ stream: streamNames.state, filter: stateRecordFilter, batchSize: sweepPullSizeMax, signal });
      // Records are read portion by portion: reading thousands in one go would hold up everything else in this process.
      for await (const messages of parts) {
        for (let from = 0; from < messages.length; from += sweepPortionSizeMax) {
          yield messages.slice(from, from + sweepPortionSizeMax).map(walkedRecord).filter((walked) => walked !== undefined);
        }
      }
    },
  };
}

function walkedRecord(message: StoredMessage): WalkedRecord | undefined {
  const key = timerKeyFromSubject(message.subject);
  const record = recordIn(message);
  if (key === undefined || record.kind === "marker") return undefined;
  return { key, revision: message.sequence, record };
}
