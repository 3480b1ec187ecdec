import { expect, test } from "vitest";
import type { EpochMs } from "../../src/base/units.ts";
import { waitForDue } from "../../src/worker/due.ts";

const at = (ms: number): EpochMs => ms as EpochMs;

test.each([
  ["is over once the bound has reached the due time", 1_000, 1_000, 0],
  ["is longer than the distance, for the bound grows slower than time", 100_000, 0, 100_051],
  ["rounds up, never to too early", 1_001, 1_000, 2],
])("the wait %s", (_name, due, bound, want) => {
  expect(waitForDue(at(due), at(bound))).toBe(want);
});

test("without a bound it asks again shortly", () => {
  expect(waitForDue(at(1_000), undefined)).toBeGreaterThan(0);
  expect(waitForDue(at(1_000), undefined)).toBeLessThanOrEqual(100);
});
