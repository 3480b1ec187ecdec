import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { childProbeIntervalMs, childRestartMsMin } from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { WorkerPool, type PoolPlan } from "../../src/local/worker-pool.ts";
import { seededRandom } from "../../src/system/random.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { FakeLauncher } from "./fake-workers.ts";

let clock: SteppedClock;
let launcher: FakeLauncher;
let pool: WorkerPool;
let changeCount: number;

beforeEach(() => {
  clock = new SteppedClock();
  launcher = new FakeLauncher();
  changeCount = 0;
  pool = new WorkerPool({ clock, random: seededRandom(3), onNotice: () => undefined, onChange: () => { changeCount += 1; } });
});
afterEach(async () => {
  pool.kill();
  await pool.stop();
  expect(clock.sleeperCount, "sleeps left behind").toBe(0);
});

const plan = (changed: Partial<PoolPlan> = {}): PoolPlan => ({
  replicas: 2, hash: "a", launcher, minReadyMs: 0 as DurationMs, graceMs: 1_000 as DurationMs, progressDeadlineMs: 60_000 as DurationMs, ...changed,
});
const live = () => pool.facts()?.workers.map(({ slot, isUpdated }) => `${slot}${isUpdated ? "" : " old"}`);
const answer = async (...slots: string[]) => {
  for (const slot of slots) launcher.of(slot).isAnswering = true;
  await clock.advance(childProbeIntervalMs);
};

describe("a pool of workers", () => {
  it("knows nothing before anything was wanted", () => {
    expect(pool.facts()).toBeUndefined();
  });

  it("starts what is wanted and counts what is ready", async () => {
    pool.want(plan());
    await clock.advance(0);
    expect(pool.facts()).toMatchObject({ wantedReplicas: 2, hash: "a", replicas: 2, updatedReplicas: 2, readyReplicas: 0, problem: "" });
    await answer("w1");
    expect(pool.facts()?.readyReplicas).toBe(1);
    await answer("w2");
    expect(pool.facts()?.readyReplicas).toBe(2);
    expect(pool.facts()?.workers[0]).toEqual({ slot: "w1", pid: 1_000, isReady: true, isUpdated: true });
  });

  it("does nothing when the same is wanted again", async () => {
    pool.want(plan());
    await answer("w1", "w2");
    pool.want(plan());
    await clock.advance(10_000);
    expect(launcher.started).toHaveLength(2);
  });

  it("rolls a changed configuration through: new before old, one at a time", async () => {
    pool.want(plan());
    await answer("w1", "w2");
    pool.want(plan({ hash: "b" }));
    await clock.advance(0);
    expect(live()).toEqual(["w1 old", "w2 old", "w3"]);
    await answer("w3");
    expect(live()).toEqual(["w2 old", "w3", "w4"]);
    expect(launcher.of("w1").signals).toEqual(["SIGTERM"]);
    await answer("w4");
    expect(live()).toEqual(["w3", "w4"]);
    expect(pool.facts()).toMatchObject({ hash: "b", updatedReplicas: 2, readyReplicas: 2 });
  });

  it("starts a worker again that was killed, in the same slot", async () => {
    pool.want(plan());
    await answer("w1", "w2");
    launcher.of("w1").exit({ code: null, signal: "SIGKILL" });
    await clock.advance(0);
    expect(pool.facts()).toMatchObject({ replicas: 2, readyReplicas: 1, problem: "worker w1 was ended by SIGKILL" });
    await clock.advance(childRestartMsMin);
    await answer("w1");
    expect(live()).toEqual(["w1", "w2"]);
    expect(pool.facts()).toMatchObject({ readyReplicas: 2, problem: "" });
  });

  it("scales up and down", async () => {
    pool.want(plan({ replicas: 1 }));
    await answer("w1");
    pool.want(plan({ replicas: 3 }));
    await answer("w2", "w3");
    expect(pool.facts()?.readyReplicas).toBe(3);
    pool.want(plan({ replicas: 0 }));
    await clock.advance(0);
    expect(pool.facts()).toMatchObject({ wantedReplicas: 0, replicas: 0 });
  });

  it("says that a rollout is stuck once nothing has moved for the deadline, and takes it back when it moves", async () => {
    pool.want(plan());
    await clock.advance(60_000);
    expect(pool.facts()?.hasExceededDeadline).toBe(false);
    await clock.advance(1);
    expect(pool.facts()?.hasExceededDeadline).toBe(true);
    await answer("w1");
    expect(pool.facts()?.hasExceededDeadline).toBe(false);
    await answer("w2");
    await clock.advance(120_000);
    expect(pool.facts()?.hasExceededDeadline).toBe(false);
  });

  it("tells of each change", async () => {
    pool.want(plan({ replicas: 1 }));
    const before = changeCount;
    await answer("w1");
    expect(changeCount).toBeGreaterThan(before);
  });

  it("stops everything and can be wanted again", async () => {
    pool.want(plan());
    await answer("w1", "w2");
    await pool.stop();
    expect(pool.facts()).toBeUndefined();
    expect(launcher.started.every(({ signals }) => signals[0] === "SIGTERM")).toBe(true);
    pool.want(plan({ replicas: 1 }));
    await answer("w3");
    expect(live()).toEqual(["w3"]);
  });
});
