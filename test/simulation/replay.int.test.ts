/** The year in wall time ends in the records that the same year in virtual time ends in. */
import { expect, test } from "vitest";
import { replay } from "./replay.ts";
import { replayInWallTime } from "./replay-wall.ts";

test("a year of short hours on a real server gives the records that a simulated year gives", async () => {
  const [simulated, real] = await Promise.all([replay("one jump"), replayInWallTime()]);
  expect(real.violations).toEqual([]);
  expect(real).toMatchObject({ recordCount: simulated.recordCount, resumeCount: simulated.resumeCount, hash: simulated.hash });
}, 600_000);
