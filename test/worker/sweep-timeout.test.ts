import { describe, expect, test } from "vitest";
import { feedbackTimeoutMsMin, sweepTimeoutCountMax } from "../../src/base/limits.ts";
import { decodeRecord, encodeRecord } from "../../src/protocol/record-codec.ts";
import type { FeedbackPolicy } from "../../src/timer/decide-timeout.ts";
import { elapsedRecord, terminalRecord, testTimer, type TestTimer } from "../fakes/timers.ts";
import { SweepWorld, many, nextSweepMs, oneSweepMs } from "./sweep-world.ts";

const policy = (onTimeout: FeedbackPolicy["onTimeout"]): FeedbackPolicy => ({ timeoutMs: feedbackTimeoutMsMin, onTimeout });

/** A world in which nothing is owed, and timers whose time is up. */
async function unanswered(onTimeout: FeedbackPolicy["onTimeout"], count = 1) {
  const world = new SweepWorld(policy(onTimeout));
  await world.settleFirst();
  const timers = many(count).map((timer) => world.put(timer, elapsedRecord(timer)));
  world.broker.walkBatchSize = Math.max(world.broker.walkBatchSize, count);
  await world.clock.advance(60_000 + feedbackTimeoutMsMin);
  return { world, timers, timer: timers[0] ?? testTimer(0), [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

const recordOf = (world: SweepWorld, { key }: TestTimer) => {
  const stored = world.broker.state.last(key)?.value;
  const decoded = stored === undefined ? undefined : decodeRecord(stored);
  return decoded?.ok === true ? decoded.record : undefined;
};

describe("timers whose feedback does not come", () => {
  test("are counted with the age of the oldest, and nothing else, when the policy is none", async () => {
    await using scene = await unanswered("none");
    const { world, timer } = scene;
    const metrics = await world.sweep("w1");
    expect(metrics.found).toMatchObject({ elapsed: 1, unanswered: 1, oldestElapsedMs: world.summary()?.oldestElapsedMs });
    expect(world.summary()?.oldestElapsedMs).toBeGreaterThanOrEqual(feedbackTimeoutMsMin);
    expect([...metrics.counts.keys()].filter((name) => name.startsWith("sweep "))).toEqual([]);
    expect(recordOf(world, timer)).toEqual(elapsedRecord(timer));
    expect(world.broker.resumes).toEqual([]);
  });

  test("are ended and archived with exactly their last bytes when the policy is to fail them", async () => {
    await using scene = await unanswered("fail");
    const { world, timer } = scene;
    const metrics = await world.sweep("w1");
    expect(metrics.count("sweep timed_out")).toBe(1);
    const archived = world.broker.archive.last(timer.key)?.value;
    const decoded = decodeRecord(archived ?? new Uint8Array());
    const want = { phase: "terminal", outcome: "failed", generation: 0, fence: 3, failure: { code: "feedback_timeout" }, elapsedAtMs: elapsedRecord(timer).elapsedAtMs };
    expect(decoded).toMatchObject({ ok: true, record: want });
    expect(decoded.ok && encodeRecord(decoded.record)).toEqual(archived);
    expect(recordOf(world, timer)).toBeUndefined();
    expect(world.broker.resumes).toEqual([]);
  });

  test("are resumed again once, with the same fence, and go on waiting for feedback", async () => {
    await using scene = await unanswered("resume_again");
    const { world, timer } = scene;
    const { metrics } = world.start("w1");
    await world.clock.advance(oneSweepMs);
    expect(metrics.count("sweep resumed_again")).toBe(1);
    const noted = recordOf(world, timer);
    expect(noted).toMatchObject({ phase: "elapsed", generation: 0, fence: 2 });
    expect(world.broker.resumes.map(({ record }) => record)).toEqual([noted]);
    for (let sweepCount = 0; sweepCount < 4; sweepCount += 1) await world.clock.advance(nextSweepMs);
    expect(metrics.sweeps.length).toBeGreaterThanOrEqual(4);
    expect(world.broker.resumes).toHaveLength(1);
    expect(metrics.found).toMatchObject({ elapsed: 1, unanswered: 1 });
  });

  test("whose resume was noted and not published are resumed by the next sweep, whoever does it", async () => {
    await using scene = await unanswered("resume_again");
    const { world, timer } = scene;
    world.broker.faults.failAll("resumes.publish");
    expect((await world.sweep("w1")).sweeps).toEqual(["incomplete"]);
    expect(recordOf(world, timer)).toHaveProperty("resumedAgainAtMs");
    expect(world.broker.resumes).toEqual([]);
    world.broker.faults.heal();
    const { metrics } = world.start("w2");
    await world.clock.advance(oneSweepMs);
    expect(metrics.count("sweep resumed")).toBe(1);
    expect(world.broker.resumes).toHaveLength(1);
    await world.clock.advance(2 * nextSweepMs);
    expect(world.broker.resumes).toHaveLength(1);
  });

  test("whose feedback wins the race are left to it", async () => {
    await using scene = await unanswered("fail");
    const { world, timer } = scene;
    const read = world.broker.ports.state.read.bind(world.broker.ports.state);
    world.broker.ports.state.read = async (keys, from) => {
      const reads = await read(keys, from);
      world.broker.state.set(timer.key, encodeRecord(terminalRecord(timer)));
      return reads;
    };
    const metrics = await world.sweep("w1");
    expect(metrics.count("sweep superseded")).toBe(1);
    expect(metrics.count("sweep timed_out")).toBe(0);
    expect(metrics.sweeps).toEqual(["completed"]);
    expect(recordOf(world, timer)).toEqual(terminalRecord(timer));
    expect(world.broker.archive.last(timer.key)).toBeUndefined();
  });

  test("of which many come at once are taken on in bounded numbers", async () => {
    await using scene = await unanswered("resume_again", sweepTimeoutCountMax + 3);
    const { world } = scene;
    const { metrics } = world.start("w1");
    await world.clock.advance(oneSweepMs);
    expect(metrics.count("sweep resumed_again")).toBe(sweepTimeoutCountMax);
    await world.clock.advance(nextSweepMs);
    expect(metrics.count("sweep resumed_again")).toBe(sweepTimeoutCountMax + 3);
  });
});
