import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { FeedbackTarget } from "../../src/client/feedback.ts";
import { openWorld, request, until, type World } from "./world.ts";

/**
 * A worker process dies at each write of each transition, before and after the broker has it; another worker completes.
 * The end must be that of the undisturbed run: the same last record, one resume per generation, nothing early.
 */
let world: World;

beforeAll(async () => { world = await openWorld({ ackWaitMs: 1_000 }); });
afterAll(async () => { await world[Symbol.asyncDispose](); });

type Transition = {
  readonly name: string;
  readonly writes: readonly string[];
  /** Brings the timer to where the transition begins, with a worker that lives; returns what sends the transition's input. */
  readonly prepare: (execution: string) => Promise<() => Promise<unknown>>;
  readonly want: object;
};

const resume = (execution: string): Promise<FeedbackTarget> =>
  until(`the resume of ${execution}`, async () => (await world.resumes()).find(({ lineage }) => lineage.execution === execution));
const start = (execution: string, delayMs: number) => world.client.start(request(execution, { wait: { delayMs }, retryWait: { delayMs: 600_000 } }), { awaitOutcome: true, outcomeTimeoutMs: 15_000 });
const quiet = { awaitOutcome: false } as const;

const elapsed = async (execution: string): Promise<FeedbackTarget> => {
  await start(execution, 0);
  return resume(execution);
};

const transitions: readonly Transition[] = [
  {
    name: "start", writes: ["snapshot", "state", "schedule"], want: { phase: "waiting", generation: 0, fence: 1 },
    prepare: (execution) => Promise.resolve(() => world.client.start(request(execution, { wait: { delayMs: 600_000 } }))),
  },
  {
    // Its wake is the input: the timer is started by hand when no worker lives, and is due at once.
    name: "wake", writes: ["state", "resume"], want: { phase: "elapsed", generation: 0, fence: 2 },
    prepare: async (execution) => {
      await start(execution, 2_500);
      return () => Promise.resolve();
    },
  },
  {
    name: "retry", writes: ["state", "schedule"], want: { phase: "waiting", generation: 1, fence: 3 },
    prepare: async (execution) => {
      const target = await elapsed(execution);
      return () => world.client.retry(target, quiet);
    },
  },
  {
    name: "complete", writes: ["state", "archive", "remove"], want: { phase: "terminal", outcome: "completed", fence: 3 },
    prepare: async (execution) => {
      const target = await elapsed(execution);
      return () => world.client.complete(target, quiet);
    },
  },
  {
    name: "fail", writes: ["state", "archive", "unschedule", "remove"], want: { phase: "terminal", outcome: "failed", fence: 2 },
    prepare: async (execution) => {
      const { waiting } = await start(execution, 600_000);
      return () => world.client.fail(waiting, { code: "cancelled", message: "" }, quiet);
    },
  },
];

const points = transitions.flatMap((transition) => transition.writes.flatMap((write, index) =>
  (["before", "after"] as const).map((when) => ({ transition, name: transition.name, write, nth: index + 1, when }))));

test.each(points)("a worker that dies $when its $write of a $name is completed by the next", async ({ transition, write, nth, when }) => {
  const execution = `${transition.name}-${write}-${when}`;
  const first = await world.startWorker();
  const send = await transition.prepare(execution);
  await first.stop();
  const dying = await world.spawnWorker({ entry: join(import.meta.dirname, "crashing-worker.ts"), env: { CRASH_POINT: JSON.stringify({ nth, when }) } });
  await send();
  await dying.exited;
  expect(dying.child.signalCode, dying.lines.join("\n")).toBe("SIGKILL");

  const next = await world.startWorker();
  const last = await until(`the end of ${execution}`, async () => {
    const all = [...(await world.records()), ...(await world.archived())].filter(({ lineage }) => lineage.execution === execution);
    const isThere = all.length === 1 && Object.entries(transition.want).every(([field, value]) => (all[0] as unknown as Record<string, unknown>)[field] === value);
    return isThere && (await isSettled()) ? all[0] : undefined;
  });
  expect(last).toMatchObject(transition.want);
  const resumes = (await world.resumes()).filter(({ lineage }) => lineage.execution === execution);
  expect(new Set(resumes.map(({ generation, fence }) => `${String(generation)}:${String(fence)}`)).size).toBe(new Set(resumes.map(({ generation }) => generation)).size);
  for (const { storedAtMs, dueAtMs } of resumes) expect(storedAtMs).toBeGreaterThanOrEqual(dueAtMs);
  await next.stop();
});

/** No command is pending or in anyone's hand. */
async function isSettled(): Promise<boolean> {
  const counts = await Promise.all((["commands", "feedback"] as const).map(async (role) => (await world.messages(role)).length));
  return counts.every((count) => count === 0);
}
