/**
 * The stored form of a state record: compact JSON with a version, written with keys in one fixed order, so that equal
 * records have equal bytes and the archive can be compared byte for byte (I6).
 *
 * A reader accepts unknown keys of its own version: N-1 meets N's records during an upgrade. A record of a newer
 * version, or one that does not parse, is reported as such and set aside by the caller, never guessed at.
 */
import { z } from "zod";
import { utf8 } from "../base/bytes.ts";
import { dueAtMsMax } from "../base/limits.ts";
import { unreachable } from "../base/assert.ts";
import type { TimerRecord } from "../timer/record.ts";
import type { JsonValue } from "./bounded-json.ts";

const recordVersion = 1;

const counter = z.int().min(0);
/** What lies beyond has no spelling on the wire: a record with such an instant could be read and never carried on. */
const epochMs = z.int().min(0).max(dueAtMsMax);
const hash = z.templateLiteral(["sha256:", z.string()]);
const base = {
  v: z.literal(recordVersion),
  lineage: z.object({
    flow: z.object({ id: z.string(), version: z.string() }),
    execution: z.string(),
    node: z.string(),
    edges: z.object({ start: z.string(), elapsed: z.string(), retry: z.string().exactOptional() }),
  }),
  snapshotHash: hash,
  payloadHash: hash,
  payloadBytes: counter,
  maxRetries: counter,
  retryDelayMs: z.int().min(0).exactOptional(),
  startedAtMs: epochMs,
  dueAtMs: epochMs,
  generation: counter,
  fence: counter.min(1),
  receipt: z.object({ verb: z.enum(["retry", "complete", "fail"]), generation: counter, fence: counter, hash }).exactOptional(),
};

const recordSchema = z.discriminatedUnion("phase", [
  z.object({ ...base, phase: z.literal("waiting") }),
  z.object({ ...base, phase: z.literal("elapsed"), armedFence: counter, elapsedAtMs: epochMs, resumedAgainAtMs: epochMs.exactOptional() }),
  z.object({
    ...base,
    phase: z.literal("terminal"),
    outcome: z.enum(["completed", "failed"]),
    failure: z.object({ code: z.string(), message: z.string() }).exactOptional(),
    endedAtMs: epochMs,
    elapsedAtMs: epochMs.exactOptional(),
  }),
]);

/** A record, or what keeps it from being read. */
export type RecordResult =
  | { readonly ok: true; readonly record: TimerRecord }
  | { readonly ok: false; readonly problem: string };

/** The bytes of a record, the same each time. */
export function encodeRecord(record: TimerRecord): Uint8Array<ArrayBuffer> {
  const { lineage, receipt } = record;
  const ordered: Record<string, JsonValue | undefined> = {
    v: recordVersion,
    phase: record.phase,
    lineage: {
      flow: { id: lineage.flow.id, version: lineage.flow.version },
      execution: lineage.execution,
      node: lineage.node,
      edges: { start: lineage.edges.start, elapsed: lineage.edges.elapsed, ...(lineage.edges.retry === undefined ? {} : { retry: lineage.edges.retry }) },
    },
    snapshotHash: record.snapshotHash,
    payloadHash: record.payloadHash,
    payloadBytes: record.payloadBytes,
    maxRetries: record.maxRetries,
    retryDelayMs: record.retryDelayMs,
    startedAtMs: record.startedAtMs,
    dueAtMs: record.dueAtMs,
    generation: record.generation,
    fence: record.fence,
    receipt: receipt === undefined ? undefined : { verb: receipt.verb, generation: receipt.generation, fence: receipt.fence, hash: receipt.hash },
    ...phaseFields(record),
  };
  return utf8(JSON.stringify(ordered));
}

/** Reads a stored record. Never throws. */
export function decodeRecord(bytes: Uint8Array): RecordResult {
  try {
    const parsed = recordSchema.safeParse(JSON.parse(decoder.decode(bytes)));
    // The schema yields the domain's type but for brands on numbers, which have no run-time form.
    if (parsed.success) return { ok: true, record: withoutVersion(parsed.data) as unknown as TimerRecord };
    const issue = parsed.error.issues[0];
    return { ok: false, problem: `${(issue?.path ?? []).map(String).join(".")} ${issue?.message ?? ""}`.trim() };
  } catch {
    return { ok: false, problem: "is not JSON in UTF-8" };
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true });

function withoutVersion<T extends { readonly v: unknown }>(stored: T): Omit<T, "v"> {
  const { v: _, ...record } = stored;
  return record;
}

function phaseFields(record: TimerRecord): Record<string, JsonValue | undefined> {
  switch (record.phase) {
    case "waiting":
      return {};
    case "elapsed":
      return { armedFence: record.armedFence, elapsedAtMs: record.elapsedAtMs, resumedAgainAtMs: record.resumedAgainAtMs };
    case "terminal":
      return {
        outcome: record.outcome,
        failure: record.failure === undefined ? undefined : { code: record.failure.code, message: record.failure.message },
        endedAtMs: record.endedAtMs,
        elapsedAtMs: record.elapsedAtMs,
      };
    default:
      return unreachable(record);
  }
}
