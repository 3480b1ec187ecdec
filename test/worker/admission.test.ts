import { describe, expect, test } from "vitest";
import { admissionPollMsMax, admissionPollMsMin, admissionUsageAgeMsMax } from "../../src/base/limits.ts";
import { present } from "../../src/base/assert.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { Admission, pollMs } from "../../src/worker/admission.ts";
import type { CapacityProbe, DataLook, Usage } from "../../src/worker/ports.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { FakeLog } from "../fakes/log.ts";
import { FakeWorkerMetrics } from "../fakes/worker-metrics.ts";
import { FakeBroker, wholeData } from "../fakes/worker-ports.ts";

const at = (percent: number): Usage => ({
  state: { messages: 0, bytes: percent, bytesMax: 100 }, snapshots: { messages: 0, bytes: 0 }, terminals: { messages: 0, bytes: 0 }, account: { bytes: 0, replicas: 1 },
});

function setUp(usage: Usage | undefined, probe?: CapacityProbe) {
  const clock = new SteppedClock();
  const broker = new FakeBroker(clock);
  broker.usage = usage;
  const log = new FakeLog();
  const metrics = new FakeWorkerMetrics();
  const admission = new Admission({ capacity: probe ?? broker.ports.capacity, data: broker.ports.data, limits: { closePercent: 85, reopenPercent: 75 }, clock, log, metrics });
  const stop = new AbortController();
  const running = admission.run(stop.signal);
  const end = async (): Promise<void> => {
    stop.abort();
    await running;
    expect(clock.sleeperCount).toBe(0);
  };
  return { clock, broker, log, metrics, admission, end };
}

describe("watching the free space", () => {
  test("starts wait until the first look has found room", async () => {
    const { clock, broker, admission, end } = setUp(undefined);
    expect(admission.isOpen()).toBe(false);
    await clock.advance(5_000);
    expect(admission.isOpen()).toBe(false);
    let isIn = false;
    const waiting = admission.waitOpen(new AbortController().signal).then(() => { isIn = true; });
    broker.usage = at(10);
    await clock.advance(1_000);
    expect(isIn).toBe(true);
    await waiting;
    await end();
  });

  test("closing and reopening show in log and metrics, once each", async () => {
    const { clock, broker, log, metrics, admission, end } = setUp(at(10));
    await clock.advance(2_000);
    broker.usage = at(90);
    await clock.advance(10_000);
    expect(admission.isOpen()).toBe(false);
    broker.usage = at(80);
    await clock.advance(10_000);
    expect(admission.isOpen()).toBe(false);
    broker.usage = at(70);
    await clock.advance(10_000);
    expect(admission.isOpen()).toBe(true);
    expect(log.lines).toEqual([
      { level: "info", message: "Opened admission of starts", fields: { reason: "open", usedPercent: 10 } },
      { level: "warn", message: "Closed admission of starts", fields: { reason: "state_full", usedPercent: 90 } },
      { level: "info", message: "Opened admission of starts", fields: { reason: "open", usedPercent: 70 } },
    ]);
    expect(metrics.usagePercent).toBe(70);
    expect(metrics.admissions.at(-1)).toEqual({ isOpen: true, reason: "open" });
    await end();
  });

  test("a broker that stops answering closes admission although the last answer was good", async () => {
    let isSilent = false;
    const never = new Promise<undefined>(() => undefined);
    const { clock, admission } = setUp(undefined, { usage: () => (isSilent ? never : Promise.resolve(at(10))) });
    await clock.advance(1);
    expect(admission.isOpen()).toBe(true);
    isSilent = true;
    await clock.advance(admissionUsageAgeMsMax + admissionPollMsMax + 1);
    expect(admission.isOpen()).toBe(false);
    // The look never ends, and so neither does the loop.
    expect(clock.sleeperCount).toBe(0);
  });

  test("whoever waits is let go when told to stop", async () => {
    const { admission, clock, end } = setUp(undefined);
    const abort = new AbortController();
    const waiting = admission.waitOpen(abort.signal);
    await clock.advance(3_000);
    abort.abort();
    await expect(waiting).resolves.toBeUndefined();
    await end();
  });
});

