import { describe, expect, test } from "vitest";
import { decisionAgeMsMax } from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { writeContext, type StartContext } from "../../src/protocol/context.ts";
import { startInput } from "../../src/protocol/command.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import type { Basis } from "../../src/timer/decision.ts";
import { payloadHash, receiptHash } from "../../src/timer/hashes.ts";
import { timerKey } from "../../src/timer/identity.ts";
import type { FeedbackInput, TimerInput } from "../../src/timer/input.ts";
import type { FeedbackVerb, TimerRecord } from "../../src/timer/record.ts";
import { step, type StepResult, type Work } from "../../src/worker/step.ts";
import { Crash, type WriteOperation } from "../fakes/faults.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { FakeBroker } from "../fakes/worker-ports.ts";
import { hash, lineage, sha256 } from "../timer/records.ts";

const body = Uint8Array.of(0, 255, 1);
const context: StartContext = { v: 1, ...lineage, wait: { delayMs: 1_000 }, maxRetries: 1, payloadHash: payloadHash(body, sha256) };
const contextHeader = writeContext(context);
const key = timerKey(lineage, sha256);

/** One timer on a broker in memory, driven input by input. */
function setUp() {
  const clock = new SteppedClock();
  const broker = new FakeBroker(clock);
  const startedAtNs = BigInt(clock.nowMs()) * 1_000_000n;
  const start = startInput(context, { receivedAtNs: startedAtNs, payloadBytes: body.length }, sha256);
  const one = async (input: TimerInput, basis: Basis): Promise<StepResult> => {
    const work: Work = { key, input, basis, ...(input.kind === "start" ? { snapshot: { contextHeader, body } } : {}) };
    const [result] = await step({ ports: broker.ports, clock, sha256 }, [work]);
    if (result === undefined) throw new Error("no result");
    return result;
  };
  const feedback = (verb: FeedbackVerb, at: { generation: number; fence: number }): FeedbackInput => {
    const hashed = { verb, ...at, payloadHash: payloadHash(new Uint8Array(), sha256), ...(verb === "fail" ? { failure: { code: "gone", message: "" } } : {}) };
    return { kind: "feedback", ...hashed, lineage, snapshotHash: start.snapshotHash, receiptHash: receiptHash(hashed, sha256), receivedAtMs: clock.nowMs() };
  };
  return {
    clock, broker, start,
    startTimer: () => one(start, "assumed"),
    wake: (generation = 0, fence = 1) => one({ kind: "wake", generation, fence }, "replica"),
    send: (verb: FeedbackVerb, at = { generation: 0, fence: 2 }, basis: Basis = "replica") => one(feedback(verb, at), basis),
    feedback, one,
  };
}

type World = ReturnType<typeof setUp>;

describe("a timer's whole life", () => {
  test("goes from start over retry to an archive of exactly its last record", async () => {
    const world = setUp();
    expect(await world.startTimer()).toMatchObject({ kind: "done", changed: true, answer: { outcome: "accepted" } });
    await world.clock.advance(1_000);
    expect(await world.wake()).toMatchObject({ kind: "done", record: { phase: "elapsed", fence: 2 } });
    expect(await world.send("retry")).toMatchObject({ kind: "done", record: { phase: "waiting", generation: 1, fence: 3 } });
    await world.clock.advance(1_000);
    expect(await world.wake(1, 3)).toMatchObject({ kind: "done", record: { phase: "elapsed", fence: 4 } });
    const ended = await world.send("complete", { generation: 1, fence: 4 });
    expect(ended).toMatchObject({ kind: "done", record: { phase: "terminal", outcome: "completed", fence: 5 } });
    expect(world.broker.resumes.map(({ record, body: bytes }) => [record.generation, record.fence, bytes])).toEqual([[0, 2, body], [1, 4, body]]);
    expect(world.broker.recordOf(key)).toBeUndefined();
    expect(ended.kind === "done" && world.broker.archivedOf(key)).toEqual(ended.kind === "done" ? ended.record : undefined);
    expect(world.broker.schedules.size).toBe(0);
  });

  test("a wake that comes early is held and writes nothing", async () => {
    const world = setUp();
    await world.startTimer();
    const before = world.broker.faults.attempts.length;
    expect(await world.wake()).toEqual({ kind: "hold", dueAtMs: world.clock.nowMs() + 1_000 });
    expect(world.broker.faults.attempts.length).toBe(before);
  });

  test("without any reading of the broker's clock a wake is held", async () => {
    const world = setUp();
    await world.startTimer();
    await world.clock.advance(5_000);
    world.broker.clockLagMs = undefined;
    expect((await world.wake()).kind).toBe("hold");
  });
});

