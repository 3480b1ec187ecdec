/**
 * Resumes: what a flow's owner receives when a timer is due. Context in the header, and in the body exactly the bytes
 * that came with the start. A redelivered or repeated resume of one generation is the same bytes with the same fence (I2).
 */
import { payloadHash } from "../timer/hashes.ts";
import type { Lineage } from "../timer/identity.ts";
import type { ContentHash, ElapsedRecord } from "../timer/record.ts";
import type { Sha256 } from "../base/sha256.ts";
import { isoFromEpochMs, type EpochMs } from "../base/units.ts";
import { instantMs, readContext, resumeContextSchema, writeContext } from "./context.ts";
import { isContextRepeated, lineageOf } from "./command.ts";
import type { StoredMessage } from "./message.ts";
import { headerNames } from "./names.ts";

/** A resume as its consumer sees it. */
export type Resume = {
  readonly lineage: Lineage;
  readonly generation: number;
  readonly fence: number;
  readonly snapshotHash: ContentHash;
  readonly payloadHash: ContentHash;
  readonly startedAtMs: EpochMs;
  readonly dueAtMs: EpochMs;
  readonly elapsedAtMs: EpochMs;
  readonly body: Uint8Array;
};

/** A resume, or what is wrong with the message. */
export type ResumeResult = { readonly ok: true; readonly resume: Resume } | { readonly ok: false; readonly problem: string };

/** The context header of the resume that an elapsed record owes. */
export function resumeContextHeader(record: ElapsedRecord): string {
  const { flow, execution, node, edges } = record.lineage;
  return writeContext({
    v: 1, flow, execution, node, edges,
    generation: record.generation, fence: record.fence, snapshotHash: record.snapshotHash, payloadHash: record.payloadHash,
    startedAt: isoFromEpochMs(record.startedAtMs), dueAt: isoFromEpochMs(record.dueAtMs), elapsedAt: isoFromEpochMs(record.elapsedAtMs),
  });
}

/** Reads a resume strictly: schema, and the body against its hash. Never throws. */
export function readResume(message: Pick<StoredMessage, "headers" | "body">, sha256: Sha256): ResumeResult {
  const header = message.headers.get(headerNames.context);
  if (header === undefined) return { ok: false, problem: `header ${headerNames.context} is missing` };
  if (isContextRepeated(message)) return { ok: false, problem: `header ${headerNames.context} occurs twice` };
  const read = readContext(header, resumeContextSchema);
  if (!read.ok) return { ok: false, problem: `${read.field} ${read.problem}` };
  const { context } = read;
  if (payloadHash(message.body, sha256) !== context.payloadHash) return { ok: false, problem: "payloadHash is not the SHA-256 of the body" };
  return {
    ok: true,
    resume: {
      lineage: lineageOf(context),
      generation: context.generation,
      fence: context.fence,
      snapshotHash: context.snapshotHash,
      payloadHash: context.payloadHash,
      startedAtMs: instantMs(context.startedAt),
      dueAtMs: instantMs(context.dueAt),
      elapsedAtMs: instantMs(context.elapsedAt),
      body: message.body,
    },
  };
}
