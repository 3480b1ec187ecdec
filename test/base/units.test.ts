import { expect, test } from "vitest";
import { epochMsFromNanos, isoFromEpochMs, later, since, type DurationMs, type EpochMs } from "../../src/base/units.ts";

test.each([
  [1_000_000n, 1], [1_000_001n, 2], [999_999n, 1], [0n, 0], [1_800_000_000_000_000_000n, 1_800_000_000_000],
])("%d ns are %d ms: never before their time", (nanos, want) => {
  expect(epochMsFromNanos(nanos)).toBe(want);
});

test("instants and durations add up", () => {
  const instant = 1_000 as EpochMs;
  expect(since(later(instant, 500 as DurationMs), instant)).toBe(500);
  expect(isoFromEpochMs(1_800_000_000_001 as EpochMs)).toBe("2027-01-15T08:00:00.001Z");
});
