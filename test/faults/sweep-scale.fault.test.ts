/** The sweep over twenty thousand waiting timers: `scripts/prove-sweep.ts` measures a million, this keeps what it does. */
import { afterEach, expect, test } from "vitest";
import { storeTimers } from "../../scripts/prove/sweep-load.ts";
import { leaseKeys, stateSubject, streamNames } from "../../src/protocol/names.ts";
import { decodeSummary, type SweepSummary } from "../../src/worker/sweep-summary.ts";
import { recreateSchedules } from "../worker/schedules-loss.ts";
import { openWorld, told, until, type World } from "../worker/world.ts";

let world: World;
afterEach(async () => { await world[Symbol.asyncDispose](); });

const timerCount = 20_000;
const waitMs = 300_000;

async function openLoaded(load: { readonly firstDueInMs: number; readonly spreadMs: number; readonly count?: number }, intervalSeconds: number): Promise<void> {
  world = await openWorld({ syncInterval: "2m", spec: { sweep: { intervalSeconds, graceSeconds: 2 } } });
  const beganAtMs = Date.now();
  await storeTimers(world.broker, {
    count: load.count ?? timerCount, startedAtMs: beganAtMs - 86_400_000, firstDueAtMs: beganAtMs + load.firstDueInMs, spreadMs: load.spreadMs, archivedCount: 1_000,
  }, () => undefined);
}

async function note(name: string): Promise<{ readonly text: string; readonly revision: number } | undefined> {
  const [last] = await world.broker.jetStream.readLast({ stream: streamNames.state, subjects: [stateSubject(name)], from: "leader" });
  return last?.kind === "found" ? { text: Buffer.from(last.message.body).toString(), revision: last.message.sequence } : undefined;
}

/** The next summary behind a revision. */
function sweptAfter(revision: number): Promise<{ readonly summary: SweepSummary; readonly revision: number }> {
  return until("a sweep", async () => {
    const stored = await note(leaseKeys.sweepSummary);
    const summary = stored === undefined || stored.revision <= revision ? undefined : decodeSummary(stored.text);
    return summary === undefined ? undefined : { summary, revision: stored?.revision ?? 0 };
  }, waitMs);
}

async function holder(): Promise<string | undefined> {
  const stored = await note(leaseKeys.sweep);
  const lease = stored === undefined ? undefined : JSON.parse(stored.text) as { readonly holder: string; readonly state: string };
  return lease?.state === "held" ? lease.holder : undefined;
}

const schedules = async () => told(await world.broker.jetStream.streamState(streamNames.schedules));

test("finds everything in order and writes nothing, and after a loss arms each timer exactly once, when its time comes", { timeout: 900_000 }, async () => {
  const soonCount = 300;
  await openLoaded({ firstDueInMs: 3_600_000, spreadMs: 86_400_000 }, 5);
  const before = await schedules();
  await world.spawnWorker();
  const first = await sweptAfter(0);
  expect(first.summary).toMatchObject({ waiting: timerCount, overdue: 0, unreadable: 0 });
  const second = await sweptAfter(first.revision);
  expect(second.summary).toMatchObject({ waiting: timerCount });
  expect((await schedules()).lastSequence).toBe(before.lastSequence);
  // Some of them are due within the next minutes, most of them in none of the sweeps to come.
  const started = await Promise.all(Array.from({ length: soonCount }, (_, index) => world.client.start({
    flow: { id: "soon", version: "1" }, execution: `soon-${String(index)}`, node: "wait", edges: { start: "a", elapsed: "b" },
    wait: { delayMs: 20_000 + index * 150 }, maxRetries: 0, body: Buffer.from("{}"),
  }, { awaitOutcome: true })));
  expect(started.every(({ outcome }) => outcome?.kind === "accepted")).toBe(true);
  await recreateSchedules(world);
  await until("every resume", async () => (await world.resumes()).length >= soonCount || undefined, waitMs);
  await until("every wake to be gone", async () => (await schedules()).messages === 0 || undefined, waitMs);
  const resumes = await world.resumes();
  expect(new Set(resumes.map(({ lineage }) => lineage.execution)).size).toBe(soonCount);
  for (const resume of resumes) {
    expect(resume.storedAtMs).toBeGreaterThanOrEqual(resume.dueAtMs);
    expect(resume).toMatchObject({ generation: 0, fence: 2 });
  }
  // A schedule and its wake for each of them, and nothing for those that are due later.
  expect((await schedules()).lastSequence).toBe(2 * soonCount);
});

test.each([
  { name: "killed", signal: "SIGKILL" },
  { name: "stopped", signal: "SIGSTOP" },
] as const)("the lease of a worker that is $name in its sweep is taken over, and its sweep is done by another", { timeout: 900_000 }, async ({ signal }) => {
  await openLoaded({ firstDueInMs: 3_600_000, spreadMs: 86_400_000 }, 600);
  const before = await schedules();
  const first = await world.spawnWorker({ env: { DURABLE_TIMER_WORKER_NAME: "first" } });
  const held = await until("a lease that is held", holder, waitMs);
  first.child.kill(signal);
  expect(held).toContain("first");
  // It may have come to its end just then; that is no failure, but shows nothing.
  const isCaught = await holder() === held;
  const revision = (await note(leaseKeys.sweepSummary))?.revision ?? 0;
  await world.spawnWorker({ env: { DURABLE_TIMER_WORKER_NAME: "second" } });
  const { summary } = await sweptAfter(revision);
  expect(summary).toMatchObject({ waiting: timerCount, overdue: 0 });
  if (isCaught) expect((await note(leaseKeys.sweep))?.text).toContain("second");
  first.child.kill("SIGCONT");
  await until("the lease to be free", async () => (await holder()) === undefined || undefined, waitMs);
  expect((await schedules()).lastSequence).toBe(before.lastSequence);
});
