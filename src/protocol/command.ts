/**
 * Commands: from a stored message to the domain's input, or to the code with which it is rejected.
 *
 * Checks here need no state: context, limits, and the hash of the message's own body. The domain checks the rest.
 */
import { payloadHash, receiptHash, snapshotHash } from "../timer/hashes.ts";
import type { Lineage } from "../timer/identity.ts";
import { timerKey, type TimerKey } from "../timer/identity.ts";
import type { FeedbackInput, StartInput, Wait } from "../timer/input.ts";
import type { FailureCause, FeedbackVerb } from "../timer/record.ts";
import { replySubjectBytesMax } from "../base/limits.ts";
import type { Sha256 } from "../base/sha256.ts";
import { epochMsFromNanos, type DurationMs } from "../base/units.ts";
import {
  failContextSchema, feedbackContextSchema, instantMs, readContext, startContextSchema,
  type FailContext, type FeedbackContext, type StartContext,
} from "./context.ts";
import type { StoredMessage } from "./message.ts";
import { commandSubjects, headerNames } from "./names.ts";

/** Configured limits of what a start may ask for. */
export type CommandLimits = {
  readonly payloadBytesMax: number;
  readonly delayMsMax: DurationMs;
  readonly retriesMax: number;
  /** Reply subjects must lie below this prefix. */
  readonly replyPrefix: string;
};

/** Codes of commands that are refused before the domain sees them. */
export type MalformedCode =
  | "context_missing"
  | "context_invalid"
  | "payload_hash_mismatch"
  | "payload_too_large"
  | "delay_too_long"
  | "retries_too_many"
  | "verb_unknown";

export type Command = {
  readonly ok: true;
  readonly key: TimerKey;
  readonly input: StartInput | FeedbackInput;
  /** The header as it arrived: a start's is kept in the snapshot. */
  readonly contextHeader: string;
  readonly body: Uint8Array;
  readonly replyTo?: string;
};

export type MalformedCommand = {
  readonly ok: false;
  readonly code: MalformedCode;
  /** Names the field and the remedy. */
  readonly problem: string;
  readonly contextHeader?: string;
  readonly replyTo?: string;
};

/** Reads a message of COMMANDS or FEEDBACK. Never throws, whatever the message holds. */
export function readCommand(message: StoredMessage, limits: CommandLimits, sha256: Sha256): Command | MalformedCommand {
  const contextHeader = message.headers.get(headerNames.context);
  const replyTo = readReplyTo(message, limits);
  const envelope = {
    ...(contextHeader === undefined ? {} : { contextHeader }),
    ...(replyTo === undefined ? {} : { replyTo }),
  };
  const malformed = (code: MalformedCode, problem: string): MalformedCommand => ({ ok: false, code, problem, ...envelope });
  if (contextHeader === undefined) return malformed("context_missing", `header ${headerNames.context} is missing`);
  const read = readInput(message, contextHeader, sha256);
  if (!read.ok) return malformed(read.code, read.problem);
  const { input, claimedPayloadHash } = read;
  if (message.body.length > limits.payloadBytesMax) {
    return malformed("payload_too_large", `body is ${String(message.body.length)} bytes; the limit is ${String(limits.payloadBytesMax)}`);
  }
  if (payloadHash(message.body, sha256) !== claimedPayloadHash) {
    return malformed("payload_hash_mismatch", "payloadHash is not the SHA-256 of this message's body");
  }
  const beyond = input.kind === "start" ? beyondLimits(input, limits) : undefined;
  if (beyond !== undefined) return malformed(beyond.code, beyond.problem);
  return { ok: true, key: timerKey(input.lineage, sha256), input, body: message.body, contextHeader, ...(replyTo === undefined ? {} : { replyTo }) };
}

/** Two readers of a message with two contexts could each take another one. */
export function isContextRepeated({ headers }: Pick<StoredMessage, "headers">): boolean {
  return headers.all(headerNames.context).length > 1;
}

/** The domain's input of a start context. Also used by publishers, to know their ref and hashes beforehand. */
export function startInput(context: StartContext, at: { readonly receivedAtNs: bigint; readonly payloadBytes: number }, sha256: Sha256): StartInput {
  const wait: Wait = "delayMs" in context.wait
    ? { kind: "delay", delayMs: context.wait.delayMs as DurationMs }
    : { kind: "due", dueAtMs: instantMs(context.wait.dueAt) };
  const meaning = {
    lineage: lineageOf(context),
    wait,
    maxRetries: context.maxRetries,
    ...retryDelay(context, wait),
    payloadHash: context.payloadHash,
  };
  return {
    kind: "start", ...meaning, payloadBytes: at.payloadBytes,
    snapshotHash: snapshotHash(meaning, sha256), receivedAtMs: epochMsFromNanos(at.receivedAtNs),
  };
}

