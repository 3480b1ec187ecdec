/**
 * Every crash point of every transition, and every pair of them: the worker dies before or after a durable operation, or
 * the broker's answer, or the request, is lost; whoever comes next completes it.
 *
 * Pairs are many: those of four transitions run by default, CRASH_PAIRS=all runs all.
 */
import { describe, expect, test } from "vitest";
import { crashProblem, disturbances, runTransition, type CrashPoint, type CrashRun, type Transition } from "./crash-points.ts";
import { transitions, wholeLife } from "./transitions-under-crash.ts";

const all = [...transitions, wholeLife];
const inPairs = process.env["CRASH_PAIRS"] === "all" ? all : transitions.filter(({ name }) => ["start", "wake", "retry", "complete"].includes(name));

describe.each(all)("$name", (transition) => {
  test("ends as it should when nothing goes wrong", async () => {
    const run = await runTransition(transition, []);
    expect(run).toMatchObject({ violations: [], hasEnded: true });
    expect(run.operations.length).toBeGreaterThan(0);
  });

  test("ends the same with any one operation disturbed", async () => {
    const undisturbed = await runTransition(transition, []);
    const problems = await problemsOf(transition, undisturbed, singlePoints(undisturbed.operations.length));
    expect(problems).toEqual([]);
  }, 600_000);
});

describe.each(inPairs)("$name, twice", (transition) => {
  test("ends the same with any two operations disturbed", async () => {
    const undisturbed = await runTransition(transition, []);
    const problems = await problemsOf(transition, undisturbed, pairsOf(undisturbed.operations.length));
    expect(problems).toEqual([]);
  }, 3_600_000);
});

async function problemsOf(transition: Transition, undisturbed: CrashRun, runs: readonly (readonly CrashPoint[])[]): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const points of runs) {
    const run = await runTransition(transition, points);
    const problem = crashProblem(run, undisturbed);
    if (problem !== undefined) problems.push(`${points.map(({ nth, how }) => `${how} ${run.operations[nth - 1] ?? String(nth)}`).join(", then ")}: ${problem}`);
  }
  console.log(`crash points ${JSON.stringify({ transition: transition.name, runs: runs.length, violations: problems.length })}`);
  return problems;
}

function singlePoints(count: number): readonly (readonly CrashPoint[])[] {
  return Array.from({ length: count }, (_, index) => disturbances.map((how) => [{ nth: index + 1, how }])).flat();
}

/** After a first disturbance the transition takes some operations more: the second one may meet any of them. */
function pairsOf(count: number): readonly (readonly CrashPoint[])[] {
  return singlePoints(count).flatMap(([first]) => {
    if (first === undefined) return [];
    return Array.from({ length: count }, (_, index) => disturbances.map((how) => [first, { nth: first.nth + 1 + index, how }])).flat();
  });
}
