/** Start payloads with their contexts: written once, and replaced by nothing but the tombstone of a collected timer (I4). */
import { noBytes } from "../base/bytes.ts";
import { headerNames, snapshotSubject, streamNames } from "../protocol/names.ts";
import type { StoredMessage } from "../protocol/message.ts";
import { decodeGrave, encodeGrave } from "../protocol/tombstone.ts";
import type { SnapshotReading, SnapshotStore } from "../worker/ports.ts";
import type { JetStream } from "./core/jetstream.ts";
import { readOutcome, writeOutcome } from "./outcomes.ts";
import { isMarker } from "./records.ts";
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
    // One message per subject is kept, so that a tombstone takes its place without the right to roll anything up.
    async bury(items) {
      const messages = items.map(({ key, grave, expected }) => ({
        subject: snapshotSubject(key),
        headers: [[headerNames.tombstone, encodeGrave(grave)]] as const,
        body: noBytes,
        expectedLastSubjectSequence: expected,
        ...(grave.expiresInMs === undefined ? {} : { ttlMs: grave.expiresInMs }),
      }));
      const outcomes = await writer.write(streamNames.snapshots, messages);
      return outcomes.map((outcome, index) => writeOutcome(outcome, items[index]?.expected));
    },
  };
}

/** The snapshot in a message, or what took its place. */
export function snapshotIn(message: StoredMessage): SnapshotReading {
  const contextHeader = message.headers.get(headerNames.context);
  const revision = message.sequence;
  if (isMarker(message)) return { kind: "marker", revision };
  const tombstone = message.headers.get(headerNames.tombstone);
  if (tombstone !== undefined) {
    const grave = decodeGrave(tombstone);
    return grave === undefined ? { kind: "unreadable", problem: `header ${headerNames.tombstone} cannot be read`, revision } : { kind: "collected", grave, revision };
  }
  if (contextHeader === undefined) return { kind: "unreadable", problem: `header ${headerNames.context} is missing`, revision };
  return { kind: "found", value: { contextHeader, body: message.body }, revision };
}
