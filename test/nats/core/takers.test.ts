import { describe, expect, test } from "vitest";
import type { DurationMs } from "../../../src/base/units.ts";
import { Takers } from "../../../src/nats/core/takers.ts";
import { SteppedClock } from "../../fakes/clock.ts";

const ms = (value: number): DurationMs => value as DurationMs;

/** Waiters by name, and the names of those that have left. */
function bed() {
  const clock = new SteppedClock();
  const takers = new Takers(clock);
  const left: string[] = [];
  const wait = (name: string, untilMs: number, signal = new AbortController().signal): void => {
    takers.wait(untilMs, signal).then(() => left.push(name), () => left.push(`${name} failed`));
  };
  const settled = (): Promise<void> => clock.advance(ms(0));
  return { clock, takers, left, wait, settled };
}

describe("those who wait for messages", () => {
  test("are woken one by one, in the order in which they came", async () => {
    const { takers, left, wait, settled } = bed();
    wait("a", 100);
    wait("b", 50);
    takers.wake();
    await settled();
    expect(left).toEqual(["a"]);
    takers.wake();
    takers.wake();
    await settled();
    expect(left).toEqual(["a", "b"]);
  });

  test("leave each at their own time, also one that came later and waits less long", async () => {
    const { clock, left, wait } = bed();
    wait("long", 100);
    wait("short", 40);
    wait("middle", 60);
    await clock.advance(ms(40));
    expect(left).toEqual(["short"]);
    await clock.advance(ms(59));
    expect(left).toEqual(["short", "middle"]);
    await clock.advance(ms(1));
    expect(left).toEqual(["short", "middle", "long"]);
  });

  test("leave when they are told to, and are not woken any more", async () => {
    const { takers, left, wait, settled } = bed();
    const stop = new AbortController();
    wait("stopped", 100, stop.signal);
    wait("other", 100);
    stop.abort();
    takers.wake();
    await settled();
    expect(left).toEqual(["stopped", "other"]);
    wait("late", 100, stop.signal);
    await settled();
    expect(left).toEqual(["stopped", "other", "late"]);
  });

  test("share one timer, which is gone with them when they are dismissed", async () => {
    const { clock, takers, left, wait, settled } = bed();
    for (let round = 0; round < 100; round += 1) {
      wait(String(round), 1_000 + round);
      takers.wake();
    }
    await settled();
    expect([left.length, clock.sleeperCount]).toEqual([100, 1]);
    wait("last", 2_000);
    takers.dismiss();
    await settled();
    expect([left.at(-1), clock.sleeperCount]).toEqual(["last", 0]);
  });
});
