import { describe, expect, test } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import { sourceCloseMsMax, topologyCheckMsMax, topologyCheckMsMin } from "../../src/base/limits.ts";
import { Lifecycle, type Drainable } from "../../src/worker/lifecycle.ts";
import type { Source } from "../../src/worker/ports.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { FakeLog } from "../fakes/log.ts";
import { ms } from "../fakes/timers.ts";
import { FakeBroker } from "../fakes/worker-ports.ts";

function setUp() {
  const clock = new SteppedClock();
  const broker = new FakeBroker(clock);
  const log = new FakeLog();
  const lifecycle = new Lifecycle({ topology: broker.ports.topology, clock, log });
  return { clock, broker, log, lifecycle };
}

const never = new AbortController().signal;

/** A part that needs `needsMs` for what it has in flight, and records its end. */
function part(clock: SteppedClock, needsMs: number, ended: string[]): Drainable {
  const name = `part ${String(needsMs)}`;
  return {
    name,
    stop: async (graceMs) => {
      await clock.sleep(ms(Math.min(needsMs, graceMs)));
      ended.push(`${name} ${needsMs <= graceMs ? "finished" : "handed back"}`);
    },
  };
}

describe("a worker's beginning", () => {
  test("it waits until the topology is usable, says why once, and is ready from then on", async () => {
    const { clock, broker, log, lifecycle } = setUp();
    const usable = broker.topology;
    broker.topology = { kind: "unusable", problems: ["stream DURABLE_TIMER_COMMANDS is missing"] };
    const waiting = lifecycle.waitUsable(never);
    await clock.advance(20_000);
    expect(lifecycle.isReady()).toBe(false);
    expect(lifecycle.problems()).toEqual(["stream DURABLE_TIMER_COMMANDS is missing"]);
    broker.topology = usable;
    await clock.advance(topologyCheckMsMax);
    expect(await waiting).toMatchObject({ kind: "usable" });
    expect(lifecycle.isReady()).toBe(true);
    broker.topology = { kind: "unreachable", failure: new Failure("transient", "BROKER_UNREACHABLE", "ask") };
    await clock.advance(60_000);
    expect(lifecycle.isReady()).toBe(true);
    expect(log.messages()).toEqual(["Waited for what the worker needs", "Found everything the worker needs"]);
  });

  test("a worker told to stop stops waiting", async () => {
    const { clock, broker, lifecycle } = setUp();
    broker.topology = { kind: "unusable", problems: ["nothing is there"] };
    const stop = new AbortController();
    const waiting = lifecycle.waitUsable(stop.signal);
    await clock.advance(topologyCheckMsMin);
    stop.abort();
    expect(await waiting).toBeUndefined();
    expect(clock.sleeperCount).toBe(0);
  });
});

describe("a worker's end", () => {
  test("readiness goes first, then everything has one grace in common, then the sources close", async () => {
    const { clock, broker, lifecycle } = setUp();
    await lifecycle.waitUsable(never);
    const ended: string[] = [];
    const sources: readonly Source[] = Object.values(broker.sources);
    const draining = lifecycle.drain({ parts: [part(clock, 100, ended), part(clock, 90_000, ended)], sources, graceMs: ms(1_000), hurry: never });
    expect(lifecycle.isReady()).toBe(false);
    await clock.advance(100);
    expect(ended).toEqual(["part 100 finished"]);
    expect(lifecycle.phase).toBe("draining");
    await clock.advance(900);
    await draining;
    expect(ended).toEqual(["part 100 finished", "part 90000 handed back"]);
    expect(lifecycle.phase).toBe("stopped");
    expect(await broker.sources.start.take({ max: 1, expiresMs: ms(60_000), signal: never })).toEqual([]);
    expect(clock.sleeperCount).toBe(0);
  });

  test("a second signal ends it at once", async () => {
    const { clock, lifecycle } = setUp();
    const hurry = new AbortController();
    const draining = lifecycle.drain({ parts: [part(clock, 90_000, [])], sources: [], graceMs: ms(90_000), hurry: hurry.signal });
    await clock.advance(10);
    hurry.abort();
    await draining;
    expect(lifecycle.phase).toBe("stopped");
  });

  test("a source that does not close does not hold it up", async () => {
    const { clock, lifecycle } = setUp();
    const stubborn: Source = { take: () => Promise.resolve([]), pause: () => undefined, resume: () => undefined, close: () => new Promise(() => undefined) };
    const draining = lifecycle.drain({ parts: [], sources: [stubborn], graceMs: ms(1_000), hurry: never });
    await clock.advance(sourceCloseMsMax);
    await draining;
    expect(lifecycle.phase).toBe("stopped");
  });
});
