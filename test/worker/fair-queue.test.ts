import { expect, test } from "vitest";
import { FairQueue } from "../../src/worker/fair-queue.ts";

const item = (flow: string, ref: string, bytes = 1) => ({ key: { flow, ref }, bytes });
const refs = (items: readonly { readonly key: { readonly ref: string } }[]) => items.map(({ key }) => key.ref);
const all = { countMax: 100, bytesMax: 1_000 };

test("a flood of one flow leaves every second place to another", () => {
  const queue = new FairQueue();
  for (let i = 0; i < 10; i += 1) queue.push(item("flood", `f${String(i)}`));
  queue.push(item("quiet", "q0"));
  queue.push(item("quiet", "q1"));
  expect(refs(queue.take({ countMax: 4, bytesMax: 1_000 }))).toEqual(["f0", "q0", "f1", "q1"]);
});

test("a second item of a timer waits until the first is done", () => {
  const queue = new FairQueue();
  queue.push(item("a", "t"));
  queue.push(item("a", "t"));
  queue.push(item("a", "u"));
  expect(refs(queue.take(all))).toEqual(["t", "u"]);
  expect(queue.take(all)).toEqual([]);
  queue.done({ flow: "a", ref: "t" });
  expect(refs(queue.take(all))).toEqual(["t"]);
  expect(queue.size()).toBe(0);
});

test("what waits for one timer is taken in order, and leaves the rest of its flow", () => {
  const queue = new FairQueue<ReturnType<typeof item>>();
  for (const [ref, bytes] of [["t", 1], ["u", 2], ["t", 3], ["t", 4]] as const) queue.push(item("a", ref, bytes));
  expect(refs(queue.take({ countMax: 1, bytesMax: 1_000 }))).toEqual(["t"]);
  expect(queue.takeWaiting({ flow: "a", ref: "t" }).map(({ bytes }) => bytes)).toEqual([3, 4]);
  expect([queue.size(), queue.takeWaiting({ flow: "a", ref: "t" }), queue.takeWaiting({ flow: "b", ref: "t" })]).toEqual([1, [], []]);
  queue.done({ flow: "a", ref: "t" });
  expect(refs(queue.take(all))).toEqual(["u"]);
  expect(queue.takeWaiting({ flow: "a", ref: "u" })).toEqual([]);
});

test("a batch ends before it exceeds its bytes, but is never empty for them", () => {
  const queue = new FairQueue();
  queue.push(item("a", "big", 5_000));
  queue.push(item("a", "small", 1));
  expect(refs(queue.take(all))).toEqual(["big"]);
  expect(refs(queue.take(all))).toEqual(["small"]);
});

test("keeping and draining see what is not out", () => {
  const queue = new FairQueue();
  for (const ref of ["x", "y", "z"]) queue.push(item("a", ref));
  queue.take({ countMax: 1, bytesMax: 1_000 });
  queue.keep(({ key }) => key.ref === "z");
  expect(refs(queue.drain())).toEqual(["z"]);
  expect(queue.size()).toBe(0);
});
