import { describe, expect, it, onTestFinished } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import { reconcileBackoffMsMax, reconcilesInFlightMax, resyncIntervalMs } from "../../src/base/limits.ts";
import { Bench, orders } from "./bench.ts";
import { spec } from "./plan/scenes.ts";

/** A running controller; stopped at the end of the test, which also finds what it left behind. */
function running(bench: Bench): { readonly stop: () => Promise<void> } {
  const stopping = new AbortController();
  const run = bench.controller().run(stopping.signal);
  const stop = async (): Promise<void> => {
    stopping.abort();
    await run;
    expect({ sleepers: bench.clock.sleeperCount, sessions: bench.broker.openSessions }).toEqual({ sleepers: 0, sessions: 0 });
  };
  onTestFinished(stop);
  return { stop };
}

describe("Controller", () => {
  it("brings a resource to Ready and rests", async () => {
    const bench = new Bench();
    running(bench);
    await bench.clock.advance(1_000);
    expect(bench.conditions()).toContain("Ready True Serving");
    const passes = bench.metrics.results.length;
    await bench.clock.advance(resyncIntervalMs * 0.85);
    expect(bench.metrics.results.length).toBe(passes);
    expect(bench.metrics.ready).toEqual({ ready: 1, notReady: 0 });
  });

  it("looks at every resource once per interval, and writes nothing", async () => {
    const bench = new Bench();
    running(bench);
    await bench.clock.advance(1_000);
    const writes = bench.cluster.writes.length + bench.broker.writes.length;
    const passes = bench.metrics.results.length;
    await bench.clock.advance(resyncIntervalMs * 1.2);
    expect(bench.metrics.results.slice(passes)).toEqual(["unchanged"]);
    expect(bench.cluster.writes.length + bench.broker.writes.length).toBe(writes);
  });

  it("finds what somebody deleted within the interval", async () => {
    const bench = new Bench();
    running(bench);
    await bench.clock.advance(1_000);
    bench.broker.consumers.delete("DURABLE_TIMER_WAKE_SERVICE");
    await bench.clock.advance(resyncIntervalMs * 1.2);
    expect(bench.broker.consumers.has("DURABLE_TIMER_WAKE_SERVICE")).toBe(true);
  });

  it("looks at once when a session's connection comes or goes", async () => {
    const bench = new Bench();
    running(bench);
    await bench.clock.advance(1_000);
    const passes = bench.metrics.results.length;
    bench.broker.signal();
    await bench.clock.advance(1);
    expect(bench.metrics.results.length).toBe(passes + 1);
  });

  it("never lets one poisoned resource stop the others", async () => {
    const bench = new Bench();
    const poisoned = { namespace: "payments", name: "poisoned" };
    bench.cluster.put(poisoned, spec());
    bench.cluster.poisoned.add("payments/poisoned");
    running(bench);
    await bench.clock.advance(5_000);
    expect(bench.conditions(orders)).toContain("Ready True Serving");
    expect(bench.log.messages("error")).toContain("Reconciled into a bug");
    bench.cluster.poisoned.clear();
    await bench.clock.advance(reconcileBackoffMsMax);
    // The account has an owner by now, which is an answer as good as any.
    expect(bench.conditions(poisoned)).toContain("Ready False OwnedByAnother");
  });

  it("waits longer and longer while a resource cannot be read", async () => {
    const bench = new Bench();
    bench.cluster.failures.set("readResource", new Failure("transient", "CLUSTER_UNREACHABLE", "read it"));
    running(bench);
    await bench.clock.advance(60_000);
    expect(bench.metrics.results.length).toBeGreaterThan(5);
    expect(bench.metrics.results.length).toBeLessThan(20);
    expect(new Set(bench.metrics.results)).toEqual(new Set(["failed"]));
  });

  it("repeats what has no effect with a growing delay only", async () => {
    const bench = new Bench();
    running(bench);
    await bench.clock.advance(1_000);
    const { length } = bench.broker.writes;
    // A server that takes the update and goes on spelling the field its own way.
    bench.broker.ignoredUpdates.add("DURABLE_TIMER_TERMINALS");
    bench.cluster.put(orders, spec({ topology: { streams: { terminals: { maxBytes: "30Gi" } } } }));
    await bench.clock.advance(60_000);
    expect(bench.broker.writes.length - length).toBeGreaterThan(4);
    expect(bench.broker.writes.length - length).toBeLessThan(16);
    expect(bench.log.messages("warn")).toContain("Repeated the same actions");
  });

  it("works on a bounded number of resources at once, never twice on one", async () => {
    const bench = new Bench();
    const keys = Array.from({ length: 12 }, (_, index) => ({ namespace: "n", name: `r${String(index)}` }));
    for (const key of keys) bench.cluster.put(key, spec());
    const started: string[] = [];
    const gate = Promise.withResolvers<undefined>();
    const read = bench.cluster.readResource.bind(bench.cluster);
    bench.cluster.readResource = async (key) => {
      started.push(key.name);
      await gate.promise;
      return await read(key);
    };
    running(bench);
    await bench.clock.advance(10);
    for (const key of keys) bench.cluster.touch(key);
    await bench.clock.advance(10);
    expect({ count: started.length, distinct: new Set(started).size }).toEqual({ count: reconcilesInFlightMax, distinct: reconcilesInFlightMax });
    gate.resolve(undefined);
    await bench.clock.advance(1_000);
    expect(new Set(started).size).toBe(keys.length + 1);
  });

  it("closes its sessions and ends when it is told to", async () => {
    const bench = new Bench();
    const { stop } = running(bench);
    await bench.clock.advance(1_000);
    await stop();
    expect(bench.broker.openSessions).toBe(0);
  });

  it("forgets a resource that is gone", async () => {
    const bench = new Bench();
    running(bench);
    await bench.clock.advance(1_000);
    bench.cluster.delete(orders);
    await bench.clock.advance(1);
    expect({ sessions: bench.broker.openSessions, ready: bench.metrics.ready }).toEqual({ sessions: 0, ready: { ready: 0, notReady: 0 } });
    const passes = bench.metrics.results.length;
    await bench.clock.advance(resyncIntervalMs * 3);
    expect(bench.metrics.results.length).toBe(passes);
  });
});
