/** Records and inputs for tests: one timer, in each phase, with what a row wants different. */
import { createHash } from "node:crypto";
import type { Sha256 } from "../../src/base/sha256.ts";
import type { DurationMs, EpochMs } from "../../src/base/units.ts";
import type { Lineage } from "../../src/timer/identity.ts";
import type { FeedbackInput, StartInput, WakeInput } from "../../src/timer/input.ts";
import type { ContentHash, ElapsedRecord, Receipt, TerminalRecord, WaitingRecord } from "../../src/timer/record.ts";
import type { Tombstone } from "../../src/timer/tombstone.ts";

export const sha256: Sha256 = (bytes) => createHash("sha256").update(bytes).digest();

export const at = (ms: number): EpochMs => (1_800_000_000_000 + ms) as EpochMs;
export const hash = (digit: string): ContentHash => `sha256:${digit.repeat(64)}`;

export const lineage: Lineage = {
  flow: { id: "orders", version: "12" }, execution: "ex-1", node: "wait-3d", edges: { start: "e1", elapsed: "e2", retry: "e3" },
};

const base = {
  lineage, snapshotHash: hash("a"), payloadHash: hash("b"), payloadBytes: 5, maxRetries: 2, retryDelayMs: 60_000 as DurationMs,
  startedAtMs: at(0), dueAtMs: at(1_000), generation: 0,
};

export const receipt = (over: Partial<Receipt> = {}): Receipt => ({ verb: "retry", generation: 0, fence: 2, hash: hash("c"), ...over });

export const waiting = (over: Partial<WaitingRecord> = {}): WaitingRecord => ({ ...base, phase: "waiting", fence: 1, ...over });
export const elapsed = (over: Partial<ElapsedRecord> = {}): ElapsedRecord => ({
  ...base, phase: "elapsed", fence: 2, armedFence: 1, elapsedAtMs: at(1_000), ...over,
});
export const terminal = (over: Partial<TerminalRecord> = {}): TerminalRecord => ({
  ...base, phase: "terminal", outcome: "completed", fence: 3, endedAtMs: at(2_000), elapsedAtMs: at(1_000),
  receipt: receipt({ verb: "complete" }), ...over,
});

export const tombstone = (over: Partial<Tombstone> = {}): Tombstone => ({
  phase: "collected", snapshotHash: hash("a"), outcome: "completed", generation: 0, fence: 3, dueAtMs: at(1_000), endedAtMs: at(2_000), ...over,
});

export const start = (over: Partial<StartInput> = {}): StartInput => ({
  kind: "start", lineage, wait: { kind: "delay", delayMs: 1_000 as DurationMs }, maxRetries: 2, retryDelayMs: 60_000 as DurationMs,
  payloadHash: hash("b"), payloadBytes: 5, snapshotHash: hash("a"), receivedAtMs: at(0), ...over,
});
export const wake = (over: Partial<WakeInput> = {}): WakeInput => ({ kind: "wake", generation: 0, fence: 1, ...over });
export const feedback = (over: Partial<FeedbackInput> = {}): FeedbackInput => ({
  kind: "feedback", verb: "complete", lineage, generation: 0, fence: 2, snapshotHash: hash("a"), receiptHash: hash("c"), receivedAtMs: at(2_000), ...over,
});
export const fail = (over: Partial<FeedbackInput> = {}): FeedbackInput => feedback({ verb: "fail", failure: { code: "gone", message: "no longer needed" }, ...over });
