import { describe, expect, test } from "vitest";
import { sweepLeaseMs } from "../../src/base/limits.ts";
import { leaseKeys } from "../../src/protocol/names.ts";
import { SweepLease } from "../../src/worker/sweep-lease.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { FakeBroker } from "../fakes/worker-ports.ts";

function setUp() {
  const clock = new SteppedClock();
  const broker = new FakeBroker(clock);
  const lease = (workerId: string) => new SweepLease({ notes: broker.ports.notes, clock, workerId });
  return { clock, broker, lease };
}

describe("the sweep's lease", () => {
  test("one worker holds it at a time, and the next one gets it when it is free", async () => {
    const { lease } = setUp();
    const [a, b] = [lease("a"), lease("b")];
    expect(await a.take()).toBe("taken");
    expect(await b.take()).toBe("held");
    await a.release();
    expect(await b.take()).toBe("taken");
    expect(await a.take()).toBe("held");
  });

  test("a holder that is gone is replaced after the lease, measured from when its note was first seen unchanged", async () => {
    const { clock, lease } = setUp();
    await lease("a").take();
    await clock.advance(10 * sweepLeaseMs);
    const b = lease("b");
    expect(await b.take()).toBe("held");
    await clock.advance(sweepLeaseMs - 1);
    expect(await b.take()).toBe("held");
    await clock.advance(1);
    expect(await b.take()).toBe("taken");
  });

  test("a holder that extends keeps it however long its sweep takes", async () => {
    const { clock, lease } = setUp();
    const [a, b] = [lease("a"), lease("b")];
    await a.take();
    for (let step = 0; step < 30; step += 1) {
      await clock.advance(sweepLeaseMs / 10);
      expect(await a.extend()).toBe(true);
      expect(await b.take()).toBe("held");
    }
  });

  test("an extension before a third of the lease writes nothing", async () => {
    const { clock, broker, lease } = setUp();
    const a = lease("a");
    await a.take();
    const { revision } = broker.notes.get(leaseKeys.sweep) ?? { revision: 0 };
    await clock.advance(sweepLeaseMs / 3 - 1);
    expect(await a.extend()).toBe(true);
    expect(broker.notes.get(leaseKeys.sweep)?.revision).toBe(revision);
    await clock.advance(1);
    await a.extend();
    expect(broker.notes.get(leaseKeys.sweep)?.revision).toBeGreaterThan(revision);
  });

  test("a holder that was replaced learns it, and its release does not free what is another's", async () => {
    const { clock, lease } = setUp();
    const [a, b, c] = [lease("a"), lease("b"), lease("c")];
    await a.take();
    await b.take();
    await clock.advance(sweepLeaseMs);
    expect(await b.take()).toBe("taken");
    expect(await a.extend()).toBe(false);
    await a.release();
    expect(await c.take()).toBe("held");
  });

  test("a reply that was lost is looked up, not guessed", async () => {
    const { broker, lease } = setUp();
    broker.faults.nthWrite("notes.write", 1, "lose_reply");
    const a = lease("a");
    expect(await a.take()).toBe("taken");
    broker.faults.nthWrite("notes.write", 1, "lose_request");
    await a.release();
    expect(await lease("b").take()).toBe("held");
    expect(await lease("a").take()).toBe("taken");
  });

  test("a broker that refuses or does not answer gives no lease", async () => {
    const { broker, lease } = setUp();
    broker.faults.failAll("notes.write");
    expect(await lease("a").take()).toBe("failed");
    broker.faults.failAll("notes.read");
    expect(await lease("a").take()).toBe("failed");
  });

  test("a note that nobody can read is replaced like that of a holder that is gone", async () => {
    const { clock, broker, lease } = setUp();
    broker.notes.set(leaseKeys.sweep, { text: "{", revision: 5 });
    const a = lease("a");
    expect(await a.take()).toBe("held");
    await clock.advance(sweepLeaseMs);
    broker.notes.set(leaseKeys.sweep, { text: "{", revision: 5 });
    expect(await a.take()).toBe("taken");
  });
});
