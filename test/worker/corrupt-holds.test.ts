import { expect, test } from "vitest";
import { utf8 } from "../../src/base/bytes.ts";
import { corruptHeldCountMax, corruptHoldMs } from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { CorruptHolds } from "../../src/worker/corrupt-holds.ts";
import { WorkLoop } from "../../src/worker/loop.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { FakeLog } from "../fakes/log.ts";
import { testTimer } from "../fakes/timers.ts";
import { FakeWorkerMetrics } from "../fakes/worker-metrics.ts";
import { FakeBroker } from "../fakes/worker-ports.ts";
import { sha256 } from "../timer/records.ts";

test("a bounded number is held at once, and a place is free again when its message comes again", () => {
  const holds = new CorruptHolds();
  for (let index = 0; index < corruptHeldCountMax; index += 1) expect(holds.tryHold(index)).toBe(true);
  expect(holds.tryHold(corruptHoldMs - 1)).toBe(false);
  expect(holds.tryHold(corruptHoldMs)).toBe(true);
  expect(holds.tryHold(corruptHoldMs)).toBe(false);
});

test("commands of corrupt timers beyond that are refused and answered, and those of others are taken", async () => {
  const clock = new SteppedClock();
  const broker = new FakeBroker(clock);
  const metrics = new FakeWorkerMetrics();
  const loop = new WorkLoop({
    name: "start", ports: broker.ports, clock, sha256, log: new FakeLog(), metrics, lookahead: 500, corruptHolds: new CorruptHolds(),
    limits: { payloadBytesMax: 1_000_000, delayMsMax: 1e12 as DurationMs, retriesMax: 10, replyPrefix: "_INBOX.durable_timer" },
  });
  const running = loop.run();
  const send = (index: number): void => {
    const { snapshot: { contextHeader, body } } = testTimer(index);
    broker.send("start", { contextHeader, body, replyTo: `_INBOX.durable_timer.${String(index)}` });
  };
  for (let index = 0; index < corruptHeldCountMax + 5; index += 1) {
    broker.state.set(testTimer(index).key, utf8("{"));
    broker.snapshots.set(testTimer(index).key, testTimer(index).snapshot);
    send(index);
  }
  send(1_000);
  await clock.advance(5_000);
  expect(metrics.count("rejected timer_unreadable")).toBe(5);
  expect(broker.outcomes.filter(({ outcome }) => outcome.code === "timer_unreadable")).toHaveLength(5);
  expect(broker.outcomes.filter(({ outcome }) => outcome.outcome === "accepted").map(({ replyTo }) => replyTo)).toEqual(["_INBOX.durable_timer.1000"]);
  expect(broker.sources.start.messages).toHaveLength(corruptHeldCountMax);
  const stopping = loop.stop(0 as DurationMs);
  await clock.advance(10_000);
  await stopping;
  await running;
});
