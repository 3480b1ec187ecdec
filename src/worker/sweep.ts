/**
 * Decides when to sweep, sees that one worker does it, and keeps the summary.
 *
 * A sweep is wanted at start-up, at the interval, and when SCHEDULES is no longer what it was: another server at one
 * replica, another incarnation, a sequence that went back. A sweep of any worker that began after it was wanted will
 * do; so many workers write no more than one.
 *
 * W1 Between two sweeps nothing is written (I15): triggers and the state of the lease are read.
 * W2 A break is forgotten only by a summary that is written after everything it owed was published.
 */
import { unreachable } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { Failure, failureIn } from "../base/failure.ts";
import { sweepObserveMs, sweepRetryMsMin, sweepTickMs } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Sha256 } from "../base/sha256.ts";
import type { DurationMs, EpochMs, MonotonicMs } from "../base/units.ts";
import { backoffMs } from "../concurrency/backoff.ts";
import { WaiterList } from "../concurrency/waiters.ts";
import { leaseKeys } from "../protocol/names.ts";
import type { FeedbackPolicy } from "../timer/decide-timeout.ts";
import type { SweepResult, WorkerMetrics } from "./metrics.ts";
import type { StreamIdentity, WorkerPorts } from "./ports.ts";
import { feedbackPolicyDefault, type WorkerSettings } from "./settings.ts";
import { SweepLease } from "./sweep-lease.ts";
import { brokerNowMs, sweepOnce, type PassResult } from "./sweep-pass.ts";
import { decodeSummary, encodeSummary, isSameLife, type SweepSummary } from "./sweep-summary.ts";

export type SweeperOptions = {
  readonly ports: Pick<WorkerPorts, "state" | "snapshots" | "schedules" | "resumes" | "archive" | "clock" | "walk" | "notes" | "topology">;
  readonly clock: Clock;
  readonly random: Random;
  readonly sha256: Sha256;
  readonly log: Log;
  readonly metrics: WorkerMetrics;
  /** Unique per process. */
  readonly workerId: string;
  readonly settings: WorkerSettings["sweep"];
  /** Without one, unanswered timers are only counted. */
  readonly feedback?: FeedbackPolicy | undefined;
};

type Reason = "start_up" | "interval" | "break" | "retry";

/** A sweep that began at `sinceMs` of the broker's clock or later will do. */
type Want = { readonly reason: Reason; readonly sinceMs: EpochMs; isCounted: boolean };

type StoredSummary = { readonly revision: number; readonly summary?: SweepSummary };

