import { expect, test } from "vitest";
import type { MonotonicMs } from "../../src/base/units.ts";
import { seededRandom } from "../../src/system/random.ts";
import { DelayQueue } from "../../src/worker/delay-queue.ts";

const at = (ms: number): MonotonicMs => ms as MonotonicMs;

test("items come out in the order of their instants, and only when ready", () => {
  const queue = new DelayQueue<number>();
  const random = seededRandom(7);
  const instants = Array.from({ length: 500 }, () => Math.floor(random.fraction() * 1_000));
  for (const instant of instants) queue.push(at(instant), instant);
  const sorted = [...instants].sort((a, b) => a - b);
  const early = queue.takeReady(at(400));
  expect(early).toEqual(sorted.filter((instant) => instant <= 400));
  expect(queue.nextReadyAtMs()).toBe(sorted.find((instant) => instant > 400));
  expect([...early, ...queue.takeReady(at(1_000))]).toEqual(sorted);
  expect(queue.nextReadyAtMs()).toBeUndefined();
});

test("keeping leaves the order intact, draining empties", () => {
  const queue = new DelayQueue<number>();
  for (const value of [5, 3, 9, 1, 7]) queue.push(at(value), value);
  queue.keep((value) => value !== 3);
  expect(queue.takeReady(at(5))).toEqual([1, 5]);
  expect([...queue.drain()].sort()).toEqual([7, 9]);
  expect(queue.size()).toBe(0);
});
