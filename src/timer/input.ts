/** What can happen to a timer: the closed list of inputs to `decide`. */
import type { DurationMs, EpochMs } from "../base/units.ts";
import type { Lineage } from "./identity.ts";
import type { ContentHash, FailureCause, FeedbackVerb } from "./record.ts";

/** For how long, or until when; instants are on the broker's clock. */
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

/** A fired schedule, with the generation and fence that armed it. */
export type WakeInput = { readonly kind: "wake"; readonly generation: number; readonly fence: number };

/** Anything that can happen to a timer. */
export type TimerInput = StartInput | FeedbackInput | WakeInput;
