/** Live records, one subject each, under compare-and-set: plain publishes to the bucket's stream. */
import { noBytes } from "../base/bytes.ts";
import { stateMarkerTtlMs } from "../base/limits.ts";
import { stateKey, stateSubject, streamNames } from "../protocol/names.ts";
import { encodeRecord } from "../protocol/record-codec.ts";
import type { TimerKey } from "../timer/identity.ts";
import type { StateStore } from "../worker/ports.ts";
import type { JetStream } from "./core/jetstream.ts";
import { readOutcome, writeOutcome } from "./outcomes.ts";
import { markerHeader, recordIn } from "./records.ts";
import type { StageWriter } from "./stage-writer.ts";

/** The state bucket without a KV client. */
export function natsStateStore(jetStream: JetStream, writer: StageWriter): StateStore {
  return {
    async read(keys, from) {
      const last = await jetStream.readLast({ stream: streamNames.state, subjects: keys.map(subjectOf), from });
      return last.map((one) => readOutcome(one, recordIn));
    },
    // Expecting 0 fails over a marker too: the KV client's own create would overwrite it and revive an ended timer.
    async write(items) {
      const messages = items.map(({ key, record, expected }) => ({
        subject: subjectOf(key), headers: [], body: encodeRecord(record), expectedLastSubjectSequence: expected ?? 0,
      }));
      const outcomes = await writer.write(streamNames.state, messages);
      return outcomes.map((outcome, index) => writeOutcome(outcome, items[index]?.expected));
    },
    async remove(items) {
      const messages = items.map(({ key, expected }) => ({
        subject: subjectOf(key), headers: markerHeaders, body: noBytes, expectedLastSubjectSequence: expected, rollup: true, ttlMs: stateMarkerTtlMs,
      }));
      const outcomes = await writer.write(streamNames.state, messages);
      return outcomes.map((outcome, index) => writeOutcome(outcome, items[index]?.expected));
    },
  };
}

const subjectOf = (key: TimerKey): string => stateSubject(stateKey(key));
const markerHeaders = [[markerHeader, "PURGE"]] as const;
