import { expect, test } from "vitest";
import type { DurationMs } from "../../src/base/units.ts";
import { KeyedQueue, type QueueTurn } from "../../src/concurrency/keyed-queue.ts";
import { seededRandom } from "../../src/system/random.ts";
import { SteppedClock } from "../fakes/clock.ts";

const ms = (value: number): DurationMs => value as DurationMs;

function setUp(keyCountMax = 10): { readonly clock: SteppedClock; readonly queue: KeyedQueue } {
  const clock = new SteppedClock();
  const backoff = { minMs: ms(100), maxMs: ms(1_000) };
  return { clock, queue: new KeyedQueue({ clock, random: seededRandom(1), backoff, keyCountMax }) };
}

async function turnOf(queue: KeyedQueue): Promise<QueueTurn> {
  const turn = await queue.take(AbortSignal.timeout(1_000));
  if (turn === undefined) throw new Error("expected a key to be due");
  return turn;
}

test("a key that waits is not added twice", async () => {
  const { queue } = setUp();
  queue.add("a");
  queue.add("b");
  queue.add("a");
  expect([(await turnOf(queue)).key, (await turnOf(queue)).key]).toEqual(["a", "b"]);
  expect(queue.waitingCount).toBe(0);
});

test("a key that changes while it runs runs once more, and not before its turn has ended", async () => {
  const { queue } = setUp();
  queue.add("a");
  const turn = await turnOf(queue);
  queue.add("a");
  queue.add("a");
  expect(queue.waitingCount, "one key never runs twice at once").toBe(0);
  queue.finish(turn, { kind: "done" });
  queue.finish(await turnOf(queue), { kind: "done" });
  expect([queue.waitingCount, queue.delayedCount, queue.runningCount]).toEqual([0, 0, 0]);
});

test("a change during a turn wins over the time for which the turn asked", async () => {
  const { clock, queue } = setUp();
  queue.add("a");
  const turn = await turnOf(queue);
  queue.add("a");
  queue.finish(turn, { kind: "done", requeueAfterMs: ms(5_000) });
  expect(queue.waitingCount).toBe(1);
  expect(clock.sleeperCount, "no second turn is left for later").toBe(0);
});

test("a done turn returns after the time for which it asked", async () => {
  const { clock, queue } = setUp();
  queue.add("a");
  queue.finish(await turnOf(queue), { kind: "done", requeueAfterMs: ms(5_000) });
  await clock.advance(4_999);
  expect(queue.waitingCount).toBe(0);
  await clock.advance(1);
  expect(queue.waitingCount).toBe(1);
});

test("failures double the wait, and success forgets them", async () => {
  const { clock, queue } = setUp();
  queue.add("a");
  const waits: number[] = [];
  for (let count = 0; count < 6; count += 1) {
    const turn = await turnOf(queue);
    expect(turn.failureCount).toBe(count);
    queue.finish(turn, { kind: "failed" });
    const waitMs = clock.nextWakeMs ?? 0;
    waits.push(waitMs);
    await clock.advance(waitMs);
  }
  const steps = [100, 200, 400, 800, 1_000, 1_000];
  steps.forEach((stepMs, index) => {
    expect(waits[index], `failure ${index + 1}`).toBeGreaterThanOrEqual(stepMs / 2);
    expect(waits[index], `failure ${index + 1}`).toBeLessThanOrEqual(stepMs);
  });
  queue.finish(await turnOf(queue), { kind: "done" });
  queue.add("a");
  expect((await turnOf(queue)).failureCount).toBe(0);
});

test("a failed key waits at least as long as the server asked", async () => {
  const { clock, queue } = setUp();
  queue.add("a");
  queue.finish(await turnOf(queue), { kind: "failed", delayMsMin: ms(7_000) });
  expect(clock.nextWakeMs).toBe(7_000);
});

test("a change brings a failed key back at once, and its failures are remembered", async () => {
  const { clock, queue } = setUp();
  queue.add("a");
  queue.finish(await turnOf(queue), { kind: "failed" });
  queue.add("a");
  expect((await turnOf(queue)).failureCount).toBe(1);
  expect(clock.sleeperCount, "the delayed turn is cancelled").toBe(0);
});

test("of two delayed adds the sooner one counts", async () => {
  const { clock, queue } = setUp();
  queue.addAfter("a", ms(500));
  queue.addAfter("a", ms(900));
  queue.addAfter("a", ms(300));
  expect(queue.delayedCount).toBe(1);
  await clock.advance(300);
  expect(queue.waitingCount).toBe(1);
  expect(clock.sleeperCount).toBe(0);
});

test("a delayed add that comes due while its key runs makes it run once more", async () => {
  const { clock, queue } = setUp();
  queue.add("a");
  const turn = await turnOf(queue);
  queue.addAfter("a", ms(100));
  await clock.advance(100);
  expect(queue.waitingCount).toBe(0);
  queue.finish(turn, { kind: "done" });
  expect(queue.waitingCount).toBe(1);
});

test("several takers get different keys, and the wait of each is measured", async () => {
  const { clock, queue } = setUp();
  const takers = [queue.take(), queue.take()];
  queue.add("a");
  queue.add("b");
  queue.add("c");
  await clock.advance(250);
  expect((await Promise.all(takers)).map((turn) => turn?.key)).toEqual(["a", "b"]);
  expect(await turnOf(queue)).toEqual({ key: "c", failureCount: 0, waitedMs: 250 });
});

test("a full queue refuses unknown keys and never loses a known one", async () => {
  const { clock, queue } = setUp(2);
  queue.add("a");
  queue.addAfter("b", ms(100));
  expect(queue.add("c")).toBe(false);
  expect(queue.addAfter("c", ms(1))).toBe(false);
  expect(queue.add("a")).toBe(true);
  await clock.advance(100);
  expect(queue.waitingCount).toBe(2);
});

test("stopping sends takers away, cancels what is delayed and lets running turns end", async () => {
  const { clock, queue } = setUp();
  queue.add("a");
  const turn = await turnOf(queue);
  queue.addAfter("b", ms(100));
  const taker = queue.take();
  queue.stop();
  expect(await taker).toBeUndefined();
  queue.finish(turn, { kind: "failed" });
  expect([queue.waitingCount, queue.delayedCount, queue.runningCount, clock.sleeperCount]).toEqual([0, 0, 0, 0]);
  expect(queue.add("c")).toBe(false);
  expect(await queue.take()).toBeUndefined();
});

test("finishing a turn twice is a bug", async () => {
  const { queue } = setUp();
  queue.add("a");
  const turn = await turnOf(queue);
  queue.finish(turn, { kind: "done" });
  expect(() => queue.finish(turn, { kind: "done" })).toThrow("a turn that is finished once");
});