/** Sweeps at start-up, at its interval, and when asked. */
export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #lease: SweepLease;
  readonly #kicks = new WaiterList<true>();
  #want: Want | undefined;
  #next: { readonly reason: Reason; readonly atMs: MonotonicMs };
  /** SCHEDULES as it is now; undefined while the broker or the topology is not there. */
  #schedules: StreamIdentity | undefined;
  #observedAtMs: MonotonicMs | undefined;
  #lastSchedules: StreamIdentity | undefined;
  #failureCount = 0;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#lease = new SweepLease({ notes: options.ports.notes, clock: options.clock, workerId: options.workerId });
    this.#next = { reason: "start_up", atMs: options.clock.monotonicMs() };
  }

  /** The broker was reached again: look at once whether it still holds what it held. */
  request(_reason: "reconnected"): void {
    this.#observedAtMs = undefined;
    this.#kicks.serve(true);
  }

  /** Sweeps whenever it is wanted, until `signal` aborts. Rejects only for a bug. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#turn(signal);
      } catch (error) {
        if (failureIn(error) === undefined) throw error;
        this.#options.log.debug({ err: error }, "Postponed a sweep");
      }
      await this.#pause(signal);
    }
  }

  async #turn(signal: AbortSignal): Promise<void> {
    await this.#observe();
    const { clock, settings } = this.#options;
    if (this.#want === undefined && clock.monotonicMs() >= this.#next.atMs) {
      const nowMs = await brokerNowMs(this.#options.ports.clock);
      const { reason } = this.#next;
      this.#want = { reason, isCounted: false, sinceMs: (reason === "interval" ? Math.max(0, nowMs - settings.intervalMs) : nowMs) as EpochMs };
    }
    if (this.#want !== undefined && this.#schedules !== undefined) await this.#satisfy(this.#want, signal);
  }

  /** Looks whether SCHEDULES is still what it was. */
  async #observe(): Promise<void> {
    const { clock, ports } = this.#options;
    const isDue = this.#want !== undefined || this.#observedAtMs === undefined || clock.monotonicMs() - this.#observedAtMs >= sweepObserveMs;
    if (!isDue) return;
    const finding = await ports.topology.check();
    if (finding.kind !== "usable") {
      this.#schedules = undefined;
      return;
    }
    this.#observedAtMs = clock.monotonicMs();
    const before = this.#lastSchedules;
    this.#schedules = finding.schedules;
    this.#lastSchedules = finding.schedules;
    if (before === undefined || isSameLife(before, finding.schedules)) return;
    this.#options.log.warn({ before, now: finding.schedules }, "Found the schedules stream begun anew or gone back");
    this.#want = { reason: "break", isCounted: false, sinceMs: await brokerNowMs(ports.clock) };
  }

  async #satisfy(want: Want, signal: AbortSignal): Promise<void> {
    if (this.#isSatisfied(want, await this.#readSummary())) return;
    const beganAtMs = await brokerNowMs(this.#options.ports.clock);
    const attempt = await this.#lease.take();
    if (attempt !== "taken") {
      if (attempt === "held" && !want.isCounted) this.#options.metrics.swept("held_by_another", 0 as DurationMs);
      want.isCounted = true;
      return;
    }
    try {
      // Another worker may have finished between the look and the lease.
      const stored = await this.#readSummary();
      if (!this.#isSatisfied(want, stored)) await this.#sweep(want, stored, { beganAtMs, signal });
    } finally {
      await this.#lease.release();
    }
  }

  /** True when the stored summary is that of a sweep which will do; plans the next one after it. */
  #isSatisfied(want: Want, { summary }: StoredSummary): boolean {
    if (summary === undefined || this.#schedules === undefined) return false;
    if (summary.beganAtMs < want.sinceMs || summary.owedSinceMs !== undefined || !isSameLife(summary.schedules, this.#schedules)) return false;
    this.#options.metrics.timers(summary);
    const ageMs = Math.max(0, (this.#options.ports.clock.lowerBoundMs() ?? summary.beganAtMs) - summary.beganAtMs);
    this.#want = undefined;
    this.#failureCount = 0;
    this.#plan("interval", this.#options.settings.intervalMs - ageMs);
    return true;
  }

  async #sweep(want: Want, stored: StoredSummary, { beganAtMs, signal }: { readonly beganAtMs: EpochMs; readonly signal: AbortSignal }): Promise<void> {
    const { clock, settings, feedback = feedbackPolicyDefault, metrics } = this.#options;
    const schedules = this.#schedules;
    if (schedules === undefined) return;
    const startedAtMs = clock.monotonicMs();
    const result = await sweepOnce(this.#options, {
      ...(stored.summary === undefined ? {} : { previous: stored.summary }),
      schedules, beganAtMs, signal, ...settings, feedback, keepLease: () => this.#lease.extend(),
    });
    const ended = await this.#conclude(result, stored.revision);
    const durationMs = (clock.monotonicMs() - startedAtMs) as DurationMs;
    metrics.swept(ended, durationMs);
    this.#report({ reason: want.reason, ended, result, durationMs });
    this.#planAfter(ended);
  }

  async #conclude(result: PassResult, revision: number): Promise<SweepResult> {
    if (result.kind !== "walked") return result.kind;
    const { summary, tally } = result;
    const outcome = await this.#options.ports.notes.write({ name: leaseKeys.sweepSummary, text: encodeSummary(summary), expected: revision });
    this.#options.metrics.timers(summary);
    return outcome.kind === "stored" && tally.failedCount() === 0 ? "completed" : "incomplete";
  }

  #planAfter(ended: SweepResult): void {
    const { random, settings } = this.#options;
    // Whoever took the lease over sweeps now; the want stands until its summary shows that it did.
    if (ended === "interrupted") return;
    this.#want = undefined;
    if (ended === "completed") {
      this.#failureCount = 0;
      this.#plan("interval", settings.intervalMs);
      return;
    }
    this.#failureCount += 1;
    const maxMs = Math.max(settings.intervalMs, sweepRetryMsMin) as DurationMs;
    this.#plan("retry", backoffMs({ minMs: sweepRetryMsMin, maxMs }, this.#failureCount, random.fraction()));
  }

  /** A little later than asked for, so that workers do not all find out at once that one of them has to. */
  #plan(reason: Reason, inMs: number): void {
    const jitterMs = this.#options.random.fraction() * jitterMsMax;
    this.#next = { reason, atMs: (this.#options.clock.monotonicMs() + Math.max(0, inMs) + jitterMs) as MonotonicMs };
  }

  #report(sweep: { readonly reason: Reason; readonly ended: SweepResult; readonly result: PassResult; readonly durationMs: DurationMs }): void {
    const { reason, ended, result } = sweep;
    const fields = { reason, result: ended, durationMs: Math.round(sweep.durationMs) };
    const { log } = this.#options;
    if (result.kind === "failed") return log.warn({ ...fields, err: result.failure }, "Gave up a sweep");
    if (result.kind === "interrupted") return log.info(fields, "Interrupted a sweep");
    const { waiting, elapsed, unanswered, overdue, unreadable } = result.summary;
    const all = { ...fields, waiting, elapsed, unanswered, overdue, unreadable, actions: Object.fromEntries(result.tally.actions()) };
    if (result.tally.actions().size > 0 || reason === "break") log.info(all, "Swept the timers");
    else log.debug(all, "Swept the timers");
  }

  async #readSummary(): Promise<StoredSummary> {
    const read = await this.#options.ports.notes.read(leaseKeys.sweepSummary);
    switch (read.kind) {
      case "found": {
        const summary = decodeSummary(read.value);
        return { revision: read.revision, ...(summary === undefined ? {} : { summary }) };
      }
      case "failed":
        throw new Failure("transient", read.failure.code, "read the summary of the last sweep", { cause: read.failure });
      case "absent":
        return { revision: 0 };
      case "marker":
      case "unreadable":
        return { revision: read.revision };
      default:
        return unreachable(read);
    }
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const done = new AbortController();
    const either = AbortSignal.any([signal, done.signal]);
    await Promise.race([this.#kicks.wait(either), this.#options.clock.sleep(sweepTickMs, either)]);
    done.abort();
  }
}

const jitterMsMax = 1_000;