describe("what a replica says", () => {
  test("is corrected by the compare-and-set when it is accepted", async () => {
    const world = setUp();
    await world.startTimer();
    await world.clock.advance(1_000);
    await world.wake();
    await world.send("retry");
    world.broker.staleReads.replica = 1;
    expect(await world.send("fail", { generation: 0, fence: 2 })).toMatchObject({ kind: "rejected", answer: { code: "stale" } });
    expect(world.broker.recordOf(key)).toMatchObject({ phase: "waiting", generation: 1 });
  });

  test("never refuses input that is newer: a second look decides", async () => {
    const world = setUp();
    await world.startTimer();
    const newer = world.feedback("complete", { generation: 3, fence: 9 });
    expect(await world.one(newer, "replica")).toEqual({ kind: "recheck" });
    expect(await world.one(newer, "leader_again")).toMatchObject({ kind: "rejected", answer: { code: "unknown_fence" } });
  });
});

describe("a failing broker", () => {
  test("that refuses the resume leaves the record elapsed and its wake in hand", async () => {
    const world = setUp();
    await world.startTimer();
    await world.clock.advance(1_000);
    world.broker.faults.nthWrite("resumes.publish", 1, "refuse");
    expect(await world.wake()).toMatchObject({ kind: "hand_back", why: "resume" });
    expect(world.broker.recordOf(key)).toMatchObject({ phase: "elapsed" });
    expect(await world.wake()).toMatchObject({ kind: "done", changed: false });
    expect(world.broker.resumes).toHaveLength(1);
  });

  test("that refuses the archive keeps the record", async () => {
    const world = setUp();
    await world.startTimer();
    world.broker.faults.nthWrite("archive.create", 1, "refuse");
    expect(await world.send("fail", { generation: 0, fence: 1 })).toMatchObject({ kind: "hand_back", why: "archive" });
    expect(world.broker.recordOf(key)).toMatchObject({ phase: "terminal" });
    expect(await world.send("fail", { generation: 0, fence: 1 }, "leader")).toMatchObject({ kind: "done", answer: { outcome: "duplicate" } });
    expect(world.broker.recordOf(key)).toBeUndefined();
  });

  test("that holds another terminal record than ours sets the timer aside", async () => {
    const world = setUp();
    await world.startTimer();
    world.broker.archive.set(key, encodeRecord({ ...(world.broker.recordOf(key) as TimerRecord), phase: "terminal", outcome: "completed", endedAtMs: world.clock.nowMs() }));
    expect(await world.send("fail", { generation: 0, fence: 1 })).toMatchObject({ kind: "corrupt" });
    expect(world.broker.recordOf(key)).toMatchObject({ phase: "terminal" });
  });

  test("whose snapshot has other bytes than the record's hash resumes nothing", async () => {
    const world = setUp();
    await world.startTimer();
    world.broker.snapshots.set(key, { contextHeader, body: Uint8Array.of(9) });
    await world.clock.advance(1_000);
    expect(await world.wake()).toMatchObject({ kind: "corrupt" });
    expect(world.broker.resumes).toHaveLength(0);
  });

  test("that cannot be read hands the message back", async () => {
    const world = setUp();
    world.broker.faults.failAll("state.read");
    expect(await world.wake()).toMatchObject({ kind: "hand_back", why: "read" });
  });
});

