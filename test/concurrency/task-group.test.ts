import { expect, test } from "vitest";
import { InvariantError } from "../../src/base/assert.ts";
import { TaskGroup } from "../../src/concurrency/task-group.ts";

const untilAbort = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

test("join waits for every task, also for those started later", async () => {
  const group = new TaskGroup();
  const ended: string[] = [];
  group.spawn("outer", async () => {
    await Promise.resolve();
    group.spawn("inner", async () => {
      await Promise.resolve();
      ended.push("inner");
    });
    ended.push("outer");
  });
  await group.join();
  expect(ended).toEqual(["outer", "inner"]);
  expect(group.runningCount).toBe(0);
});

test("the first failure stops the others and is what join reports", async () => {
  const group = new TaskGroup();
  let wasStopped = false;
  const bug = new InvariantError("expected: no bug");
  group.spawn("waiting", async (signal) => {
    await untilAbort(signal);
    wasStopped = true;
    throw new Error("consequence");
  });
  group.spawn("failing", () => Promise.reject(bug));
  await expect(group.join()).rejects.toMatchObject({ message: "run task failing", cause: bug });
  expect(wasStopped).toBe(true);
});

test("the parent's abort ends the group without a failure", async () => {
  const parent = new AbortController();
  const group = new TaskGroup(parent.signal);
  group.spawn("polite", untilAbort);
  group.spawn("throwing", async (signal) => {
    await untilAbort(signal);
    signal.throwIfAborted();
  });
  parent.abort();
  await group.join();
  expect(group.signal.aborted).toBe(true);
});

test("a real failure while the group is being stopped is not hidden", async () => {
  const group = new TaskGroup(AbortSignal.abort());
  group.spawn("failing", () => Promise.reject(new Error("disk full")));
  await expect(group.join()).rejects.toThrow("run task failing");
});
