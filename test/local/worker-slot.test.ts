import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { childProbeFailureCountMax, childProbeIntervalMs, childRecheckIntervalMs, childRestartMsMax, childRestartMsMin, childSettledMs } from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { WorkerSlot, type WorkerNotice } from "../../src/local/worker-slot.ts";
import { seededRandom } from "../../src/system/random.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { FakeLauncher } from "./fake-workers.ts";

const minReadyMs = 2_000 as DurationMs;
const graceMs = 10_000 as DurationMs;

let clock: SteppedClock;
let launcher: FakeLauncher;
let notices: WorkerNotice[];
let hurry: AbortController;
let slot: WorkerSlot;
let running: Promise<void>;

beforeEach(async () => {
  clock = new SteppedClock();
  launcher = new FakeLauncher();
  notices = [];
  hurry = new AbortController();
  slot = new WorkerSlot({ slot: "w1", hash: "a", launcher, minReadyMs, graceMs, clock, random: seededRandom(7), onNotice: (notice) => { notices.push(notice); }, onChange: () => undefined });
  running = slot.run(hurry.signal);
  await clock.advance(0);
});
afterEach(async () => {
  slot.kill();
  await running;
  expect(clock.sleeperCount, "sleeps left behind").toBe(0);
});

const restarts = () => notices.flatMap((notice) => (notice.kind === "worker_exited" ? [notice.restartMs] : []));
const becomeReady = async () => {
  launcher.of("w1").isAnswering = true;
  await clock.advance(childProbeIntervalMs);
};

describe("a worker slot", () => {
  it("is ready when its worker says so, and available once that has lasted", async () => {
    expect(slot.pid).toBe(1_000);
    expect([slot.isReady, slot.isAvailable]).toEqual([false, false]);
    await becomeReady();
    expect([slot.isReady, slot.isAvailable]).toEqual([true, false]);
    await clock.advance(minReadyMs - childProbeIntervalMs);
    expect(slot.isAvailable).toBe(false);
    await clock.advance(childProbeIntervalMs);
    expect(slot.isAvailable).toBe(true);
    expect(notices.map(({ kind }) => kind)).toEqual(["worker_started", "worker_ready"]);
  });

  it("starts its worker again after a delay when it is killed, and says why", async () => {
    await becomeReady();
    launcher.of("w1").exit({ code: null, signal: "SIGKILL" });
    await clock.advance(0);
    expect([slot.isReady, slot.pid]).toEqual([false, undefined]);
    expect(slot.problem).toBe("worker w1 was ended by SIGKILL");
    await clock.advance(childRestartMsMin);
    expect(slot.pid).toBe(1_001);
    await becomeReady();
    expect(slot.problem).toBe("");
  });

  it("waits longer after each failure in a row, up to the longest delay", async () => {
    for (let count = 0; count < 12; count += 1) {
      launcher.of("w1").exit({ code: 1, signal: null });
      await clock.advance(childRestartMsMax);
    }
    const delays = restarts();
    expect(delays).toHaveLength(12);
    expect(delays[0]).toBeLessThanOrEqual(childRestartMsMin);
    expect(delays.at(-1)).toBeGreaterThanOrEqual(childRestartMsMax / 2);
    expect(Math.max(...delays)).toBeLessThanOrEqual(childRestartMsMax);
  });

  it("forgets failures once its worker has been ready for a while", async () => {
    for (let count = 0; count < 6; count += 1) {
      launcher.of("w1").exit({ code: 1, signal: null });
      await clock.advance(childRestartMsMax);
    }
    await becomeReady();
    await clock.advance(childSettledMs + childRecheckIntervalMs);
    launcher.of("w1").exit({ code: 1, signal: null });
    await clock.advance(0);
    expect(restarts().at(-1)).toBeLessThanOrEqual(childRestartMsMin);
  });

  it("treats a program that cannot be started like one that ends at once", async () => {
    launcher.failureCount = 2;
    launcher.of("w1").exit({ code: 1, signal: null });
    await clock.advance(childRestartMsMax);
    await clock.advance(childRestartMsMax);
    expect(notices.filter(({ kind }) => kind === "worker_exited")).toHaveLength(3);
    expect(slot.pid).toBe(1_001);
  });

  it("overlooks a missed answer, and is unready after several in a row, without a restart", async () => {
    await becomeReady();
    await clock.advance(minReadyMs + childRecheckIntervalMs);
    launcher.of("w1").isAnswering = false;
    await clock.advance(childRecheckIntervalMs);
    expect(slot.isReady).toBe(true);
    await clock.advance(childRecheckIntervalMs * childProbeFailureCountMax);
    expect([slot.isReady, slot.isAvailable, slot.problem]).toEqual([false, false, "worker w1 is no longer ready"]);
    expect(launcher.started).toHaveLength(1);
    await becomeReady();
    expect(slot.isReady).toBe(true);
  });

  it("stops its worker in order and starts nothing more", async () => {
    await becomeReady();
    slot.stop();
    await running;
    expect(launcher.of("w1").signals).toEqual(["SIGTERM"]);
    expect(launcher.started).toHaveLength(1);
    expect(notices.at(-1)).toEqual({ kind: "worker_stopped", slot: "w1" });
  });

  it("ends a worker that does not stop within its grace, not earlier", async () => {
    const worker = launcher.of("w1");
    worker.isPolite = false;
    slot.stop();
    await clock.advance(graceMs - 1);
    expect(worker.signals).toEqual(["SIGTERM"]);
    await clock.advance(1);
    await running;
    expect(worker.signals).toEqual(["SIGTERM", "SIGKILL"]);
  });

  it("cuts the grace short when there is a hurry", async () => {
    const worker = launcher.of("w1");
    worker.isPolite = false;
    slot.stop();
    await clock.advance(0);
    hurry.abort();
    await running;
    expect(worker.signals).toEqual(["SIGTERM", "SIGKILL"]);
  });

  it("stops while it waits to start again", async () => {
    launcher.of("w1").exit({ code: 1, signal: null });
    await clock.advance(0);
    slot.stop();
    await running;
    expect(launcher.started).toHaveLength(1);
  });
});