test("a start over a removed record's marker waits until the marker is gone", async () => {
  const world = setUp();
  world.broker.state.set(key, undefined, 300_000 as DurationMs);
  expect(await world.startTimer()).toEqual({ kind: "hand_back", why: "marker" });
  await world.clock.advance(300_001);
  expect(await world.startTimer()).toMatchObject({ kind: "done", answer: { outcome: "accepted" } });
});

test("a schedule of an older generation that fires while it is looked at does not leave the new one unarmed", async () => {
  const world = setUp();
  const { clock, broker } = world;
  await elapsed(world);
  const now = clock.nowMs();
  await broker.ports.schedules.arm([{ key, generation: 0, fence: 1, dueAtMs: now, fireAtMs: (now + 9_000) as never }]);
  const { schedules } = broker.ports;
  // It fires after it was in the way, and before the look.
  const look: typeof schedules.look = async (keys, from) => {
    broker.schedules.delete(`${key.flow}.${key.ref}`);
    return await schedules.look(keys, from);
  };
  const work: Work = { key, input: world.feedback("retry", { generation: 0, fence: 2 }), basis: "replica" };
  const [result] = await step({ ports: { ...broker.ports, schedules: { ...schedules, look } }, clock, sha256 }, [work]);
  expect(result).toMatchObject({ kind: "done", answer: { outcome: "accepted" }, record: { phase: "waiting", generation: 1, fence: 3 } });
  expect(broker.schedules.get(`${key.flow}.${key.ref}`)).toMatchObject({ generation: 1, fence: 3 });
});

test("late feedback does not read the snapshot, which may be large", async () => {
  const world = setUp();
  const { clock, broker } = world;
  await elapsed(world);
  await world.send("complete");
  let readCount = 0;
  const snapshots = { ...broker.ports.snapshots, read: async (...read: Parameters<typeof broker.ports.snapshots.read>) => { readCount += 1; return await broker.ports.snapshots.read(...read); } };
  const again: Work = { key, input: world.feedback("complete", { generation: 0, fence: 2 }), basis: "replica" };
  expect(await step({ ports: { ...broker.ports, snapshots }, clock, sha256 }, [again])).toMatchObject([{ kind: "done", answer: { outcome: "duplicate" } }]);
  expect(readCount).toBe(0);
});

test("a schedule that a slow writer of an older generation left is replaced", async () => {
  const world = setUp();
  await world.startTimer();
  await world.clock.advance(1_000);
  await world.wake();
  const now = world.clock.nowMs();
  await world.broker.ports.schedules.arm([{ key, generation: 0, fence: 1, dueAtMs: now, fireAtMs: (now + 9_000) as never }]);
  await world.send("retry");
  expect(world.broker.schedules.get(`${key.flow}.${key.ref}`)).toMatchObject({ generation: 1, fence: 3 });
});

test("a step that took longer than a decision may be old decides anew", async () => {
  const world = setUp();
  const create = world.broker.ports.snapshots.create.bind(world.broker.ports.snapshots);
  let slow = true;
  const ports = {
    ...world.broker.ports,
    snapshots: {
      ...world.broker.ports.snapshots,
      create: async (items: Parameters<typeof create>[0]) => {
        const outcomes = await create(items);
        if (slow) await world.clock.advance(decisionAgeMsMax + 1);
        slow = false;
        return outcomes;
      },
    },
  };
  const work: Work = { key, input: world.start, basis: "assumed", snapshot: { contextHeader, body } };
  const [result] = await step({ ports, clock: world.clock, sha256 }, [work]);
  expect(result).toMatchObject({ kind: "done", answer: { outcome: "accepted" } });
  expect(world.broker.faults.attempts.filter((at) => at === "snapshots.create")).toHaveLength(1);
});

/** Each transition from its own starting point, the writes it makes, and the record or archive that it must lead to. */
type Transition = { readonly name: string; readonly prepare: (world: World) => Promise<void>; readonly run: (world: World) => Promise<StepResult>; readonly writes: readonly WriteOperation[] };

