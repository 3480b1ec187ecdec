/**
 * Watches the space that is left and says whether starts may be taken.
 *
 * It owns the cached usage and the decision made from it; it does not pause anything by itself. It asks more often the
 * faster the nearest limit comes closer. A look that takes long makes the last answer old, and an old answer is none.
 */
import type { Clock } from "../base/clock.ts";
import { admissionPollMsMax, admissionPollMsMin, admissionUsageAgeMsMax } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import type { DurationMs, MonotonicMs } from "../base/units.ts";
import { WaiterList } from "../concurrency/waiters.ts";
import { decideAdmission, initialAdmission, type AdmissionLimits, type AdmissionState } from "./admission-decide.ts";
import type { WorkerMetrics } from "./metrics.ts";
import type { CapacityProbe } from "./ports.ts";

/** What admission is made of. */
export type AdmissionOptions = {
  readonly capacity: CapacityProbe;
  readonly limits: AdmissionLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: WorkerMetrics;
};

/** Knows whether starts may be taken, and lets those who wait know. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #waiters = new WaiterList<true>();
  #state: AdmissionState = initialAdmission;
  #decidedAtMs: MonotonicMs;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#decidedAtMs = options.clock.monotonicMs();
  }

  /** True while starts may be taken. */
  isOpen(): boolean {
    return this.#state.isOpen && this.#options.clock.monotonicMs() - this.#decidedAtMs <= admissionUsageAgeMsMax;
  }

  /** Resolves once starts may be taken, or when `signal` aborts. */
  async waitOpen(signal: AbortSignal): Promise<void> {
    while (!this.isOpen() && !signal.aborted) await this.#waiters.wait(signal);
  }

  /** Looks and decides until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const before = this.#state;
      const sinceMs = (this.#options.clock.monotonicMs() - this.#decidedAtMs) as DurationMs;
      await this.#look();
      await this.#options.clock.sleep(pollMs({ before, now: this.#state, sinceMs, closePercent: this.#options.limits.closePercent }), signal);
    }
    this.#waiters.dismiss();
  }

  async #look(): Promise<void> {
    const { capacity, limits, clock } = this.#options;
    const beganAtMs = clock.monotonicMs();
    const usage = await capacity.usage();
    const before = this.#state;
    this.#state = decideAdmission(before, usage, limits);
    // The answer is as old as its question.
    this.#decidedAtMs = beganAtMs;
    this.#report(before);
    if (this.isOpen()) this.#letIn();
  }

  #letIn(): void {
    const waiting = this.#waiters.size;
    for (let index = 0; index < waiting; index += 1) this.#waiters.serve(true);
  }

  #report(before: AdmissionState): void {
    const { metrics, log } = this.#options;
    const { isOpen, reason, percent } = this.#state;
    metrics.admission({ isOpen, reason });
    metrics.usage(percent);
    if (before.isOpen === isOpen && before.reason === reason) return;
    const fields = { reason, ...(percent === undefined ? {} : { usedPercent: Math.round(percent) }) };
    if (isOpen) log.info(fields, "Opened admission of starts");
    else log.warn(fields, "Closed admission of starts");
  }
}

/** A quarter of the time in which the close limit would be reached at the present pace, within its bounds. */
export function pollMs(look: {
  readonly before: Pick<AdmissionState, "percent">;
  readonly now: Pick<AdmissionState, "percent" | "isOpen">;
  readonly sinceMs: DurationMs;
  readonly closePercent: number;
}): DurationMs {
  const { before, now, sinceMs, closePercent } = look;
  if (!now.isOpen || now.percent === undefined || before.percent === undefined) return regularPollMs;
  const percentPerMs = (now.percent - before.percent) / Math.max(1, sinceMs);
  if (percentPerMs <= 0) return admissionPollMsMax;
  const untilCloseMs = (closePercent - now.percent) / percentPerMs;
  return Math.min(admissionPollMsMax, Math.max(admissionPollMsMin, Math.floor(untilCloseMs / 4))) as DurationMs;
}

/** While closed or not yet known: often enough to notice freed space soon. */
const regularPollMs = 1_000 as DurationMs;
