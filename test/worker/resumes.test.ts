import { describe, expect, test } from "vitest";
import { workerBatchBytesMax } from "../../src/base/limits.ts";
import type { MonotonicMs } from "../../src/base/units.ts";
import { publishResumes } from "../../src/worker/resumes.ts";
import type { Progress } from "../../src/worker/write-job.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { elapsedRecord, testTimer } from "../fakes/timers.ts";
import { FakeBroker } from "../fakes/worker-ports.ts";
import { sha256 } from "../timer/records.ts";

function setUp(indices: readonly number[], payloadBytes?: number) {
  const clock = new SteppedClock();
  const broker = new FakeBroker(clock);
  const timers = indices.map((index) => testTimer(index));
  for (const { key, snapshot } of timers) broker.snapshots.set(key, snapshot);
  const due = timers.map((timer): Progress => ({ job: { key: timer.key, record: elapsedRecord(timer, payloadBytes === undefined ? {} : { payloadBytes }), writes: ["resume"] } }));
  const publish = () => publishResumes({ ports: broker.ports, clock, sha256, decidedAtMs: 0 as MonotonicMs }, due);
  return { broker, timers, due, publish };
}

describe("resumes", () => {
  test("carry the snapshots' bodies", async () => {
    const { broker, timers, publish } = setUp([1, 2]);
    await publish();
    expect(broker.resumes.map(({ body }) => body)).toEqual(timers.map(({ snapshot }) => snapshot.body));
  });

  test("whose bodies are large are read in portions", async () => {
    const { broker, publish } = setUp([1, 2, 3], workerBatchBytesMax - 1);
    let readCount = 0;
    const read = broker.ports.snapshots.read.bind(broker.ports.snapshots);
    Object.assign(broker.ports.snapshots, { read: (...args: Parameters<typeof read>) => { readCount += 1; return read(...args); } });
    await publish();
    expect(readCount).toBe(3);
    expect(broker.resumes).toHaveLength(3);
  });

  test("take the leader's body when a replica's does not match", async () => {
    const { broker, publish } = setUp([1]);
    broker.staleReads.replica = 1;
    await publish();
    expect(broker.resumes).toHaveLength(1);
  });

  test.each([
    ["is missing", (broker: FakeBroker, key: Progress["job"]["key"]) => { broker.snapshots.delete(key); }, { kind: "corrupt", problem: "the snapshot is missing" }],
    ["has other bytes", (broker: FakeBroker, key: Progress["job"]["key"]) => { broker.snapshots.set(key, { contextHeader: "", body: Uint8Array.of(9) }); }, { kind: "corrupt", problem: "the snapshot's body does not match its hash" }],
    ["cannot be read now", (broker: FakeBroker) => { broker.faults.failAll("snapshots.read"); }, { kind: "again", at: "resume" }],
  ])("are not published for a snapshot that %s, and others go on", async (_name, spoil, want) => {
    const { broker, due, publish } = setUp([1, 2]);
    const [first] = due;
    if (first === undefined) throw new Error("a first");
    spoil(broker, first.job.key);
    await publish();
    expect(first.result).toMatchObject(want);
    expect(broker.resumes).toHaveLength(want.kind === "again" ? 0 : 1);
  });
});
