/** Outcomes of the narrow interface as outcomes of the worker's ports. */
import { unreachable } from "../base/assert.ts";
import type { StoredMessage } from "../protocol/message.ts";
import type { ReadOutcome, WriteOutcome } from "../worker/ports.ts";
import type { LastMessage, PublishOutcome, Told } from "./core/jetstream.ts";

/** What became of a write that expected `expected` to be the last revision; undefined or 0 when it expected nothing. */
export function writeOutcome(outcome: PublishOutcome, expected?: number): WriteOutcome {
  switch (outcome.kind) {
    case "stored":
      return { kind: "stored", revision: outcome.sequence };
    case "conflict":
      return { kind: expected === undefined || expected === 0 ? "exists" : "conflict" };
    case "refused":
    case "unknown":
      return outcome;
    default:
      return unreachable(outcome);
  }
}

/** What became of a request whose answer carries no revision. */
export function toldOutcome(told: Told<unknown>): WriteOutcome {
  return told.kind === "told" ? { kind: "stored", revision: 0 } : { kind: "unknown", failure: told.failure };
}

/** What lies on a subject, read by `decode`. */
export function readOutcome<Read>(last: LastMessage, decode: (message: StoredMessage) => Read): Read | Extract<ReadOutcome<never>, { readonly kind: "absent" | "failed" }> {
  switch (last.kind) {
    case "found":
      return decode(last.message);
    case "absent":
    case "failed":
      return last;
    default:
      return unreachable(last);
  }
}
