/** What a loop is made of, and what it holds: shared by the loop and by what settles its messages. */
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Sha256 } from "../base/sha256.ts";
import type { EpochMs, MonotonicMs } from "../base/units.ts";
import type { CommandLimits } from "../protocol/command.ts";
import type { Gate } from "./admission.ts";
import type { CorruptHolds } from "./corrupt-holds.ts";
import type { WorkerMetrics } from "./metrics.ts";
import type { Delivery, SourceName, WorkerPorts } from "./ports.ts";
import type { Work } from "./step.ts";

/** What a loop is made of. */
export type LoopOptions = {
  readonly name: SourceName;
  readonly ports: WorkerPorts;
  readonly clock: Clock;
  readonly sha256: Sha256;
  readonly log: Log;
  readonly metrics: WorkerMetrics;
  readonly limits: CommandLimits;
  readonly lookahead: number;
  /** What comes waits here while starts, or anything at all, may not be taken. */
  readonly gate?: Gate;
  /** Bounds what is held of corrupt timers' commands; without it all are. */
  readonly corruptHolds?: CorruptHolds;
};

/** A message in hand. */
export type InHand = {
  readonly delivery: Delivery;
  readonly key: Work["key"];
  readonly bytes: number;
  readonly replyTo?: string;
  readonly dueAtMs?: EpochMs;
  /** How often this loop has handed the message back already, as far as it remembers. */
  readonly handBackCount: number;
  work: Work;
  extendedAtMs: MonotonicMs;
};
