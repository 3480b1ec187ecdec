/** Small values beside the timers' records in the state bucket, under compare-and-set. */
import { assert } from "../base/assert.ts";
import { utf8 } from "../base/bytes.ts";
import { stateSubject, streamNames } from "../protocol/names.ts";
import type { StoredMessage } from "../protocol/message.ts";
import type { NotesStore, ReadOutcome } from "../worker/ports.ts";
import type { JetStream } from "./core/jetstream.ts";
import { readOutcome, writeOutcome } from "./outcomes.ts";
import { isMarker } from "./records.ts";
import { Failure } from "../base/failure.ts";

/** Notes, always read from the leader. */
export function natsNotesStore(jetStream: JetStream): NotesStore {
  return {
    async read(name) {
      const [last] = await jetStream.readLast({ stream: streamNames.state, subjects: [subjectOf(name)], from: "leader" });
      return last === undefined ? { kind: "failed", failure: noAnswer(name) } : readOutcome(last, textIn);
    },
    async write({ name, text, expected }) {
      const [outcome] = await jetStream.publish([{ subject: subjectOf(name), headers: [], body: utf8(text), expectedLastSubjectSequence: expected }]);
      return outcome === undefined ? { kind: "unknown", failure: noAnswer(name) } : writeOutcome(outcome, expected);
    },
  };
}

function subjectOf(name: string): string {
  assert(name.startsWith("l."), "a key that is no timer's");
  return stateSubject(name);
}

function textIn(message: StoredMessage): ReadOutcome<string> {
  const revision = message.sequence;
  if (isMarker(message)) return { kind: "marker", revision };
  try {
    return { kind: "found", value: decoder.decode(message.body), revision };
  } catch {
    return { kind: "unreadable", problem: "is not UTF-8", revision };
  }
}

function noAnswer(name: string): Failure {
  return new Failure("transient", "BROKER_REPLY_MALFORMED", `use note ${name}`);
}

const decoder = new TextDecoder("utf-8", { fatal: true });
