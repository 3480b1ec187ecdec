import { expect, test } from "vitest";
import { runChaos } from "../../scripts/chaos/run.ts";
import { disturbanceKinds } from "../../scripts/chaos/storm.ts";

test("400 timers in a storm of kills, stops and cuts are all accounted for, and every rule holds for each", async () => {
  const told: string[] = [];
  const { verdict, checks, disturbances, trace } = await runChaos({ serverCount: 1, timerCount: 400, seed: 20_261_201, stormMs: 8_000, tell: (what) => { told.push(what); } });
  const broken = checks.filter(({ violations }) => violations.length > 0);
  expect(broken, [...told, ...trace].slice(-400).join("\n")).toEqual([]);
  expect(verdict.identity).toMatchObject({ holds: true, pending: 0, ending: 0 });
  expect(verdict.identity.acknowledged).toBeGreaterThan(350);
  expect(checks.filter(({ comparedCount }) => comparedCount > 0).length).toBeGreaterThan(10);
  expect(disturbances.length).toBeGreaterThan(3);
  expect(disturbances.every(({ kind }) => disturbanceKinds.includes(kind))).toBe(true);
}, 400_000);
