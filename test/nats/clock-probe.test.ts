import { describe, expect, test } from "vitest";
import type { DurationMs, EpochMs } from "../../src/base/units.ts";
import { natsClockProbe } from "../../src/nats/clock-probe.ts";
import type { JetStream, StreamState } from "../../src/nats/core/jetstream.ts";
import { SteppedClock } from "../fakes/clock.ts";

/** Servers whose clocks are ahead by so much; each answers after `tripMs`, having looked at its clock in the middle. */
function bed(leaders: Readonly<Record<string, { readonly leader?: string; readonly aheadMs: number; readonly tripMs: number } | undefined>>) {
  const clock = new SteppedClock();
  const jetStream = {
    streamState: async (stream: string) => {
      const server = leaders[stream];
      if (server === undefined) return { kind: "failed", failure: new Error("silent") };
      await clock.sleep((server.tripMs / 2) as DurationMs);
      const serverTimeMs = (clock.nowMs() + server.aheadMs) as EpochMs;
      await clock.sleep((server.tripMs / 2) as DurationMs);
      return { kind: "told", value: { ...(server.leader === undefined ? {} : { leader: server.leader }), serverTimeMs } as StreamState };
    },
  } as unknown as JetStream;
  return { clock, probe: natsClockProbe(jetStream, clock) };
}

describe("the clocks of leading servers", () => {
  test("are told once per server, by the quickest of its answers, with what the way may hide", async () => {
    const { clock, probe } = bed({
      DURABLE_TIMER_COMMANDS: { leader: "n1", aheadMs: 500, tripMs: 100 }, DURABLE_TIMER_FEEDBACK: { leader: "n1", aheadMs: 500, tripMs: 20 },
      DURABLE_TIMER_SCHEDULES: { leader: "n2", aheadMs: -300, tripMs: 40 },
    });
    const reading = probe.read();
    await clock.advance(1_000);
    expect(await reading).toEqual([{ server: "n1", aheadMs: 500, errorMs: 11 }, { server: "n2", aheadMs: -300, errorMs: 21 }]);
  });

  test("are left out when they do not answer", async () => {
    const { clock, probe } = bed({ DURABLE_TIMER_SCHEDULES: { aheadMs: 7, tripMs: 2 } });
    const reading = probe.read();
    await clock.advance(10);
    expect(await reading).toEqual([{ server: "", aheadMs: 7, errorMs: 2 }]);
  });
});
