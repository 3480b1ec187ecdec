import { describe, expect, test } from "vitest";
import { clockDriftPpm, clockSampleAgeMsMax } from "../../src/base/limits.ts";
import type { DurationMs, EpochMs } from "../../src/base/units.ts";
import { NatsBrokerClock } from "../../src/nats/broker-clock.ts";
import type { Delivered, JetStream, StreamState } from "../../src/nats/core/jetstream.ts";
import { SteppedClock } from "../fakes/clock.ts";

const startMs = 1_800_000_000_000;
const ms = (value: number): DurationMs => value as DurationMs;

/** A broker whose clock runs exactly with the stepped one, `aheadMs` ahead of `startMs`. */
function bed() {
  const clock = new SteppedClock();
  const broker = { aheadMs: 0, leader: "n1", epoch: 1, isSilent: false, requestCount: 0 };
  const brokerNowMs = (): number => startMs + broker.aheadMs + clock.monotonicMs();
  const jetStream = {
    streamState: async () => {
      broker.requestCount += 1;
      if (broker.isSilent) return { kind: "failed", failure: new Error("silent") };
      return { kind: "told", value: { leader: broker.leader, serverTimeMs: Math.floor(brokerNowMs()) as EpochMs } as StreamState };
    },
  } as unknown as JetStream;
  const brokerClock = new NatsBrokerClock({ jetStream, clock, epoch: () => broker.epoch });
  const wake = (over: { readonly stampedAgoMs?: number; readonly deliveryCount?: number; readonly epoch?: number } = {}): Delivered => ({
    message: { timestampNs: BigInt(Math.floor(brokerNowMs() - (over.stampedAgoMs ?? 0))) * 1_000_000n + 999_999n },
    deliveryCount: over.deliveryCount ?? 1,
    epoch: over.epoch ?? broker.epoch,
    receivedAtMs: clock.monotonicMs(),
  }) as unknown as Delivered;
  return { clock, broker, brokerClock, brokerNowMs, wake };
}

describe("the bound of the broker's clock", () => {
  test("is unknown without a sample", () => {
    expect(bed().brokerClock.lowerBoundMs()).toBeUndefined();
  });

  test("is what a wake was stamped with, and grows a little slower than time", async () => {
    const { brokerClock, clock, wake } = bed();
    brokerClock.onWake(wake());
    expect(brokerClock.lowerBoundMs()).toBe(startMs);
    await clock.advance(ms(2_000));
    expect(brokerClock.lowerBoundMs()).toBe(startMs + 2_000 - (2_000 * clockDriftPpm) / 1_000_000);
  });

  test("never passes the broker's clock, however late and unordered the samples come", async () => {
    const { brokerClock, brokerNowMs, clock, wake } = bed();
    for (let round = 0; round < 300; round += 1) {
      brokerClock.onWake(wake({ stampedAgoMs: (round * 37) % 500 }));
      if (round % 10 === 0) await brokerClock.refresh();
      await clock.advance(ms((round * 13) % 90));
      expect(brokerClock.lowerBoundMs()).toBeLessThanOrEqual(brokerNowMs());
    }
  });

  test("is the best of what is known, not the last", async () => {
    const { brokerClock, clock, wake } = bed();
    brokerClock.onWake(wake());
    await clock.advance(ms(1_000));
    brokerClock.onWake(wake({ stampedAgoMs: 900 }));
    expect(brokerClock.lowerBoundMs()).toBeGreaterThanOrEqual(startMs + 999);
  });

  test("is unknown again when every sample is old, until the leader is asked", async () => {
    const { brokerClock, clock, wake } = bed();
    brokerClock.onWake(wake());
    await clock.advance(ms(clockSampleAgeMsMax + 1));
    expect(brokerClock.lowerBoundMs()).toBeUndefined();
    await brokerClock.refresh();
    expect(brokerClock.lowerBoundMs()).toBe(startMs + clockSampleAgeMsMax + 1);
  });

  test.each([
    { over: { deliveryCount: 2 }, because: "an earlier leader may have stamped a redelivered wake" },
    { over: { epoch: 0 }, because: "it came over another connection" },
  ])("is not learnt from some wakes: $because", ({ over }) => {
    const { brokerClock, wake } = bed();
    brokerClock.onWake(wake(over));
    expect(brokerClock.lowerBoundMs()).toBeUndefined();
  });

  test("forgets what it knew when the connection is another", () => {
    const { broker, brokerClock, wake } = bed();
    brokerClock.onWake(wake());
    broker.epoch += 1;
    expect(brokerClock.lowerBoundMs()).toBeUndefined();
  });

  test("forgets what an earlier leader said, whose clock may have been ahead", async () => {
    const { broker, brokerClock } = bed();
    broker.aheadMs = 5_000;
    await brokerClock.refresh();
    expect(brokerClock.lowerBoundMs()).toBe(startMs + 5_000);
    Object.assign(broker, { aheadMs: 0, leader: "n2" });
    await brokerClock.refresh();
    expect(brokerClock.lowerBoundMs()).toBe(startMs);
  });

  test("asks once for all who ask at the same time, and keeps what it knew when nobody answers", async () => {
    const { broker, brokerClock } = bed();
    await Promise.all([brokerClock.refresh(), brokerClock.refresh(), brokerClock.refresh()]);
    expect(broker.requestCount).toBe(1);
    broker.isSilent = true;
    await brokerClock.refresh();
    expect(brokerClock.lowerBoundMs()).toBe(startMs);
  });
});
