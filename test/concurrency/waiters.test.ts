import { expect, test } from "vitest";
import { WaiterList } from "../../src/concurrency/waiters.ts";

test("waiters are served in the order in which they came", async () => {
  const list = new WaiterList<string>();
  const waits = [list.wait(), list.wait()];
  expect(list.serve("a")).toBe(true);
  expect(list.serve("b")).toBe(true);
  expect(list.serve("c"), "nobody waits any more").toBe(false);
  expect(await Promise.all(waits)).toEqual(["a", "b"]);
});

test("a waiter that was served does not leave a listener on its signal", async () => {
  const list = new WaiterList<string>();
  const controller = new AbortController();
  const wait = list.wait(controller.signal);
  list.serve("a");
  controller.abort();
  expect(await wait).toBe("a");
  expect(list.size).toBe(0);
});

test("an aborted signal never joins the line", async () => {
  const list = new WaiterList<string>();
  expect(await list.wait(AbortSignal.abort())).toBeUndefined();
  expect(list.size).toBe(0);
});

test("dismissing sends everyone away empty-handed", async () => {
  const list = new WaiterList<string>();
  const waits = [list.wait(), list.wait()];
  list.dismiss();
  expect(await Promise.all(waits)).toEqual([undefined, undefined]);
});
