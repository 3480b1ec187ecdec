/**
 * Every crash point of every transition, and pairs of them: the worker dies before or after a durable operation, or the
 * broker's answer, or the request, is lost; whoever comes next completes it.
 *
 * Pairs are many: a sample of each transition's runs by default, evenly spread over all of them; CRASH_PAIRS=all runs all.
 */
import { describe, expect, test } from "vitest";
import { pairsOfPoints, runTransition, singlePoints, type CrashPoint } from "./crash-points.ts";
import { workThrough, type Task } from "./crew.ts";
import { transitions } from "./transitions-under-crash.ts";

const runsEveryPair = process.env["CRASH_PAIRS"] === "all";

describe.each(transitions)("$name", (transition) => {
  test("ends as it should when nothing goes wrong", async () => {
    const run = await runTransition(transition, []);
    expect(run).toMatchObject({ violations: [], hasEnded: true });
    expect(run.operations.length).toBeGreaterThan(0);
  });
});

describe("a transition", () => {
  test("ends the same with any one operation disturbed", async () => {
    const tasks = await tasksOf(singlePoints);
    await expectSound("points", tasks);
  }, 1_200_000);

  test("ends the same with two operations disturbed", async () => {
    const tasks = await tasksOf((count) => { const all = pairsOfPoints(count); return runsEveryPair ? all : sampleOf(all); });
    await expectSound("pairs", tasks);
  }, 7_200_000);
});

async function expectSound(what: "points" | "pairs", tasks: readonly Task[]): Promise<void> {
  const { counts: { runs = 0, ...checks }, problems } = await workThrough(tasks, { isComplete: true });
  console.log(`crash points ${JSON.stringify({ [what]: runs, ...checks, violations: problems.length })}`);
  expect(problems.slice(0, shownCountMax)).toEqual([]);
  expect(runs).toBeGreaterThan(0);
}

async function tasksOf(pointsOf: (operationCount: number) => readonly (readonly CrashPoint[])[]): Promise<readonly Task[]> {
  const tasks: Task[] = [];
  for (const transition of transitions) {
    const runs = pointsOf((await runTransition(transition, [])).operations.length);
    for (let begun = 0; begun < runs.length; begun += sliceSize) tasks.push({ kind: "crash_points", transition: transition.name, runs: runs.slice(begun, begun + sliceSize) });
  }
  return tasks;
}

function sampleOf<T>(all: readonly T[]): readonly T[] {
  const step = Math.max(1, Math.floor(all.length / sampleSize));
  return all.filter((_, index) => index % step === 0);
}

const sampleSize = 40;
const sliceSize = 20;
const shownCountMax = 10;
