/** Ended timers. A record is archived once, with the bytes that STATE held (I6), and goes only when it is collected. */
import { noBytes } from "../base/bytes.ts";
import { archiveMarkerTtlMs } from "../base/limits.ts";
import { terminalMessageId } from "../protocol/ids.ts";
import { streamNames, terminalSubject } from "../protocol/names.ts";
import type { StoredMessage } from "../protocol/message.ts";
import { encodeRecord } from "../protocol/record-codec.ts";
import type { TerminalRecord } from "../timer/record.ts";
import type { Archive, ReadOutcome, WriteOutcome } from "../worker/ports.ts";
import type { JetStream, PublishOutcome } from "./core/jetstream.ts";
import { readOutcome, writeOutcome } from "./outcomes.ts";
import { markerHeader, recordIn } from "./records.ts";
import type { StageWriter } from "./stage-writer.ts";

/** The archive over the stream of ended timers. */
export function natsArchive(jetStream: JetStream, writer: StageWriter): Archive {
  return {
    async create(items) {
      const messages = items.map(({ key, record }) => ({
        subject: terminalSubject(key), headers: [], body: encodeRecord(record), expectedLastSubjectSequence: 0, messageId: terminalMessageId(key),
      }));
      const outcomes = await writer.write(streamNames.terminals, messages);
      return outcomes.map(createOutcome);
    },
    async read(keys, from = "leader") {
      const last = await jetStream.readLast({ stream: streamNames.terminals, subjects: keys.map(terminalSubject), from });
      return last.map((one) => readOutcome(one, terminalIn));
    },
    // A message and no purge request: workers have no right to purge the archive, and a purge has no expectation.
    async remove(items) {
      const messages = items.map(({ key, expected }) => ({
        subject: terminalSubject(key), headers: [[markerHeader, "PURGE"]] as const, body: noBytes, expectedLastSubjectSequence: expected, rollup: true, ttlMs: archiveMarkerTtlMs,
      }));
      const outcomes = await writer.write(streamNames.terminals, messages);
      return outcomes.map((outcome, index) => writeOutcome(outcome, items[index]?.expected));
    },
  };
}

/** The id names the timer and not the bytes: a duplicate says that something is archived, not that it is this. */
function createOutcome(outcome: PublishOutcome): WriteOutcome {
  return outcome.kind === "stored" && outcome.duplicate ? { kind: "exists" } : writeOutcome(outcome);
}

/** The terminal record in a message, or its marker. */
export function terminalIn(message: StoredMessage): ReadOutcome<TerminalRecord> {
  const read = recordIn(message);
  if (read.kind !== "found") return read;
  const { value: record, revision } = read;
  return record.phase === "terminal" ? { kind: "found", value: record, revision } : { kind: "unreadable", problem: `phase is ${record.phase}`, revision };
}
