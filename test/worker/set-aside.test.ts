import { describe, expect, test } from "vitest";
import { setAsideMsMax, setAsideMsMin } from "../../src/base/limits.ts";
import type { EpochMs } from "../../src/base/units.ts";
import { utf8 } from "../../src/base/bytes.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { asideMs } from "../../src/worker/set-aside.ts";
import { step, type Work } from "../../src/worker/step.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { elapsedRecord, testTimer, type TestTimer } from "../fakes/timers.ts";
import { FakeBroker, nameOf } from "../fakes/worker-ports.ts";
import { sha256 } from "../timer/records.ts";

function setUp() {
  const clock = new SteppedClock();
  const broker = new FakeBroker(clock);
  const dueAtMs = clock.nowMs();
  const wakes = async (...timers: readonly TestTimer[]) => step({ ports: broker.ports, clock, sha256 }, timers.map(({ key }): Work => ({
    key, input: { kind: "wake", generation: 0, fence: 1 }, basis: "replica", dueAtMs,
  })));
  return { clock, broker, wakes, dueAtMs };
}

describe("the wake of a corrupt timer", () => {
  const rows = [
    { name: "whose record does not parse", corrupt: (broker: FakeBroker, timer: TestTimer) => { broker.state.set(timer.key, utf8("{")); } },
    { name: "whose record is of a newer version", corrupt: (broker: FakeBroker, timer: TestTimer) => { broker.state.set(timer.key, utf8('{"v":2,"phase":"frozen"}')); } },
    { name: "whose snapshot is missing", corrupt: (broker: FakeBroker, timer: TestTimer) => { broker.state.set(timer.key, encodeRecord(elapsedRecord(timer))); } },
    { name: "whose snapshot fails its hash", corrupt: (broker: FakeBroker, timer: TestTimer) => {
      broker.state.set(timer.key, encodeRecord(elapsedRecord(timer)));
      broker.snapshots.set(timer.key, { ...timer.snapshot, body: utf8("other") });
    } },
  ];
  test.each(rows)("$name waits in a schedule, as it was armed, and comes again", async ({ corrupt }) => {
    const { clock, broker, wakes, dueAtMs } = setUp();
    const timer = testTimer(1);
    corrupt(broker, timer);
    expect(await wakes(timer)).toMatchObject([{ kind: "corrupt", isAside: true }]);
    expect(broker.schedules.get(nameOf(timer.key))).toMatchObject({ generation: 0, fence: 1, dueAtMs, fireAtMs: clock.nowMs() + setAsideMsMin });
    expect(broker.resumes).toEqual([]);
  });

  test("is resumed with the right bytes once its snapshot is back", async () => {
    const { clock, broker, wakes } = setUp();
    const timer = testTimer(1);
    broker.state.set(timer.key, encodeRecord(elapsedRecord(timer)));
    await wakes(timer);
    broker.snapshots.set(timer.key, timer.snapshot);
    await clock.advance(setAsideMsMin);
    broker.fireSchedules();
    expect(broker.wakes.get(nameOf(timer.key))).toMatchObject({ generation: 0, fence: 1 });
    expect(await wakes(timer)).toMatchObject([{ kind: "done" }]);
    expect(broker.resumes.map(({ body }) => body)).toEqual([timer.snapshot.body]);
  });

  test("stays in hand when it cannot be put elsewhere, and holds up no other timer of its batch", async () => {
    const { broker, wakes } = setUp();
    const [corrupt, whole] = [testTimer(1), testTimer(2)];
    broker.state.set(corrupt.key, utf8("{"));
    broker.state.set(whole.key, encodeRecord(elapsedRecord(whole)));
    broker.snapshots.set(whole.key, whole.snapshot);
    broker.faults.failAll("schedules.arm");
    expect(await wakes(corrupt, whole)).toMatchObject([{ kind: "corrupt", isAside: false }, { kind: "done" }]);
    broker.faults.heal();
    broker.clockLagMs = undefined;
    expect(await wakes(corrupt)).toMatchObject([{ kind: "corrupt", isAside: false }]);
  });

  test("beside a schedule of its timer stays in hand", async () => {
    const { broker, wakes, dueAtMs } = setUp();
    const timer = testTimer(1);
    broker.state.set(timer.key, utf8("{"));
    await broker.ports.schedules.arm([{ key: timer.key, generation: 1, fence: 3, dueAtMs, fireAtMs: (dueAtMs + 5_000) as EpochMs }]);
    expect(await wakes(timer)).toMatchObject([{ kind: "corrupt", isAside: false }]);
    expect(broker.schedules.get(nameOf(timer.key))).toMatchObject({ generation: 1, fence: 3 });
  });

  test("comes again later and later", () => {
    const at = (ms: number) => ms as EpochMs;
    expect([0, 59_000, 600_000, 90_000_000].map((overdueMs) => asideMs(at(0), at(overdueMs)))).toEqual([setAsideMsMin, setAsideMsMin, 600_000, setAsideMsMax]);
  });
});
