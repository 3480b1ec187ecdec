/** One thread of the crew: takes a task, does it, reports, and waits for the next. */
import { parentPort } from "node:worker_threads";
import { present } from "../../src/base/assert.ts";
import { crashProblem, runTransition } from "./crash-points.ts";
import type { Problem, Task, TaskReport } from "./crew.ts";
import { runSchedule } from "./schedule.ts";
import { transitions } from "./transitions-under-crash.ts";

// Nobody reads the stacks of the failures that are expected here by the thousand; a run that is told again has them.
Error.stackTraceLimit = 0;

const port = present(parentPort, "a thread of the crew");
port.on("message", (task: Task) => {
  work(task).then((report) => { port.postMessage(report); }, (error: unknown) => { setImmediate(() => { throw error; }); });
});

function work(task: Task): Promise<TaskReport> {
  return task.kind === "schedules" ? schedules(task) : crashPoints(task);
}

async function schedules({ first, count }: Extract<Task, { kind: "schedules" }>): Promise<TaskReport> {
  const total = new Map<string, number>();
  const problems: Problem[] = [];
  for (let seed = first; seed < first + count && problems.length === 0; seed += 1) {
    const { violations, counts } = await runSchedule(seed);
    for (const [name, value] of Object.entries(counts)) total.set(name, (total.get(name) ?? 0) + value);
    problems.push(...violations.map(({ invariant, text }) => ({ seed, text: `${invariant}: ${text}` })));
  }
  return { counts: Object.fromEntries(total), problems };
}

async function crashPoints({ transition: name, runs }: Extract<Task, { kind: "crash_points" }>): Promise<TaskReport> {
  const transition = present(transitions.find((one) => one.name === name), "a transition of this name");
  const undisturbed = await runTransition(transition, []);
  const problems: Problem[] = [];
  const checks = new Map<string, number>();
  for (const points of runs) {
    const run = await runTransition(transition, points);
    const problem = crashProblem(run, undisturbed);
    for (const [invariant, count] of Object.entries(run.checks)) checks.set(invariant, (checks.get(invariant) ?? 0) + count);
    if (problem !== undefined) problems.push({ text: `${points.map(({ nth, how }) => `${how} ${run.operations[nth - 1] ?? String(nth)}`).join(", then ")}: ${problem}` });
  }
  return { counts: { runs: runs.length, ...Object.fromEntries(checks) }, problems };
}
