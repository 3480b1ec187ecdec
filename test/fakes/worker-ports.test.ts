import { describe, expect, test } from "vitest";
import { ackWaitMs, duplicateWindowMs, stateMarkerTtlMs } from "../../src/base/limits.ts";
import type { EpochMs } from "../../src/base/units.ts";
import { SteppedClock } from "./clock.ts";
import { Crash } from "./faults.ts";
import { elapsedRecord, ms, terminalRecord, testTimer, waitingRecord } from "./timers.ts";
import { FakeBroker } from "./worker-ports.ts";

const setUp = () => {
  const clock = new SteppedClock();
  const broker = new FakeBroker(clock);
  return { clock, broker, ports: broker.ports };
};
const timer = testTimer(1);
const { key } = timer;
const record = waitingRecord(timer);
const never = new AbortController().signal;

describe("the fake broker's stores", () => {
  test("a record is created once, replaced under its revision, and leaves a marker that expires", async () => {
    const { clock, ports } = setUp();
    expect(await ports.state.write([{ key, record }])).toEqual([{ kind: "stored", revision: 1 }]);
    expect(await ports.state.write([{ key, record }])).toEqual([{ kind: "exists" }]);
    expect(await ports.state.write([{ key, record: elapsedRecord(timer), expected: 9 }])).toEqual([{ kind: "conflict" }]);
    expect(await ports.state.write([{ key, record: elapsedRecord(timer), expected: 1 }])).toEqual([{ kind: "stored", revision: 2 }]);
    expect(await ports.state.read([key], "leader")).toEqual([{ kind: "found", value: elapsedRecord(timer), revision: 2 }]);
    expect(await ports.state.remove([{ key, expected: 2 }])).toEqual([{ kind: "stored", revision: 3 }]);
    expect(await ports.state.read([key], "leader")).toEqual([{ kind: "marker", revision: 3 }]);
    expect(await ports.state.write([{ key, record }])).toEqual([{ kind: "exists" }]);
    await clock.advance(stateMarkerTtlMs);
    expect(await ports.state.write([{ key, record }])).toEqual([{ kind: "stored", revision: 4 }]);
  });

  test("a lagging replica shows what was there before the last write", async () => {
    const { broker, ports } = setUp();
    await ports.state.write([{ key, record }]);
    broker.staleReads.replica = 1;
    expect(await ports.state.read([key], "replica")).toEqual([{ kind: "absent" }]);
    expect(await ports.state.read([key], "replica")).toMatchObject([{ kind: "found" }]);
  });

  test("a resume is stored once within the duplicate window", async () => {
    const { clock, broker, ports } = setUp();
    const item = { key, record: elapsedRecord(timer), body: timer.snapshot.body };
    await ports.resumes.publish([item]);
    await ports.resumes.publish([item]);
    expect(broker.resumes).toHaveLength(1);
    await clock.advance(duplicateWindowMs);
    await ports.resumes.publish([item]);
    expect(broker.resumes).toHaveLength(2);
  });

  test("two items of one timer in one call are a mistake of the caller", async () => {
    const { ports } = setUp();
    await expect(ports.state.write([{ key, record }, { key, record }])).rejects.toThrow("different timers");
  });

  test("a walk shows every record that was there when it began", async () => {
    const { ports, broker } = setUp();
    const timers = [1, 2, 3, 4, 5].map((index) => testTimer(index));
    await ports.state.write(timers.map((one) => ({ key: one.key, record: waitingRecord(one) })));
    const met: string[] = [];
    for await (const batch of ports.walk.walk(never)) {
      met.push(...batch.map((walked) => walked.key.ref));
      broker.state.set(testTimer(6).key, undefined);
    }
    expect(met).toEqual(timers.map((one) => one.key.ref));
  });
});

describe("the fake broker's schedules", () => {
  const item = { key, generation: 0, fence: 1, dueAtMs: (record.dueAtMs), fireAtMs: (record.dueAtMs - 500) as EpochMs };

  test("a schedule fires into a wake when the clock is stepped, and the wake is redelivered until it is acknowledged", async () => {
    const { clock, ports } = setUp();
    await ports.schedules.arm([item]);
    const taking = ports.sources.wake.take({ max: 10, expiresMs: ms(120_000), signal: never });
    await clock.advance(60_000);
    const [first] = await taking;
    expect(first?.message.headers.get("Durable-Timer-Fence")).toBe("0:1");
    expect(await ports.schedules.look([key])).toMatchObject([{ kind: "seen", wake: { generation: 0, fence: 1 } }]);
    await clock.advance(ackWaitMs);
    const [second] = await ports.sources.wake.take({ max: 10, expiresMs: ms(1), signal: never });
    expect(second?.deliveryCount).toBe(2);
    expect(second?.ack()).toBe(true);
    expect(await ports.schedules.look([key])).toEqual([{ kind: "seen" }]);
  });

  test("arming expects an empty subject, or the sequence that it replaces", async () => {
    const { ports } = setUp();
    expect(await ports.schedules.arm([item])).toEqual([{ kind: "stored", revision: 1 }]);
    expect(await ports.schedules.arm([item])).toEqual([{ kind: "exists" }]);
    expect(await ports.schedules.arm([{ ...item, expected: 1 }])).toEqual([{ kind: "stored", revision: 2 }]);
    expect(await ports.schedules.arm([{ ...item, expected: 1 }])).toEqual([{ kind: "conflict" }]);
  });
});

describe("the fake broker's deliveries", () => {
  test("settling after a disconnect does nothing", async () => {
    const { broker, ports } = setUp();
    broker.send("start", timer.snapshot);
    const [delivery] = await ports.sources.start.take({ max: 1, expiresMs: ms(1), signal: never });
    broker.disconnect();
    expect(delivery?.isCurrent()).toBe(false);
    expect(delivery?.ack()).toBe(false);
    expect(broker.sources.start.messages).toHaveLength(1);
  });

  test("a take ends without messages after its time, and at once on abort", async () => {
    const { clock, ports } = setUp();
    const taking = ports.sources.start.take({ max: 1, expiresMs: ms(1_000), signal: never });
    await clock.advance(1_000);
    expect(await taking).toEqual([]);
    const abort = new AbortController();
    const aborted = ports.sources.start.take({ max: 1, expiresMs: ms(1_000), signal: abort.signal });
    abort.abort();
    expect(await aborted).toEqual([]);
    expect(clock.sleeperCount).toBe(0);
  });
});

describe("the fake broker's faults", () => {
  test("a lost reply has stored, a lost request has not, and both are unknown", async () => {
    const { broker, ports } = setUp();
    broker.faults.nthWrite("state.write", 1, "lose_request");
    broker.faults.nthWrite("state.write", 2, "lose_reply");
    expect(await ports.state.write([{ key, record }])).toMatchObject([{ kind: "unknown" }]);
    expect(broker.recordOf(key)).toBeUndefined();
    expect(await ports.state.write([{ key, record }])).toMatchObject([{ kind: "unknown" }]);
    expect(broker.recordOf(key)).toEqual(record);
  });

  test("a crash stops in the middle of a call, with what was stored before it", async () => {
    const { broker, ports } = setUp();
    const timers = [1, 2, 3].map((index) => testTimer(index));
    broker.faults.crashAtWrite(2, "after");
    await expect(ports.archive.create(timers.map((one) => ({ key: one.key, record: terminalRecord(one) })))).rejects.toThrow(Crash);
    expect(timers.map((one) => broker.archivedOf(one.key)?.phase)).toEqual(["terminal", "terminal", undefined]);
  });
});
