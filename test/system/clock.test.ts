import { describe, expect, test } from "vitest";
import type { DurationMs } from "../../src/base/units.ts";
import { systemClock } from "../../src/system/clock.ts";

const ms = (value: number): DurationMs => value as DurationMs;

describe("the system's clock", () => {
  test("a sleep is never shorter than it was asked to be", async () => {
    const sleeps = Array.from({ length: 20 }, async (_, index) => {
      const startMs = systemClock.monotonicMs();
      await systemClock.sleep(ms(index));
      return systemClock.monotonicMs() - startMs - index;
    });
    expect(Math.min(...await Promise.all(sleeps))).toBeGreaterThanOrEqual(0);
  });

  test("a sleep longer than a timer can hold does not end at once", async () => {
    const abort = new AbortController();
    const sleeping = systemClock.sleep(ms(2 ** 31 + 1_000), abort.signal).then(() => "slept");
    expect(await Promise.race([sleeping, systemClock.sleep(ms(30)).then(() => "still asleep")])).toBe("still asleep");
    abort.abort();
    expect(await sleeping).toBe("slept");
  });

  test("aborting ends a sleep without rejecting it", async () => {
    const abort = new AbortController();
    const sleeping = systemClock.sleep(ms(60_000), abort.signal);
    abort.abort(new Error("stopped"));
    await expect(sleeping).resolves.toBeUndefined();
  });

  test("a signal that was aborted before ends a sleep at once", async () => {
    const startMs = systemClock.monotonicMs();
    await systemClock.sleep(ms(60_000), AbortSignal.abort());
    expect(systemClock.monotonicMs() - startMs).toBeLessThan(30_000);
  });
});
