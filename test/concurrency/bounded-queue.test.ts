import { expect, test } from "vitest";
import { BoundedQueue } from "../../src/concurrency/bounded-queue.ts";
import { settle } from "../fakes/clock.ts";

test("items leave in the order in which they came", async () => {
  const queue = new BoundedQueue<number>({ sizeMax: 4 });
  for (const item of [1, 2, 3]) await queue.put(item);
  expect([await queue.take(), await queue.take(), await queue.take()]).toEqual([1, 2, 3]);
});

test("a producer waits while the queue is full", async () => {
  const queue = new BoundedQueue<number>({ sizeMax: 1 });
  await queue.put(1);
  expect(queue.tryPut(2)).toBe(false);
  let isIn = false;
  const putting = queue.put(2).then((result) => {
    isIn = true;
    return result;
  });
  await settle();
  expect(isIn).toBe(false);
  expect(await queue.take()).toBe(1);
  expect(await putting).toBe(true);
  expect(await queue.take()).toBe(2);
});

test("a consumer waits while the queue is empty", async () => {
  const queue = new BoundedQueue<string>({ sizeMax: 1 });
  const taking = queue.take();
  queue.tryPut("a");
  expect(await taking).toBe("a");
  expect(queue.size, "what went straight to a consumer takes no room").toBe(0);
});

test("takeMany returns what is there, at most as many as asked for, and lets as many producers in", async () => {
  const queue = new BoundedQueue<number>({ sizeMax: 2 });
  const puts = [1, 2, 3, 4].map((item) => queue.put(item));
  expect(await queue.takeMany(2)).toEqual([1, 2]);
  expect(await Promise.all(puts)).toEqual([true, true, true, true]);
  expect(await queue.takeMany(10)).toEqual([3, 4]);
});

test("a closed queue refuses producers and can be emptied", async () => {
  const queue = new BoundedQueue<number>({ sizeMax: 1 });
  await queue.put(1);
  const waiting = queue.put(2);
  queue.close();
  expect(await waiting).toBe(false);
  expect(await queue.put(3)).toBe(false);
  expect(await queue.take()).toBe(1);
  expect(await queue.take()).toBeUndefined();
  expect(await queue.takeMany(5)).toEqual([]);
});

test("a consumer that waits is sent away when its signal aborts", async () => {
  const queue = new BoundedQueue<number>({ sizeMax: 1 });
  const controller = new AbortController();
  const taking = queue.take(controller.signal);
  controller.abort();
  expect(await taking).toBeUndefined();
  queue.tryPut(1);
  expect(await queue.take(), "the aborted consumer swallowed nothing").toBe(1);
});

test("room offered to a producer that gives up goes to the next one", async () => {
  const queue = new BoundedQueue<number>({ sizeMax: 1 });
  await queue.put(1);
  const controller = new AbortController();
  const first = queue.put(2, controller.signal);
  const second = queue.put(3);
  const taken = queue.take();
  controller.abort();
  expect(await taken).toBe(1);
  const outcomes = [await first, await second];
  expect(outcomes).toEqual([false, true]);
});
