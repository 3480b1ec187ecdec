import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nextRollStep, type RollStep, type WantedWorkers, type WorkerView } from "../../src/local/roll.ts";

const worker = (text: string): WorkerView => {
  const [slot = "", hash = "", state = ""] = text.split(" ");
  return { slot, hash, isAvailable: state === "available" || state === "stopping", isStopping: state === "stopping" };
};

type Row = { readonly name: string; readonly workers: readonly string[]; readonly wanted: WantedWorkers; readonly step: RollStep; readonly because: string };

const nothing: RollStep = { startCount: 0, stopSlots: [] };
const rows: Row[] = [
  { name: "already as wanted", workers: ["w1 a available", "w2 a available"], wanted: { replicas: 2, hash: "a" }, step: nothing, because: "an unchanged resource starts and stops nothing" },
  { name: "none yet", workers: [], wanted: { replicas: 2, hash: "a" }, step: { startCount: 2, stopSlots: [] }, because: "the first workers start together" },
  { name: "starting", workers: ["w1 a", "w2 a"], wanted: { replicas: 2, hash: "a" }, step: nothing, because: "a worker that is not ready yet counts as started" },
  { name: "one more wanted", workers: ["w1 a available"], wanted: { replicas: 3, hash: "a" }, step: { startCount: 2, stopSlots: [] }, because: "scaling up needs no surge" },
  { name: "one fewer wanted", workers: ["w1 a available", "w2 a available", "w3 a"], wanted: { replicas: 2, hash: "a" }, step: { startCount: 0, stopSlots: ["w3"] }, because: "the one that serves nothing goes first" },
  { name: "two fewer wanted", workers: ["w1 a available", "w2 a available", "w3 a available"], wanted: { replicas: 1, hash: "a" }, step: { startCount: 0, stopSlots: ["w2", "w3"] }, because: "the youngest go" },
  { name: "scaled to zero", workers: ["w1 a available", "w2 a"], wanted: { replicas: 0, hash: "a" }, step: { startCount: 0, stopSlots: ["w1", "w2"] }, because: "zero is zero" },
  { name: "a changed configuration", workers: ["w1 a available", "w2 a available"], wanted: { replicas: 2, hash: "b" }, step: { startCount: 1, stopSlots: [] }, because: "new before old" },
  { name: "the new one starting", workers: ["w1 a available", "w2 a available", "w3 b"], wanted: { replicas: 2, hash: "b" }, step: nothing, because: "no old one stops before the new one is ready, and only one is extra" },
  { name: "the new one ready", workers: ["w1 a available", "w2 a available", "w3 b available"], wanted: { replicas: 2, hash: "b" }, step: { startCount: 1, stopSlots: ["w1"] }, because: "a ready new one replaces the oldest" },
  { name: "the last old one", workers: ["w2 a available", "w3 b available", "w4 b available"], wanted: { replicas: 2, hash: "b" }, step: { startCount: 0, stopSlots: ["w2"] }, because: "both new ones are ready" },
  { name: "an old one that stops", workers: ["w1 a stopping", "w2 b available"], wanted: { replicas: 1, hash: "b" }, step: nothing, because: "what is stopping is nobody's business any more" },
  { name: "old ones that never became ready", workers: ["w1 a", "w2 a"], wanted: { replicas: 2, hash: "b" }, step: { startCount: 2, stopSlots: ["w1", "w2"] }, because: "a broken configuration must not block its correction" },
  { name: "a change and fewer wanted", workers: ["w1 a available", "w2 a available", "w3 a available"], wanted: { replicas: 1, hash: "b" }, step: { startCount: 1, stopSlots: ["w1", "w2"] }, because: "one stays until the new one is ready" },
  { name: "a change and zero wanted", workers: ["w1 a available"], wanted: { replicas: 0, hash: "b" }, step: { startCount: 0, stopSlots: ["w1"] }, because: "nothing has to take its place" },
];

describe("nextRollStep", () => {
  it.each(rows)("$name: $because", ({ workers, wanted, step }) => {
    expect(nextRollStep(workers.map(worker), wanted)).toEqual(step);
  });

  it("always arrives, one worker too many at most, and never below the wanted number of ready ones once it was reached", () => {
    const target = fc.record({ replicas: fc.integer({ min: 0, max: 4 }), hash: fc.constantFrom("a", "b") });
    fc.assert(
      fc.property(fc.array(target, { minLength: 1, maxLength: 4 }), (targets) => {
        let workers: WorkerView[] = [];
        for (const wanted of targets) workers = rollOut(workers, wanted);
      }),
    );
  });
});

let startedCount = 0;

/** Rolls to the end: each round does one step, then everything that starts is ready and everything that stops is gone. */
function rollOut(from: readonly WorkerView[], wanted: WantedWorkers): WorkerView[] {
  let workers = [...from];
  const floor = Math.min(wanted.replicas, workers.length);
  for (let round = 0; round < 30; round += 1) {
    const step = nextRollStep(workers, wanted);
    if (step.startCount === 0 && step.stopSlots.length === 0) {
      expect(workers).toHaveLength(wanted.replicas);
      expect(workers.every(({ hash, isAvailable }) => hash === wanted.hash && isAvailable)).toBe(true);
      return workers;
    }
    workers = workers.filter(({ slot }) => !step.stopSlots.includes(slot));
    expect(workers.filter(({ isAvailable }) => isAvailable).length, "ready workers").toBeGreaterThanOrEqual(floor);
    const started = Array.from({ length: step.startCount }, () => ({ slot: `w${String((startedCount += 1))}`, hash: wanted.hash, isAvailable: false, isStopping: false }));
    expect(workers.length + started.length, "workers at once").toBeLessThanOrEqual(Math.max(wanted.replicas + 1, from.length));
    workers = [...workers, ...started].map((each) => ({ ...each, isAvailable: true }));
  }
  throw new Error("did not arrive");
}
