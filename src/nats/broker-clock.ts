/**
 * A lower bound of the time that the leader of SCHEDULES has surely reached.
 *
 * A message stamped t that was received at monotonic time r proves that at a later time n its leader's clock shows at
 * least t + (n − r)·(1 − drift). The largest bound of the last seconds counts; it never comes from this machine's wall
 * clock, whose errors would let timers fire early (I1).
 *
 * 1. Samples of another connection or another leader are dropped: their clock was another.
 * 2. Redelivered messages are no samples: an earlier leader may have stamped them.
 */
import type { Clock } from "../base/clock.ts";
import { clockDriftPpm, clockSampleAgeMsMax } from "../base/limits.ts";
import type { EpochMs, MonotonicMs } from "../base/units.ts";
import { streamNames } from "../protocol/names.ts";
import type { BrokerClock } from "../worker/ports.ts";
import type { Delivered, JetStream } from "./core/jetstream.ts";

type Sample = { readonly receivedAtMs: MonotonicMs; readonly stampMs: number };

/** The bound of one connection; feed it wakes, or let it ask. */
export class NatsBrokerClock implements BrokerClock {
  readonly #jetStream: JetStream;
  readonly #clock: Clock;
  readonly #epoch: () => number;
  /** One per slice of time, its best; at most `slotCount`. */
  #samples: Sample[] = [];
  #sampledEpoch = 0;
  #leader: string | undefined;
  #refreshing: Promise<void> | undefined;

  constructor(parts: { readonly jetStream: JetStream; readonly clock: Clock; readonly epoch: () => number }) {
    this.#jetStream = parts.jetStream;
    this.#clock = parts.clock;
    this.#epoch = parts.epoch;
  }

  lowerBoundMs(): EpochMs | undefined {
    this.#forgetOtherEpochs();
    const nowMs = this.#clock.monotonicMs();
    let best: number | undefined;
    for (const { receivedAtMs, stampMs } of this.#samples) {
      const ageMs = nowMs - receivedAtMs;
      if (ageMs > clockSampleAgeMsMax) continue;
      const boundMs = stampMs + ageMs * slowest;
      if (best === undefined || boundMs > best) best = boundMs;
    }
    return best === undefined ? undefined : (Math.floor(best) as EpochMs);
  }

  /** A wake in hand is a sample. */
  onWake(delivered: Delivered): void {
    if (delivered.deliveryCount !== 1 || delivered.epoch !== this.#epoch()) return;
    this.#add({ receivedAtMs: delivered.receivedAtMs, stampMs: Number(delivered.message.timestampNs / nanosPerMs) });
  }

  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  async #refresh(): Promise<void> {
    const epoch = this.#epoch();
    const told = await this.#jetStream.streamState(streamNames.schedules);
    const receivedAtMs = this.#clock.monotonicMs();
    if (told.kind === "failed" || epoch !== this.#epoch()) return;
    const { leader, serverTimeMs } = told.value;
    if (leader !== this.#leader) this.#samples = [];
    this.#leader = leader;
    if (serverTimeMs !== undefined) this.#add({ receivedAtMs, stampMs: serverTimeMs });
  }

  #add(sample: Sample): void {
    this.#forgetOtherEpochs();
    const last = this.#samples.at(-1);
    if (last === undefined || sample.receivedAtMs - last.receivedAtMs >= sliceMs) {
      this.#samples = [...this.#samples.slice(-(slotCount - 1)), sample];
    } else if (sample.stampMs >= last.stampMs + (sample.receivedAtMs - last.receivedAtMs) * slowest) {
      this.#samples[this.#samples.length - 1] = sample;
    }
  }

  #forgetOtherEpochs(): void {
    const epoch = this.#epoch();
    if (epoch === this.#sampledEpoch) return;
    this.#sampledEpoch = epoch;
    this.#samples = [];
  }
}

const nanosPerMs = 1_000_000n;
/** How fast this machine's clock runs at least, compared with the broker's. */
const slowest = 1 - clockDriftPpm / 1_000_000;
const slotCount = 16;
const sliceMs = clockSampleAgeMsMax / slotCount;
