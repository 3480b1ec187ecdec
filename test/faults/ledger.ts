/**
 * What the outside knows of its timers: which starts were sent, acknowledged and refused, which resumes were taken, and which
 * feedback was answered. The account compares it with what NATS holds.
 *
 * L1 A start is entered before its first attempt: what nobody acknowledged may still be stored, and is no stranger then.
 * L2 Resumes that stay in their stream need not be entered; those that are acknowledged must be, before that.
 */
import type { TimerClient } from "../../src/client/client.ts";
import type { FeedbackTarget } from "../../src/client/feedback.ts";
import type { CommandOutcome } from "../../src/client/outcome.ts";
import { prepareStart, type StartRequest } from "../../src/client/start.ts";
import type { Resume } from "../../src/protocol/resume.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { payloadHash } from "../../src/timer/hashes.ts";
import { timerKey } from "../../src/timer/identity.ts";
import type { FeedbackVerb } from "../../src/timer/record.ts";

/** A start as its sender knows it. */
export type LedgerTimer = {
  readonly ref: string;
  readonly execution: string;
  readonly snapshotHash: string;
  readonly payloadHash: string;
  readonly wait: StartRequest["wait"];
  readonly maxRetries: number;
  readonly retryDelayMs: number;
  readonly firstSentAtMs: number;
  acknowledged: boolean;
  refusedCode?: string;
  /** Feedback that was answered `accepted` or `duplicate`. */
  readonly feedback: { readonly verb: FeedbackVerb; readonly generation: number; readonly code?: string }[];
};

/** One copy of a resume, without its body: that was held against its hash when it was read. */
export type ResumeCopy = {
  readonly ref: string;
  readonly generation: number;
  readonly fence: number;
  readonly payloadHash: string;
  readonly dueAtMs: number;
  readonly storedAtMs: number;
  /** Everything it says: copies of one generation say the same. */
  readonly text: string;
};

/** What one or several senders and takers know; safe to share between them. */
export class Ledger {
  readonly timers = new Map<string, LedgerTimer>();
  readonly resumes: ResumeCopy[] = [];

  /** Before each attempt to start. */
  sent(request: StartRequest): LedgerTimer {
    const { message, waiting } = prepareStart(request, { brokerPayloadBytesMax: undefined }, systemSha256);
    const known = this.timers.get(message.ref);
    if (known !== undefined) return known;
    const delayMs = "delayMs" in request.wait ? request.wait.delayMs : 0;
    const timer: LedgerTimer = {
      ref: message.ref, execution: request.execution, snapshotHash: waiting.snapshotHash, payloadHash: payloadHash(request.body, systemSha256),
      wait: request.wait, maxRetries: request.maxRetries ?? 0, retryDelayMs: request.retryWait?.delayMs ?? delayMs,
      firstSentAtMs: Date.now(), acknowledged: false, feedback: [],
    };
    this.timers.set(message.ref, timer);
    return timer;
  }

  /** A resume that was taken from its stream. */
  resumed(resume: Resume, storedAtMs: number): void {
    this.resumes.push(resumeCopy(resume, storedAtMs));
  }

  /** What a worker answered to feedback. */
  answered(verb: FeedbackVerb, target: FeedbackTarget, outcome: CommandOutcome | undefined): void {
    if (outcome?.kind !== "accepted" && outcome?.kind !== "duplicate") return;
    const { ref } = timerKey(target.lineage, systemSha256);
    this.timers.get(ref)?.feedback.push({ verb, generation: target.generation, ...(outcome.code === undefined ? {} : { code: outcome.code }) });
  }

  /** Starts a timer as a careful sender does: the same start again until the broker has it, or the signal ends that. */
  async start(client: TimerClient, request: StartRequest, options: { readonly awaitOutcome?: boolean; readonly signal?: AbortSignal } = {}): Promise<LedgerTimer> {
    const timer = this.sent(request);
    while (options.signal?.aborted !== true) {
      try {
        const { outcome } = await client.start(request, { awaitOutcome: options.awaitOutcome ?? false });
        timer.acknowledged = true;
        if (outcome?.kind === "rejected") timer.refusedCode = outcome.code;
        return timer;
      } catch {
        await new Promise((resolve) => { setTimeout(resolve, 100); });
      }
    }
    return timer;
  }
}

/** The copy of a resume that lies in its stream, or came from it. */
export function resumeCopy(resume: Resume, storedAtMs: number): ResumeCopy {
  const { lineage, generation, fence, snapshotHash, payloadHash: bodyHash, startedAtMs, dueAtMs, elapsedAtMs } = resume;
  const text = JSON.stringify({ lineage, generation, fence, snapshotHash, bodyHash, startedAtMs, dueAtMs, elapsedAtMs });
  return { ref: timerKey(lineage, systemSha256).ref, generation, fence, dueAtMs, payloadHash: bodyHash, storedAtMs, text };
}
