/** What can happen to a timer: the closed list of inputs to `decide`. */
import type { DurationMs, EpochMs } from "../base/units.ts";
import type { Lineage } from "./identity.ts";
import type { ContentHash, FailureCause, FeedbackVerb } from "./record.ts";

export type Wait =
  | { readonly kind: "delay"; readonly delayMs: DurationMs }
  | { readonly kind: "due"; readonly dueAtMs: EpochMs };

export type StartInput = {
  readonly kind: "start";
  readonly lineage: Lineage;
  readonly wait: Wait;
  readonly maxRetries: number;
  /** Wait of retried generations with its default applied; absent when maxRetries is 0. */
  readonly retryDelayMs?: DurationMs;
  readonly payloadHash: ContentHash;
  readonly payloadBytes: number;
  readonly snapshotHash: ContentHash;
  /** JetStream timestamp of the command: a redelivered command gives the same due time. */
  readonly receivedAtMs: EpochMs;
};

export type FeedbackInput = {
  readonly kind: "feedback";
  readonly verb: FeedbackVerb;
  readonly lineage: Lineage;
  readonly generation: number;
  readonly fence: number;
  readonly snapshotHash: ContentHash;
  readonly receiptHash: ContentHash;
  /** Present exactly when the verb is fail. */
  readonly failure?: FailureCause;
  readonly receivedAtMs: EpochMs;
};

export type WakeInput = { readonly kind: "wake"; readonly generation: number; readonly fence: number };

export type TimerInput = StartInput | FeedbackInput | WakeInput;