describe("data that is lost", () => {
  const emptied = (): DataLook => ({ ...wholeData(), hasOwnerKey: false });

  test("holds starts, feedback and wakes at the first look, and is told at the second", async () => {
    const { clock, broker, log, metrics, admission, end } = setUp(at(10));
    await clock.advance(1);
    expect([admission.isOpen(), admission.dataGate.isOpen()]).toEqual([true, true]);
    broker.data = emptied();
    await clock.advance(1_000);
    expect([admission.isOpen(), admission.dataGate.isOpen(), admission.losses()]).toEqual([false, false, []]);
    let isIn = false;
    const waiting = admission.dataGate.waitOpen(new AbortController().signal).then(() => { isIn = true; });
    await clock.advance(3_000);
    expect(admission.losses()).toEqual(["stream KV_DURABLE_TIMER_STATE was emptied; no start is taken"]);
    expect(metrics.lostStreams).toEqual(["state"]);
    expect(metrics.admissions.at(-1)).toEqual({ isOpen: false, reason: "data_lost" });
    expect(log.lines.filter(({ level }) => level === "error")).toEqual([{ level: "error", message: "Found a data stream that lost what it held", fields: { stream: "state", kind: "emptied" } }]);
    expect([isIn, admission.madeAnew.aborted]).toEqual([false, false]);
    broker.data = wholeData();
    await clock.advance(1_000);
    expect([isIn, admission.isOpen(), admission.losses(), metrics.lostStreams]).toEqual([true, true, [], []]);
    expect(log.messages("info")).toContain("Found every data stream whole again");
    await waiting;
    await end();
  });

  test("of a stream that holds no timers holds starts alone", async () => {
    const { clock, broker, admission, end } = setUp(at(10));
    await clock.advance(1);
    const data = wholeData();
    broker.data = { ...data, streams: { ...data.streams, resumes: undefined } };
    await clock.advance(admissionPollMsMax);
    expect([admission.isOpen(), admission.dataGate.isOpen()]).toEqual([false, true]);
    await end();
  });

  test("that its owner made anew ends this process, and data that a backup brought back does not", async () => {
    const { clock, broker, log, admission, end } = setUp(at(10));
    await clock.advance(1);
    const data = wholeData();
    const terminals = present(data.streams.terminals, "a stream");
    broker.data = { ...data, streams: { ...data.streams, terminals: { ...terminals, createdAt: "2031-01-01T00:00:00Z" } } };
    await clock.advance(2 * admissionPollMsMax);
    expect([admission.isOpen(), admission.madeAnew.aborted]).toEqual([true, false]);
    expect(log.messages("warn")).toEqual(["Found data streams restored from a backup"]);
    broker.data = { ...data, streams: { ...data.streams, terminals: { ...terminals, incarnation: "second" } } };
    await clock.advance(2 * admissionPollMsMax);
    expect([admission.isOpen(), admission.madeAnew.aborted]).toEqual([false, true]);
    await end();
  });

  test("that cannot be looked at closes admission as unknown usage does", async () => {
    const { clock, broker, metrics, admission, end } = setUp(at(10));
    await clock.advance(1);
    broker.data = undefined;
    await clock.advance(admissionPollMsMax);
    expect([admission.isOpen(), admission.dataGate.isOpen()]).toEqual([false, true]);
    expect(metrics.admissions.at(-1)).toEqual({ isOpen: false, reason: "usage_unknown" });
    await end();
  });
});

describe("a burst of starts between two looks", () => {
  const room = (bytesMax: number): Usage => ({ ...at(0), state: { messages: 0, bytes: 0 }, terminals: { messages: 0, bytes: 0, bytesMax } });
  const sizes = (count: number) => Array.from({ length: count }, () => ({ contextBytes: 500, bodyBytes: 100 }));

  test("is looked after at once when it might not fit, and only what fits is let in", async () => {
    const { clock, broker, admission, end } = setUp(room(1_000_000));
    await clock.advance(1);
    let looks = 0;
    broker.ports.capacity.usage = () => { looks += 1; return Promise.resolve(broker.usage); };
    const few = await admission.admit(sizes(10));
    expect([few.count, looks]).toEqual([10, 0]);
    const rest = admission.admit(sizes(1_000));
    await clock.advance(0);
    const { count } = await rest;
    expect(looks).toBe(1);
    expect(count).toBeGreaterThan(20);
    expect((count + 10) * 2_000).toBeLessThan(200_000);
    await end();
  });

  test("is not let in at all while admission is closed", async () => {
    const { clock, broker, admission, end } = setUp(at(90));
    await clock.advance(1);
    expect((await admission.admit(sizes(1))).count).toBe(0);
    broker.data = { ...wholeData(), hasOwnerKey: false };
    await clock.advance(1_000);
    expect((await admission.dataGate.admit(sizes(1))).count).toBe(0);
    broker.data = wholeData();
    await clock.advance(1_000);
    expect((await admission.dataGate.admit(sizes(3))).count).toBe(3);
    await end();
  });

  test("that waits for a look is let go when the worker ends", async () => {
    const { clock, broker, admission, end } = setUp(room(1_000_000));
    await clock.advance(1);
    broker.usage = undefined;
    const waiting = admission.admit(sizes(10_000));
    await end();
    expect((await waiting).count).toBe(0);
  });
});

describe("how soon the next look comes", () => {
  const rows = [
    { name: "idle", before: 40, now: 40, isOpen: true, want: admissionPollMsMax, because: "nothing moves" },
    { name: "emptying", before: 50, now: 40, isOpen: true, want: admissionPollMsMax, because: "the limit goes away" },
    { name: "filling slowly", before: 40, now: 41, isOpen: true, want: admissionPollMsMax, because: "44 s are left" },
    { name: "filling fast", before: 40, now: 60, isOpen: true, want: 312, because: "1.25 s are left, a quarter of it is waited" },
    { name: "about to close", before: 40, now: 84, isOpen: true, want: admissionPollMsMin, because: "the broker is not asked without end" },
    { name: "closed", before: 90, now: 90, isOpen: false, want: 1_000, because: "freed space should be noticed soon" },
    { name: "first look", before: undefined, now: 40, isOpen: true, want: 1_000, because: "no pace is known yet" },
  ];
  test.each(rows)("$name", ({ before, now, isOpen, want, because }) => {
    const got = pollMs({ before: before === undefined ? {} : { percent: before }, now: { percent: now, isOpen }, sinceMs: 1_000 as DurationMs, closePercent: 85 });
    expect(got, because).toBe(want);
  });
});
