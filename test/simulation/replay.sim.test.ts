import { expect, test } from "vitest";
import { replay, ways } from "./replay.ts";

test("a year gives the same records in one jump, in small steps, delivered twice, and with restarts", async () => {
  const reports = [];
  for (const way of ways) reports.push(await replay(way));
  expect(reports.map(({ violations }) => violations)).toEqual(ways.map(() => []));
  expect(reports[0]?.days).toBeGreaterThan(330);
  expect(reports[0]?.resumeCount).toBeGreaterThan(30);
  expect(new Set(reports.map(({ recordsHash }) => recordsHash)).size, JSON.stringify(reports)).toBe(1);
  expect(new Set(reports.map(({ hash }) => hash)).size, JSON.stringify(reports)).toBe(1);
}, 300_000);
