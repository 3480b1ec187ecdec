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
