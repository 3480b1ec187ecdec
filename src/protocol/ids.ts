/**
 * Message ids. They are a fast path only, within the broker's duplicate window: identity is the compare-and-set and
 * the fence. Schedules carry none: arming again inside the window would be swallowed, and no wake would ever come.
 */
import type { TimerKey } from "../timer/identity.ts";
import type { ContentHash, FeedbackVerb } from "../timer/record.ts";

const short = (hash: ContentHash): string => hash.slice("sha256:".length, "sha256:".length + 16);

/** Id of a start. */
export const startMessageId = (key: TimerKey, snapshotHash: ContentHash): string => `start:${key.ref}:${short(snapshotHash)}`;

/** Id of a retry, complete or fail. */
export const feedbackMessageId = (
  key: TimerKey,
  feedback: { readonly verb: FeedbackVerb; readonly generation: number; readonly fence: number; readonly receiptHash: ContentHash },
): string => `${feedback.verb}:${key.ref}:${String(feedback.generation)}:${String(feedback.fence)}:${short(feedback.receiptHash)}`;

/**
 * Id of a resume: the same for every copy of one generation. The one that is owed once more because no feedback came has
 * its own: the first may have been stored so late that its id would swallow the second.
 */
export const resumeMessageId = (key: TimerKey, at: { readonly generation: number; readonly fence: number; readonly resumedAgainAtMs?: number }): string =>
  `resume:${key.ref}:${String(at.generation)}:${String(at.fence)}${at.resumedAgainAtMs === undefined ? "" : ":again"}`;

/** Id of the archive record. */
export const terminalMessageId = (key: TimerKey): string => `terminal:${key.ref}`;
