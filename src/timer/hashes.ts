/**
 * The hashes of the contract. All are SHA-256 over length-prefixed text, so that they cover meaning: two spellings of
 * the same start have one snapshot hash, and no field can run into its neighbour.
 */
import { hex, lengthPrefixed } from "../base/bytes.ts";
import type { Sha256 } from "../base/sha256.ts";
import { isoFromEpochMs } from "../base/units.ts";
import type { StartInput } from "./input.ts";
import { lineageParts } from "./identity.ts";
import type { ContentHash, FailureCause, FeedbackVerb } from "./record.ts";

/** Hash of a message's own body. */
export function payloadHash(body: Uint8Array, sha256: Sha256): ContentHash {
  return `sha256:${hex(sha256(body))}`;
}

/** Hash over a start's meaning: lineage with edges, wait, retries, retry wait and payload hash. */
export function snapshotHash(start: Pick<StartInput, "lineage" | "wait" | "maxRetries" | "retryDelayMs" | "payloadHash">, sha256: Sha256): ContentHash {
  const wait = start.wait.kind === "delay" ? `delay:${String(start.wait.delayMs)}` : `due:${isoFromEpochMs(start.wait.dueAtMs)}`;
  const retryWait = start.retryDelayMs === undefined ? "" : `delay:${String(start.retryDelayMs)}`;
  const parts = [...lineageParts(start.lineage), wait, String(start.maxRetries), retryWait, start.payloadHash];
  return `sha256:${hex(sha256(lengthPrefixed(parts)))}`;
}

/** Hash that recognises the second copy of a feedback. */
export function receiptHash(
  feedback: {
    readonly verb: FeedbackVerb;
    readonly generation: number;
    readonly fence: number;
    readonly payloadHash: ContentHash;
    readonly failure?: FailureCause;
  },
  sha256: Sha256,
): ContentHash {
  const { verb, generation, fence, failure } = feedback;
  const parts = [verb, String(generation), String(fence), feedback.payloadHash];
  if (failure !== undefined) parts.push(failure.code, failure.message);
  return `sha256:${hex(sha256(lengthPrefixed(parts)))}`;
}
