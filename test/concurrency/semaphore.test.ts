import { expect, test } from "vitest";
import { Semaphore } from "../../src/concurrency/semaphore.ts";

test("permits beyond the limit wait, and are served in order", async () => {
  const semaphore = new Semaphore(1);
  const first = await semaphore.acquire();
  const order: string[] = [];
  const second = semaphore.acquire().then((release) => (order.push("second"), release));
  const third = semaphore.acquire().then((release) => (order.push("third"), release));
  expect(semaphore.waitingCount).toBe(2);
  first?.();
  (await second)?.();
  (await third)?.();
  expect(order).toEqual(["second", "third"]);
  expect(semaphore.heldCount).toBe(0);
});

test("releasing twice gives back one permit", async () => {
  const semaphore = new Semaphore(2);
  const first = await semaphore.acquire();
  await semaphore.acquire();
  first?.();
  first?.();
  expect(semaphore.heldCount).toBe(1);
});

test("a waiter whose signal aborts leaves the line and takes no permit", async () => {
  const semaphore = new Semaphore(1);
  const held = await semaphore.acquire();
  const controller = new AbortController();
  const waiting = semaphore.acquire(controller.signal);
  controller.abort();
  expect(await waiting).toBeUndefined();
  held?.();
  expect(semaphore.heldCount).toBe(0);
  expect(semaphore.tryAcquire()).toBeDefined();
  expect(semaphore.tryAcquire()).toBeUndefined();
});
