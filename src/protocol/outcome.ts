/**
 * The outcome of a command, sent as a core message to the reply subject that the command named. It is a courtesy: it
 * may be lost, and a sender that needs certainty sends the command again and is answered `duplicate`.
 */
import { z } from "zod";
import { utf8 } from "../base/bytes.ts";
import { isoFromEpochMs } from "../base/units.ts";
import type { Answer } from "../timer/decision.ts";
import { maxRetriesExceeded } from "../timer/decide-feedback.ts";
import type { TimerKey } from "../timer/identity.ts";
import type { MalformedCode } from "./command.ts";

/** Readers accept further fields and unknown codes: outcomes may say more in later versions. */
export const outcomeSchema = z.object({
  v: z.literal(1),
  outcome: z.enum(["accepted", "duplicate", "rejected"]),
  code: z.string().optional(),
  ref: z.string().optional(),
  generation: z.int().optional(),
  fence: z.int().optional(),
  dueAt: z.string().optional(),
  /** `waiting`, `elapsed`, `completed` or `failed`: where the timer stands. */
  state: z.string().optional(),
  /** For rejected commands, the field and the remedy. */
  problem: z.string().optional(),
});

/** What became of a command, as it travels. */
export type Outcome = z.infer<typeof outcomeSchema>;

/** What a sender is told of a decided command. */
export function outcomeOf(key: TimerKey, answer: Answer): Outcome {
  const { record } = answer;
  const code = answer.outcome === "rejected" ? answer.code : overLimitCode(answer);
  const known = record === undefined ? {} : {
    generation: record.generation,
    fence: record.fence,
    dueAt: isoFromEpochMs(record.dueAtMs),
    state: record.phase === "terminal" || record.phase === "collected" ? record.outcome : record.phase,
  };
  return { v: 1, outcome: answer.outcome, ...(code === undefined ? {} : { code }), ref: key.ref, ...known };
}

/** What a sender is told of a command that could not be read. */
export function outcomeOfMalformed(code: MalformedCode, problem: string): Outcome {
  return { v: 1, outcome: "rejected", code, problem };
}

/** The body of an outcome message. */
export function encodeOutcome(outcome: Outcome): Uint8Array<ArrayBuffer> {
  return utf8(JSON.stringify(outcome));
}

/** Reads an outcome; undefined when it is none. */
export function decodeOutcome(bytes: Uint8Array): Outcome | undefined {
  try {
    const parsed = outcomeSchema.safeParse(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

/** A retry beyond the limit is accepted, since it ended the timer; the code says how. */
function overLimitCode(answer: Extract<Answer, { record: unknown }>): string | undefined {
  const { record } = answer;
  if (record?.phase !== "terminal" || record.receipt?.verb !== "retry") return undefined;
  return record.failure?.code === maxRetriesExceeded ? maxRetriesExceeded : undefined;
}
