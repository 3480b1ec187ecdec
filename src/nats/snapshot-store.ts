/** Start payloads with their contexts: written once, never replaced (I4). */
import { headerNames, snapshotSubject, streamNames } from "../protocol/names.ts";
import type { StoredMessage } from "../protocol/message.ts";
import type { ReadOutcome, Snapshot, SnapshotStore } from "../worker/ports.ts";
import type { JetStream } from "./core/jetstream.ts";
import { readOutcome, writeOutcome } from "./outcomes.ts";
import type { StageWriter } from "./stage-writer.ts";

/** Snapshots, one subject each. */
export function natsSnapshotStore(jetStream: JetStream, writer: StageWriter): SnapshotStore {
  return {
    async create(items) {
      const messages = items.map(({ key, snapshot }) => ({
        subject: snapshotSubject(key),
        headers: [[headerNames.context, snapshot.contextHeader]] as const,
        body: snapshot.body,
        expectedLastSubjectSequence: 0,
      }));
      const outcomes = await writer.write(streamNames.snapshots, messages);
      return outcomes.map((outcome) => writeOutcome(outcome));
    },
    async read(keys, from) {
      const last = await jetStream.readLast({ stream: streamNames.snapshots, subjects: keys.map(snapshotSubject), from });
      return last.map((one) => readOutcome(one, snapshotIn));
    },
  };
}

function snapshotIn(message: StoredMessage): ReadOutcome<Snapshot> {
  const contextHeader = message.headers.get(headerNames.context);
  const revision = message.sequence;
  if (contextHeader === undefined) return { kind: "unreadable", problem: `header ${headerNames.context} is missing`, revision };
  return { kind: "found", value: { contextHeader, body: message.body }, revision };
}
