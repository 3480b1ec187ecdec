/** Walks over what collection looks at: the archive without rejected contexts, and snapshots without their bodies. */
import { collectionPortionSizeMax } from "../base/limits.ts";
import { epochMsFromNanos } from "../base/units.ts";
import { streamNames, subjectFilters, terminalRecordFilter, timerKeyFromSubject } from "../protocol/names.ts";
import type { StoredMessage } from "../protocol/message.ts";
import type { CollectionWalk, WalkedArchive, WalkedSnapshot } from "../worker/ports.ts";
import { terminalIn } from "./archive.ts";
import type { JetStream } from "./core/jetstream.ts";
import { snapshotIn } from "./snapshot-store.ts";

/** Walks in portions; throws a Failure when it cannot go on. */
export function natsCollectionWalk(jetStream: JetStream): CollectionWalk {
  const batchSize = collectionPortionSizeMax;
  return {
    async *archive(signal) {
      const parts = jetStream.scan({ stream: streamNames.terminals, filter: terminalRecordFilter, batchSize, signal });
      for await (const messages of parts) yield messages.map(walkedArchive).filter((walked) => walked !== undefined);
    },
    async *snapshots(signal) {
      const parts = jetStream.scan({ stream: streamNames.snapshots, filter: subjectFilters.snapshots, batchSize, headersOnly: true, signal });
      for await (const messages of parts) yield messages.map(walkedSnapshot).filter((walked) => walked !== undefined);
    },
  };
}

function walkedArchive(message: StoredMessage): WalkedArchive | undefined {
  const key = timerKeyFromSubject(message.subject);
  const record = terminalIn(message);
  if (key === undefined || record.kind === "marker") return undefined;
  return { key, revision: message.sequence, archivedAtMs: epochMsFromNanos(message.timestampNs), record };
}

function walkedSnapshot(message: StoredMessage): WalkedSnapshot | undefined {
  const key = timerKeyFromSubject(message.subject);
  const read = snapshotIn(message);
  if (key === undefined || read.kind === "marker") return undefined;
  const at = { key, revision: message.sequence, storedAtMs: epochMsFromNanos(message.timestampNs) };
  if (read.kind === "collected") return { ...at, found: { kind: "collected", grave: read.grave } };
  return { ...at, found: { kind: read.kind === "found" ? "snapshot" : "unreadable" } };
}
