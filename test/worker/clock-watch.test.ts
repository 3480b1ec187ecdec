import { describe, expect, test } from "vitest";
import { clockSkewMsMax, clockWarningIntervalMs, clockWatchIntervalMs } from "../../src/base/limits.ts";
import { ClockWatch, skewOf, type ClockReading } from "../../src/worker/clock-watch.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { FakeLog } from "../fakes/log.ts";
import { FakeWorkerMetrics } from "../fakes/worker-metrics.ts";

const reading = (server: string, aheadMs: number, errorMs = 5): ClockReading => ({ server, aheadMs, errorMs });

describe("what readings prove", () => {
  test.each([
    { name: "nothing", readings: [], want: undefined, because: "nobody answered" },
    { name: "clocks that agree", readings: [reading("a", 3), reading("b", -4)], want: { workerMs: 0, leadersMs: 0 }, because: "the difference is within the error" },
    { name: "a machine that is behind", readings: [reading("a", 2_000), reading("b", 2_010)], want: { workerMs: 2_005, leadersMs: 0 }, because: "the furthest counts, less its error" },
    { name: "a machine that is ahead", readings: [reading("a", -3_000)], want: { workerMs: -2_995, leadersMs: 0 }, because: "the sign tells which one" },
    { name: "leaders apart", readings: [reading("a", -300), reading("b", 400), reading("c", 0)], want: { workerMs: 395, leadersMs: 690 }, because: "both errors are taken off" },
    { name: "a slow answer", readings: [reading("a", 2_000, 2_500)], want: { workerMs: 0, leadersMs: 0 }, because: "all of it may be the way" },
  ])("of $name: $because", ({ readings, want, because }) => {
    const skew = skewOf(readings);
    expect(skew === undefined ? undefined : { workerMs: skew.workerMs + 0, leadersMs: skew.leadersMs }, because).toEqual(want);
  });
});

describe("a watch", () => {
  test("counts every look and warns of each difference once in a while", async () => {
    const clock = new SteppedClock();
    const log = new FakeLog();
    const metrics = new FakeWorkerMetrics();
    let readings = [reading("a", 0), reading("b", 0)];
    const stopping = new AbortController();
    const running = new ClockWatch({ probe: { read: () => Promise.resolve(readings) }, clock, log, metrics }).run(stopping.signal);
    await clock.advance(clockWatchIntervalMs);
    expect([metrics.skews.length, log.messages("warn")]).toEqual([2, []]);
    readings = [reading("a", clockSkewMsMax + 6), reading("b", 0 - clockSkewMsMax)];
    await clock.advance(clockWarningIntervalMs);
    const warnings = ["Found the clock of this machine apart from the broker's", "Found the clocks of leading servers apart"];
    expect(log.messages("warn")).toEqual(warnings);
    await clock.advance(clockWarningIntervalMs);
    expect(log.messages("warn")).toEqual([...warnings, ...warnings]);
    stopping.abort();
    await running;
    expect(clock.sleeperCount).toBe(0);
  });

  test("says nothing when nobody answers", async () => {
    const clock = new SteppedClock();
    const metrics = new FakeWorkerMetrics();
    const stopping = new AbortController();
    const running = new ClockWatch({ probe: { read: () => Promise.resolve([]) }, clock, log: new FakeLog(), metrics }).run(stopping.signal);
    await clock.advance(3 * clockWatchIntervalMs);
    stopping.abort();
    await running;
    expect(metrics.skews).toEqual([]);
  });
});
