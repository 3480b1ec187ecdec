/** What a worker is told; the composition root maps the configuration in its environment to this. */
import { feedbackTimeoutMsDefault } from "../base/limits.ts";
import type { DurationMs } from "../base/units.ts";
import type { CommandLimits } from "../protocol/command.ts";
import type { FeedbackPolicy } from "../timer/decide-timeout.ts";

export type WorkerSettings = {
  /** Unique per process; names the holder of the sweep's lease. */
  readonly workerId: string;
  readonly limits: CommandLimits;
  /** Starts close at this usage of the fullest stream, in percent, and open again at the lower one. */
  readonly admission: { readonly closePercent: number; readonly reopenPercent: number };
  /** What becomes of resumes that nobody answers; a day, and only counted, when absent. */
  readonly feedback?: FeedbackPolicy;
  readonly sweep: { readonly intervalMs: DurationMs; readonly graceMs: DurationMs };
  /** When ended timers are collected; never when absent. */
  readonly retention?: RetentionSettings;
  /** Wakes and commands that one worker may hold unacknowledged, per loop. */
  readonly lookahead: number;
  /** Time for in-flight work after a signal to stop. */
  readonly shutdownGraceMs: DurationMs;
};

/** When ended timers go, and how long they are recognised after that. */
export type RetentionSettings = {
  /** An archived timer is collected when it was archived that long ago. */
  readonly archiveAgeMs: DurationMs;
  /** Its tombstone stays that long. */
  readonly dedupeMs: DurationMs;
  /** In the place of those in limits.ts, for whoever cannot wait so long. */
  readonly orphanAgeMs?: DurationMs;
  readonly intervalMs?: DurationMs;
  readonly snapshotWalkIntervalMs?: DurationMs;
};

/** Without a policy unanswered resumes are only counted. */
export const feedbackPolicyDefault: FeedbackPolicy = { timeoutMs: feedbackTimeoutMsDefault, onTimeout: "none" };