const started = async (world: World) => { await world.startTimer(); };
const elapsed = async (world: World) => { await started(world); await world.clock.advance(1_000); await world.wake(); };

const transitions: readonly Transition[] = [
  { name: "start", prepare: () => Promise.resolve(), run: (world) => world.startTimer(), writes: ["snapshots.create", "state.write", "schedules.arm"] },
  { name: "wake", prepare: async (world) => { await started(world); await world.clock.advance(1_000); }, run: (world) => world.wake(), writes: ["state.write", "resumes.publish"] },
  { name: "retry", prepare: elapsed, run: (world) => world.send("retry"), writes: ["state.write", "schedules.arm"] },
  { name: "complete", prepare: elapsed, run: (world) => world.send("complete"), writes: ["state.write", "archive.create", "state.remove"] },
  { name: "fail while waiting", prepare: started, run: (world) => world.send("fail", { generation: 0, fence: 1 }), writes: ["state.write", "archive.create", "schedules.disarm", "state.remove"] },
];

/** Everything that the broker holds of the timer, in one comparable value. */
function remains({ broker }: World) {
  return {
    record: broker.recordOf(key), archived: broker.archivedOf(key), snapshot: broker.snapshots.last(key)?.value,
    schedules: [...broker.schedules.values()].map(({ generation, fence, dueAtMs }) => ({ generation, fence, dueAtMs })),
    resumes: [...new Set(broker.resumes.map(({ record }) => JSON.stringify(record)))],
  };
}

describe("a crash", () => {
  const points = transitions.flatMap((transition) => transition.writes.flatMap((write, index) =>
    (["before", "after"] as const).map((when) => ({ transition, name: transition.name, write, nth: index + 1, when }))));

  test.each(points)("of $name $when $write leaves what the same input completes", async ({ transition, nth, when }) => {
    const undisturbed = setUp();
    await transition.prepare(undisturbed);
    await transition.run(undisturbed);

    const world = setUp();
    await transition.prepare(world);
    world.broker.faults.crashAtWrite(nth, when);
    await expect(transition.run(world)).rejects.toThrow(Crash);
    world.broker.faults.heal();
    expect((await transition.run(world)).kind).toBe("done");
    expect(remains(world)).toEqual(remains(undisturbed));
  });

  test.each(transitions.flatMap((transition) => transition.writes.flatMap((write) =>
    (["lose_request", "lose_reply"] as const).map((fault) => ({ transition, name: transition.name, write, fault })))))(
    "or a lost reply: $name with $fault at $write settles in one step", async ({ transition, write, fault }) => {
      const undisturbed = setUp();
      await transition.prepare(undisturbed);
      await transition.run(undisturbed);

      const world = setUp();
      await transition.prepare(world);
      world.broker.faults.nthWrite(write, 1, fault);
      expect((await transition.run(world)).kind).toBe("done");
      expect(remains(world)).toEqual(remains(undisturbed));
    },
  );

  test("covers every write that each transition makes", async () => {
    for (const transition of transitions) {
      const world = setUp();
      await transition.prepare(world);
      const before = world.broker.faults.attempts.length;
      await transition.run(world);
      expect(world.broker.faults.attempts.slice(before)).toEqual(transition.writes);
    }
  });
});

test("the meaning of a start is what conflicts, not its spelling", async () => {
  const world = setUp();
  await world.startTimer();
  const respelled = startInput({ ...context, retryWait: { delayMs: 1_000 } }, { receivedAtNs: 5_000_000n, payloadBytes: 3 }, sha256);
  expect(await world.one(respelled, "assumed")).toMatchObject({ kind: "done", answer: { outcome: "duplicate" } });
  expect(await world.one({ ...world.start, snapshotHash: hash("f") }, "assumed")).toMatchObject({ kind: "rejected", answer: { code: "start_conflict" } });
});
