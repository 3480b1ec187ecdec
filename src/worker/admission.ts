/**
 * Watches the space that is left and whether the data is still there, and says whether starts may be taken.
 *
 * It owns the cached usage, the memory of the data streams and the decisions made from them; it does not pause anything by
 * itself. It asks more often the faster the nearest limit comes closer. A look that takes long makes the last answer
 * old, and an old answer is none.
 */
import type { Clock } from "../base/clock.ts";
import { admissionPollMsMax, admissionPollMsMin, admissionUsageAgeMsMax } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import type { DurationMs, MonotonicMs } from "../base/units.ts";
import { WaiterList } from "../concurrency/waiters.ts";
import { decideAdmission, initialAdmission, type AdmissionLimits, type AdmissionState, type StartSize } from "./admission-decide.ts";
import { AdmissionRoom, type Pass } from "./admission-room.ts";
import { decideData, describeLoss, initialData, isMadeAnew, isUndecidable, type DataState } from "./data-losses.ts";
import type { WorkerMetrics } from "./metrics.ts";
import type { CapacityProbe, DataLook, DataProbe } from "./ports.ts";

/** What admission is made of. */
export type AdmissionOptions = {
  readonly capacity: CapacityProbe;
  readonly data: DataProbe;
  readonly limits: AdmissionLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: WorkerMetrics;
};

/** What a loop waits for before it takes anything, and asks before it begins with what it has taken. */
export type Gate = {
  readonly isOpen: () => boolean;
  readonly waitOpen: (signal: AbortSignal) => Promise<void>;
  /** How many of these, in order, may be begun now. */
  readonly admit: (sizes: readonly StartSize[]) => Promise<Pass>;
};

/** Knows whether starts may be taken, and lets those who wait know. */
export class Admission implements Gate {
  readonly #options: AdmissionOptions;
  readonly #waiters = new WaiterList<true>();
  readonly #madeAnew = new AbortController();
  readonly #ended = new AbortController();
  readonly #room = new AdmissionRoom();
  readonly #looked = new WaiterList<true>();
  #hurry = new AbortController();
  #state: AdmissionState = initialAdmission;
  #data: DataState = initialData;
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
    await this.#wait(() => this.isOpen(), signal);
  }

  /** Starts that fit in what was free at the last look; looks again first when not all of them do. */
  async admit(sizes: readonly StartSize[]): Promise<Pass> {
    if (!this.isOpen()) return noPass;
    if (this.#room.fits(sizes)) return this.#room.take(sizes);
    this.#hurry.abort();
    await this.#looked.wait(this.#ended.signal);
    return !this.#ended.signal.aborted && this.isOpen() ? this.#room.take(sizes) : noPass;
  }

  /** Open for feedback and wakes, whatever room there is, unless what they are decided from is lost. */
  /** False while a data stream has lost what it held, or nobody has looked yet: what is absent may then have been there. */
  readonly isDataWhole = (): boolean => this.#data.isWhole;

  readonly dataGate: Gate = {
    isOpen: () => !isUndecidable(this.#data),
    waitOpen: (signal) => this.#wait(() => !isUndecidable(this.#data), signal),
    admit: (sizes) => Promise.resolve(isUndecidable(this.#data) ? noPass : { count: sizes.length, done: () => undefined }),
  };

  /** Data streams that have lost what they held, as sentences for a person. */
  losses(): readonly string[] {
    return this.#data.losses.map(describeLoss);
  }

  /** Aborts when a lost stream was made anew: only a new process may begin with what it holds. */
  get madeAnew(): AbortSignal {
    return this.#madeAnew.signal;
  }

  /** Looks and decides until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const before = this.#state;
      const sinceMs = (this.#options.clock.monotonicMs() - this.#decidedAtMs) as DurationMs;
      this.#hurry = new AbortController();
      await this.#look();
      const waitMs = pollMs({ before, now: this.#state, sinceMs, closePercent: this.#options.limits.closePercent });
      await this.#options.clock.sleep(waitMs, AbortSignal.any([signal, this.#hurry.signal]));
    }
    this.#ended.abort();
    this.#waiters.dismiss();
  }

  async #wait(isOpen: () => boolean, signal: AbortSignal): Promise<void> {
    while (!isOpen() && !signal.aborted) await this.#waiters.wait(signal);
  }

  async #look(): Promise<void> {
    const { capacity, data, limits, clock } = this.#options;
    const beganAtMs = clock.monotonicMs();
    const [usage, look] = await Promise.all([capacity.usage(), data.look()]);
    this.#see(look);
    const before = this.#state;
    // Without a look at the data there is no usage either that could be trusted.
    this.#state = decideAdmission(before, { usage: look === undefined ? undefined : usage, isDataWhole: look === undefined || this.#data.isWhole }, limits);
    // The answer is as old as its question.
    this.#decidedAtMs = beganAtMs;
    this.#room.looked(look === undefined ? undefined : usage, beganAtMs);
    this.#report(before);
    this.#letIn();
  }

  #see(look: DataLook | undefined): void {
    const before = this.#data;
    this.#data = decideData(before, look);
    const { losses, restored } = this.#data;
    const { log, metrics } = this.#options;
    metrics.dataLost(losses.map(({ stream }) => stream));
    for (const loss of losses) {
      if (!before.losses.some(({ stream, kind }) => stream === loss.stream && kind === loss.kind)) log.error(loss, "Found a data stream that lost what it held");
    }
    if (before.losses.length > 0 && losses.length === 0) log.info({}, "Found every data stream whole again");
    if (restored.length > 0) log.warn({ streams: restored }, "Found data streams restored from a backup");
    if (isMadeAnew(this.#data, look) && !this.#madeAnew.signal.aborted) {
      log.error({}, "Began to stop, for a lost data stream was made anew and only a new process may begin with it");
      this.#madeAnew.abort();
    }
  }

  #letIn(): void {
    const waiting = this.#waiters.size;
    for (let index = 0; index < waiting; index += 1) this.#waiters.serve(true);
    while (this.#looked.serve(true));
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

const noPass: Pass = { count: 0, done: () => undefined };

/** While closed or not yet known: often enough to notice freed space soon. */
const regularPollMs = 1_000 as DurationMs;
