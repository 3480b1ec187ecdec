/**
 * Threads that work through a pile of simulations side by side, as many as the machine has cores. What each task comes to
 * is a function of the task alone, so that neither their number nor their order makes a difference.
 */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { CrashPoint } from "./crash-points.ts";

export type Task =
  | { readonly kind: "schedules"; readonly first: number; readonly count: number }
  /** Runs of the transition of this name, each with its points. */
  | { readonly kind: "crash_points"; readonly transition: string; readonly runs: readonly (readonly CrashPoint[])[] };

/** What a task came to: numbers to add up, and what broke. */
export type TaskReport = { readonly counts: Readonly<Record<string, number>>; readonly problems: readonly Problem[] };
export type Problem = { readonly text: string; readonly seed?: number };

/** Works through all tasks and adds up what they count; begins nothing more once something broke, unless `isComplete`. */
export async function workThrough(tasks: Iterable<Task>, { isComplete = false } = {}): Promise<TaskReport> {
  const pile = tasks[Symbol.iterator]();
  const counts = new Map<string, number>();
  const problems: Problem[] = [];
  const workThread = async (): Promise<void> => {
    const thread = new Worker(new URL("./crew-thread.ts", import.meta.url), { execArgv: [], resourceLimits: { maxYoungGenerationSizeMb: 64 } });
    try {
      for (let next = pile.next(); next.done !== true; next = pile.next()) {
        const report = await ask(thread, next.value);
        for (const [name, count] of Object.entries(report.counts)) counts.set(name, (counts.get(name) ?? 0) + count);
        problems.push(...report.problems);
        if (problems.length > 0 && !isComplete) return;
      }
    } finally {
      await thread.terminate();
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), threadCountMax) }, workThread));
  return { counts: Object.fromEntries(counts), problems };
}

function ask(thread: Worker, task: Task): Promise<TaskReport> {
  return new Promise((resolve, reject) => {
    const onMessage = (report: TaskReport): void => {
      thread.off("error", reject);
      resolve(report);
    };
    thread.once("message", onMessage);
    thread.once("error", reject);
    thread.postMessage(task);
  });
}

const threadCountMax = 8;
