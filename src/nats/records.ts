/** Records as they lie in STATE and in the archive, markers of removed ones included. */
import { decodeRecord } from "../protocol/record-codec.ts";
import type { StoredMessage } from "../protocol/message.ts";
import type { TimerRecord } from "../timer/record.ts";
import type { ReadOutcome } from "../worker/ports.ts";

/** The record in a message of STATE or TERMINALS. */
export function recordIn(message: StoredMessage): ReadOutcome<TimerRecord> {
  const revision = message.sequence;
  if (isMarker(message)) return { kind: "marker", revision };
  const decoded = decodeRecord(message.body);
  return decoded.ok ? { kind: "found", value: decoded.record, revision } : { kind: "unreadable", problem: decoded.problem, revision };
}

/** True for what a removal leaves behind: ours and that of any KV client, and the server's own when a message expires. */
export function isMarker({ headers }: StoredMessage): boolean {
  return headers.get(markerHeader) !== undefined || headers.get("Nats-Marker-Reason") !== undefined;
}

/** Set on removals of KV keys: PURGE or DEL. */
export const markerHeader = "KV-Operation";
