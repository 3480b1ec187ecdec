/**
 * Looks for one broken promise, with everything that the simulation has, cheapest first: `hunt.ts <schedules>`. Prints what
 * it found as one line of JSON and ends with 1, or ends with 0 when it found nothing.
 */
import { crashProblem, runTransition, singlePoints } from "./crash-points.ts";
import { runSchedule } from "./schedule.ts";
import { transitions } from "./transitions-under-crash.ts";

async function hunt(scheduleCount: number): Promise<string | undefined> {
  const early = Math.min(50, scheduleCount);
  return await inCalm() ?? await inSchedules(1, early) ?? await atCrashPoints() ?? await inSchedules(early + 1, scheduleCount);
}

async function inCalm(): Promise<string | undefined> {
  for (const transition of transitions) {
    const run = await runTransition(transition, []);
    const problem = crashProblem(run, run);
    if (problem !== undefined) return `${transition.name}: ${problem}`;
  }
  return undefined;
}

async function atCrashPoints(): Promise<string | undefined> {
  for (const transition of transitions) {
    const undisturbed = await runTransition(transition, []);
    for (const points of singlePoints(undisturbed.operations.length)) {
      const problem = crashProblem(await runTransition(transition, points), undisturbed);
      if (problem !== undefined) return `${transition.name}, ${points.map(({ how, nth }) => `${how} operation ${String(nth)}`).join()}: ${problem}`;
    }
  }
  return undefined;
}

async function inSchedules(first: number, last: number): Promise<string | undefined> {
  for (let seed = first; seed <= last; seed += 1) {
    const [violation] = (await runSchedule(seed)).violations;
    if (violation !== undefined) return `seed ${String(seed)}: ${violation.invariant}: ${violation.text}`;
  }
  return undefined;
}

Error.stackTraceLimit = 0;
const found = await hunt(Number(process.argv[2] ?? 100));
if (found !== undefined) console.log(JSON.stringify(found));
process.exitCode = found === undefined ? 0 : 1;
