/**
 * The control context: one header of strict JSON beside a body that is never looked into.
 *
 * These schemas are the contract; docs/protocol.md describes them for other languages and docs/protocol-vectors.json
 * pins their bytes. A context that is valid here maps to the domain's own types without further questions.
 */
import { z } from "zod";
import { utf8 } from "../base/bytes.ts";
import {
  contextBytesMax, contextDepthMax, contextKeyCountMax, counterMax, dueAtMsMax, failureCodeBytesMax, failureMessageBytesMax,
  flowVersionBytesMax, idBytesMax, lineageBytesMax,
} from "../base/limits.ts";
import { isoFromEpochMs, type EpochMs } from "../base/units.ts";
import { readBoundedJson, writeAsciiJson, type JsonValue } from "./bounded-json.ts";

const text = (bytesMax: number) =>
  z.string().min(1, "must not be empty").refine((value) => utf8(value).length <= bytesMax, { error: `must be at most ${String(bytesMax)} bytes of UTF-8` });
const counter = z.int().min(0).max(counterMax);
const contentHash = z.templateLiteral(["sha256:", z.string().regex(/^[0-9a-f]{64}$/)], { error: "must be sha256: and 64 lower-case hexadecimal characters" });
const delay = z.strictObject({ delayMs: z.int().min(0) });

/** An instant as RFC 3339 in UTC with exactly three decimals: one spelling for one instant. */
const instant = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, "must look like 2027-01-01T00:00:00.000Z")
  .refine((value) => isRealInstant(value), { error: "must be a real instant from 1970 on and before 2262" });

const lineageShape = {
  flow: z.strictObject({ id: text(idBytesMax), version: text(flowVersionBytesMax) }),
  execution: text(idBytesMax),
  node: text(idBytesMax),
  edges: z.strictObject({ start: text(idBytesMax), elapsed: text(idBytesMax), retry: text(idBytesMax).optional() }),
};

/**
 * Ids are bounded one by one, and once more together in their escaped form: a start whose lineage filled the header
 * would be accepted and then have neither a resume nor feedback that fits.
 */
const hasRoomForLineage = (context: { readonly flow: unknown; readonly execution: string; readonly node: string; readonly edges: unknown }): boolean => {
  const { flow, execution, node, edges } = context;
  return writeAsciiJson({ flow, execution, node, edges } as JsonValue).length <= lineageBytesMax;
};
const lineageTooLong = { path: ["flow"], error: `and execution, node and edges together must be at most ${String(lineageBytesMax)} bytes of JSON` };

const version = z.literal(1, { error: "must be 1, the only version of this contract" });

/** Context of a start. */
export const startContextSchema = z
  .strictObject({
    v: version,
    ...lineageShape,
    wait: z.union([delay, z.strictObject({ dueAt: instant })], { error: "must be {\"delayMs\": integer >= 0} or {\"dueAt\": instant}" }),
    maxRetries: counter,
    retryWait: delay.optional(),
    payloadHash: contentHash,
  })
  .refine(hasRoomForLineage, lineageTooLong)
  .refine((start) => start.maxRetries === 0 || start.edges.retry !== undefined, { path: ["edges", "retry"], error: "is required when maxRetries is above 0" })
  .refine((start) => start.maxRetries === 0 || start.retryWait !== undefined || "delayMs" in start.wait, {
    path: ["retryWait"], error: "is required when wait has a dueAt and maxRetries is above 0",
  });

const feedbackShape = { v: version, ...lineageShape, generation: counter, fence: counter, snapshotHash: contentHash, payloadHash: contentHash };

/** Context of a retry or complete. */
export const feedbackContextSchema = z.strictObject(feedbackShape);

/** Context of a fail. */
export const failContextSchema = z.strictObject({
  ...feedbackShape,
  failure: z.strictObject({ code: text(failureCodeBytesMax), message: z.string().refine((value) => utf8(value).length <= failureMessageBytesMax, { error: `must be at most ${String(failureMessageBytesMax)} bytes of UTF-8` }) }),
});

/** Context of a resume. */
export const resumeContextSchema = z.strictObject({ ...feedbackShape, startedAt: instant, dueAt: instant, elapsedAt: instant });

/** A valid start context. */
export type StartContext = z.infer<typeof startContextSchema>;
/** A valid retry or complete context. */
export type FeedbackContext = z.infer<typeof feedbackContextSchema>;
/** A valid fail context. */
export type FailContext = z.infer<typeof failContextSchema>;
/** A valid resume context. */
export type ResumeContext = z.infer<typeof resumeContextSchema>;

/** A context, or the field that is wrong and what it should be. */
export type ContextResult<T> = { readonly ok: true; readonly context: T } | { readonly ok: false; readonly field: string; readonly problem: string };

/** Reads a context header. Never throws, whatever the header holds. */
export function readContext<T>(header: string, schema: z.ZodType<T>): ContextResult<T> {
  if (header.length > contextBytesMax) return { ok: false, field: "context", problem: `is longer than ${String(contextBytesMax)} bytes` };
  const json = readBoundedJson(header, { depthMax: contextDepthMax, keyCountMax: contextKeyCountMax });
  if (!json.ok) return { ok: false, field: json.path === "" ? "context" : json.path, problem: json.problem };
  const parsed = schema.safeParse(json.value);
  if (parsed.success) return { ok: true, context: parsed.data };
  return describeIssue(parsed.error.issues[0]);
}

function describeIssue(issue: z.core.$ZodIssue | undefined): ContextResult<never> {
  if (issue === undefined) return { ok: false, field: "context", problem: "is invalid" };
  const unknownKey = issue.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
  const field = [...issue.path, ...unknownKey].map(String).join(".");
  return { ok: false, field: field === "" ? "context" : field, problem: unknownKey.length > 0 ? "is not a field of this message" : issue.message };
}

/** The header text of a context; fails only for contexts beyond the size limit, which callers check before. */
export function writeContext(context: StartContext | FeedbackContext | FailContext | ResumeContext): string {
  return writeAsciiJson(context as unknown as JsonValue);
}

/** The instant that an `instant` field spells. */
export function instantMs(value: string): EpochMs {
  return Date.parse(value) as EpochMs;
}

function isRealInstant(value: string): boolean {
  const ms = Date.parse(value);
  return Number.isInteger(ms) && ms >= 0 && ms <= dueAtMsMax && isoFromEpochMs(ms as EpochMs) === value;
}
