import { describe, expect, test } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import { loopStallMsMax } from "../../src/base/limits.ts";
import type { MonotonicMs } from "../../src/base/units.ts";
import { advance, initialLifecycle, stalledOf, type LifecycleEvent, type LifecycleState } from "../../src/worker/lifecycle-state.ts";

const usable: LifecycleEvent = {
  kind: "topology_checked",
  finding: { kind: "usable", schedules: { incarnation: "a", createdAt: "2030-01-01T00:00:00Z", lastSequence: 0 }, payloadBytesMax: 1 },
};
const unusable: LifecycleEvent = { kind: "topology_checked", finding: { kind: "unusable", problems: ["stream DURABLE_TIMER_SCHEDULES is missing"] } };
const unreachable: LifecycleEvent = {
  kind: "topology_checked",
  finding: { kind: "unreachable", failure: new Failure("transient", "BROKER_UNREACHABLE", "ask for the streams") },
};
const stop: LifecycleEvent = { kind: "stop_requested" };
const drained: LifecycleEvent = { kind: "drained" };
const starting = initialLifecycle;
const serving: LifecycleState = { phase: "serving", problems: [] };
const draining: LifecycleState = { phase: "draining", problems: ["it was told to stop"] };
const stopped: LifecycleState = { phase: "stopped", problems: ["it has stopped"] };

describe("a worker's phases", () => {
  const rows: readonly { name: string; from: LifecycleState; event: LifecycleEvent; want: LifecycleState; because: string }[] = [
    { name: "a usable topology begins service", from: starting, event: usable, want: serving, because: "Y1" },
    { name: "a missing stream is told", from: starting, event: unusable, want: { phase: "starting", problems: ["stream DURABLE_TIMER_SCHEDULES is missing"] }, because: "/readyz shows what is waited for" },
    { name: "a silent broker is told", from: starting, event: unreachable, want: { phase: "starting", problems: ["ask for the streams"] }, because: "/readyz shows what is waited for" },
    { name: "a broker lost while serving changes nothing", from: serving, event: unreachable, want: serving, because: "Y1: all workers would go at once" },
    { name: "a stream missing while serving changes nothing", from: serving, event: unusable, want: serving, because: "Y1: SCHEDULES may be re-created" },
    { name: "stopping while serving", from: serving, event: stop, want: draining, because: "readiness goes first" },
    { name: "stopping before serving", from: starting, event: stop, want: draining, because: "there is nothing to wait for" },
    { name: "stopping twice", from: draining, event: stop, want: draining, because: "Y2" },
    { name: "a usable topology while draining", from: draining, event: usable, want: draining, because: "Y2" },
    { name: "the end", from: draining, event: drained, want: stopped, because: "everything was handed back" },
    { name: "stopping after the end", from: stopped, event: stop, want: stopped, because: "Y2" },
    { name: "drained without having been told to stop", from: serving, event: drained, want: serving, because: "only a drain ends service" },
  ];
  test.each(rows)("$name", ({ from, event, want, because }) => {
    expect(advance(from, event), because).toEqual(want);
  });
});

test("a loop that has not gone round for too long is named", () => {
  const at = (ms: number) => ms as MonotonicMs;
  const loops = [{ name: "start", progressAtMs: () => at(0) }, { name: "wake", progressAtMs: () => at(1) }];
  expect(stalledOf(loops, at(loopStallMsMax), loopStallMsMax)).toEqual([]);
  expect(stalledOf(loops, at(loopStallMsMax + 1), loopStallMsMax)).toEqual(["start"]);
});
