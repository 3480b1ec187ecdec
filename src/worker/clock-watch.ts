/**
 * Compares clocks now and then, and warns when they are apart. Nothing is decided by it: due times are judged by the
 * broker's clock alone. But a start is stamped by the leader of COMMANDS and its wake judged by the leader of SCHEDULES,
 * so leaders that are apart make delays longer or shorter by as much, and logs of machines that are apart mislead.
 *
 * W1 A difference counts only as far as it is certain: half of a question's round trip may lie before or after its answer.
 * W2 The same warning is not repeated within `clockWarningIntervalMs`.
 */
import type { Clock } from "../base/clock.ts";
import { clockSkewMsMax, clockWarningIntervalMs, clockWatchIntervalMs } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import type { DurationMs, MonotonicMs } from "../base/units.ts";
import type { WorkerMetrics } from "./metrics.ts";

/** One server's clock against this machine's: how far ahead it is, give or take `errorMs`. */
export type ClockReading = { readonly server: string; readonly aheadMs: number; readonly errorMs: number };

/** Asks the servers that lead our streams for their clocks; those that do not answer are left out. Never rejects. */
export interface ClockProbe {
  read(): Promise<readonly ClockReading[]>;
}

/** What is certain about clocks: each at least this far apart, in milliseconds. */
export type ClockSkew = {
  /** How far the brokers' clocks are from this machine's, with the sign of the furthest; positive when they are ahead. */
  readonly workerMs: DurationMs;
  /** How far two leaders are from each other. */
  readonly leadersMs: DurationMs;
};

/** What readings prove; undefined without any. */
export function skewOf(readings: readonly ClockReading[]): ClockSkew | undefined {
  if (readings.length === 0) return undefined;
  const certain = readings.map(({ aheadMs, errorMs }) => Math.sign(aheadMs) * Math.max(0, Math.abs(aheadMs) - errorMs));
  const workerMs = certain.reduce((furthest, ms) => (Math.abs(ms) > Math.abs(furthest) ? ms : furthest), 0);
  const lowest = Math.min(...readings.map(({ aheadMs, errorMs }) => aheadMs + errorMs));
  const highest = Math.max(...readings.map(({ aheadMs, errorMs }) => aheadMs - errorMs));
  return { workerMs: workerMs as DurationMs, leadersMs: Math.max(0, highest - lowest) as DurationMs };
}

/** What a watch is made of. */
export type ClockWatchOptions = { readonly probe: ClockProbe; readonly clock: Clock; readonly log: Log; readonly metrics: Pick<WorkerMetrics, "clockSkew"> };

/** Looks at the clocks until it is told to stop. */
export class ClockWatch {
  readonly #options: ClockWatchOptions;
  readonly #warnedAtMs = new Map<string, MonotonicMs>();

  constructor(options: ClockWatchOptions) {
    this.#options = options;
  }

  /** Runs until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#judge(await this.#options.probe.read());
      await this.#options.clock.sleep(clockWatchIntervalMs, signal);
    }
  }

  #judge(readings: readonly ClockReading[]): void {
    const skew = skewOf(readings);
    if (skew === undefined) return;
    this.#options.metrics.clockSkew(skew);
    const fields = { workerSkewMs: Math.round(skew.workerMs), leaderSkewMs: Math.round(skew.leadersMs), servers: readings.map(({ server }) => server), skewMsMax: clockSkewMsMax };
    if (Math.abs(skew.workerMs) > clockSkewMsMax) this.#warn(fields, "Found the clock of this machine apart from the broker's");
    if (skew.leadersMs > clockSkewMsMax) this.#warn(fields, "Found the clocks of leading servers apart");
  }

  #warn(fields: Readonly<Record<string, unknown>>, message: string): void {
    const nowMs = this.#options.clock.monotonicMs();
    const before = this.#warnedAtMs.get(message);
    if (before !== undefined && nowMs - before < clockWarningIntervalMs) return;
    this.#warnedAtMs.set(message, nowMs);
    this.#options.log.warn(fields, message);
  }
}