/** The domain's input of a feedback context. */
export function feedbackInput(
  context: FeedbackContext | FailContext,
  at: { readonly verb: FeedbackVerb; readonly receivedAtNs: bigint },
  sha256: Sha256,
): FeedbackInput {
  const failure: FailureCause | undefined = "failure" in context ? context.failure : undefined;
  const hashed = {
    verb: at.verb,
    generation: context.generation,
    fence: context.fence,
    payloadHash: context.payloadHash,
    ...(failure === undefined ? {} : { failure }),
  };
  return {
    kind: "feedback",
    verb: at.verb,
    lineage: lineageOf(context),
    generation: context.generation,
    fence: context.fence,
    snapshotHash: context.snapshotHash,
    receiptHash: receiptHash(hashed, sha256),
    ...(failure === undefined ? {} : { failure }),
    receivedAtMs: epochMsFromNanos(at.receivedAtNs),
  };
}

/** A lineage without the optional keys that a schema leaves undefined. */
export function lineageOf(context: Pick<StartContext, "flow" | "execution" | "node" | "edges">): Lineage {
  const { flow, execution, node, edges } = context;
  const { start, elapsed, retry } = edges;
  return { flow: { id: flow.id, version: flow.version }, execution, node, edges: { start, elapsed, ...(retry === undefined ? {} : { retry }) } };
}

type ReadInput =
  | { readonly ok: true; readonly input: StartInput | FeedbackInput; readonly claimedPayloadHash: string }
  | { readonly ok: false; readonly code: MalformedCode; readonly problem: string };

function readInput(message: StoredMessage, header: string, sha256: Sha256): ReadInput {
  if (isContextRepeated(message)) return { ok: false, code: "context_invalid", problem: `header ${headerNames.context} occurs twice` };
  switch (message.subject) {
    case commandSubjects.start: {
      const read = readContext(header, startContextSchema);
      if (!read.ok) return invalid(read);
      const at = { receivedAtNs: message.timestampNs, payloadBytes: message.body.length };
      return { ok: true, input: startInput(read.context, at, sha256), claimedPayloadHash: read.context.payloadHash };
    }
    case commandSubjects.retry:
      return readFeedback(message, "retry", readContext(header, feedbackContextSchema), sha256);
    case commandSubjects.complete:
      return readFeedback(message, "complete", readContext(header, feedbackContextSchema), sha256);
    case commandSubjects.fail:
      return readFeedback(message, "fail", readContext(header, failContextSchema), sha256);
    default:
      return { ok: false, code: "verb_unknown", problem: "subject is not one of this contract's commands" };
  }
}

function readFeedback(
  message: StoredMessage,
  verb: FeedbackVerb,
  ...[read, sha256]: [ReturnType<typeof readContext<FeedbackContext | FailContext>>, Sha256]
): ReadInput {
  if (!read.ok) return invalid(read);
  const input = feedbackInput(read.context, { verb, receivedAtNs: message.timestampNs }, sha256);
  return { ok: true, input, claimedPayloadHash: read.context.payloadHash };
}

function invalid(read: { readonly field: string; readonly problem: string }): ReadInput {
  return { ok: false, code: "context_invalid", problem: `${read.field} ${read.problem}` };
}

function retryDelay(context: StartContext, wait: Wait): { readonly retryDelayMs?: DurationMs } {
  if (context.maxRetries === 0) return {};
  if (context.retryWait !== undefined) return { retryDelayMs: context.retryWait.delayMs as DurationMs };
  return wait.kind === "delay" ? { retryDelayMs: wait.delayMs } : {};
}

function beyondLimits(start: StartInput, limits: CommandLimits): { readonly code: MalformedCode; readonly problem: string } | undefined {
  if (start.maxRetries > limits.retriesMax) {
    return { code: "retries_too_many", problem: `maxRetries is ${String(start.maxRetries)}; the limit is ${String(limits.retriesMax)}` };
  }
  const delaysMs = [start.retryDelayMs ?? 0, start.wait.kind === "delay" ? start.wait.delayMs : start.wait.dueAtMs - start.receivedAtMs];
  const longestMs = Math.max(...delaysMs);
  if (longestMs <= limits.delayMsMax) return undefined;
  return { code: "delay_too_long", problem: `wait or retryWait lies ${String(longestMs)} ms ahead; the limit is ${String(limits.delayMsMax)} ms` };
}

/** A reply subject outside the prefix is dropped, not followed: the worker would publish there with its own rights. */
function readReplyTo(message: StoredMessage, limits: CommandLimits): string | undefined {
  const subject = message.headers.get(headerNames.replyTo);
  if (subject === undefined || subject.length > replySubjectBytesMax) return undefined;
  return subject.startsWith(`${limits.replyPrefix}.`) && literalSubject.test(subject) ? subject : undefined;
}

const literalSubject = /^[A-Za-z0-9_$~=-]+(?:\.[A-Za-z0-9_$~=-]+)*$/;
