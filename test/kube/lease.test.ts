import { expect, test } from "vitest";
import { leaderLeaseMs, leaderRenewDeadlineMs, leaderRetryMs } from "../../src/base/limits.ts";
import { holdsLease, leadWhileElected, type LeaseEnd } from "../../src/kube/lease.ts";
import { seededRandom } from "../../src/system/random.ts";
import { settle, SteppedClock } from "../fakes/clock.ts";
import { FakeLog } from "../fakes/log.ts";
import { LeaseServer } from "./lease-server.ts";

type Candidate = {
  readonly path: { state: "up" | "down" | "hanging" };
  /** What `lead` went through. */
  readonly history: string[];
  readonly end: Promise<LeaseEnd>;
  readonly stop: () => void;
  /** Lets `lead` end after it was asked to. */
  readonly finish: () => void;
};

function enter(server: LeaseServer, clock: SteppedClock, identity: string): Candidate {
  const path: Candidate["path"] = { state: "up" };
  const history: string[] = [];
  const controller = new AbortController();
  const finished = Promise.withResolvers<undefined>();
  const options = { api: server.reachedBy(path), clock, random: seededRandom(identity.length), log: new FakeLog(), namespace: "n", name: "l", identity };
  const end = leadWhileElected(options, controller.signal, async (signal) => {
    history.push("leads");
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    history.push("asked to end");
    await finished.promise;
    history.push("ended");
  });
  return { path, history, end, stop: () => controller.abort(), finish: () => finished.resolve(undefined) };
}

test("of two candidates one leads, and the other takes over within seconds of a release", async () => {
  const [server, clock] = [new LeaseServer(), new SteppedClock()];
  const first = enter(server, clock, "first");
  await settle();
  const second = enter(server, clock, "second");
  await clock.advance(120_000);
  expect([first.history, second.history]).toEqual([["leads"], []]);
  first.finish();
  first.stop();
  await clock.advance(leaderRetryMs * 1.5);
  expect(await first.end).toBe("stopped");
  expect(second.history).toEqual(["leads"]);
  expect(server.lease?.spec).toMatchObject({ holderIdentity: "second", leaseTransitions: 1 });
  second.finish();
  second.stop();
  await clock.advance(leaderRetryMs);
  expect(await second.end).toBe("stopped");
  expect(clock.sleeperCount).toBe(0);
});

test("the Lease is kept until the work has ended, however long that takes", async () => {
  const [server, clock] = [new LeaseServer(), new SteppedClock()];
  const first = enter(server, clock, "first");
  await settle();
  const second = enter(server, clock, "second");
  first.stop();
  await clock.advance(leaderLeaseMs * 3);
  expect([first.history, second.history]).toEqual([["leads", "asked to end"], []]);
  first.finish();
  await clock.advance(leaderRetryMs * 3);
  expect([first.history.at(-1), second.history]).toEqual(["ended", ["leads"]]);
  second.finish();
  second.stop();
  await clock.advance(leaderRetryMs);
});

test.each(["down", "hanging"] as const)("a leader whose server is %s stops before another one may lead", async (state) => {
  const [server, clock] = [new LeaseServer(), new SteppedClock()];
  const first = enter(server, clock, "first");
  await settle();
  const second = enter(server, clock, "second");
  await clock.advance(1_000);
  first.path.state = state;
  const startedAtMs = clock.monotonicMs();
  while (second.history.length === 0 && clock.monotonicMs() - startedAtMs < 60_000) {
    const isAskedToEnd = first.history.includes("asked to end");
    await clock.advance(100);
    if (second.history.length > 0) expect(isAskedToEnd, "the old leader was told before the new one began").toBe(true);
  }
  expect(second.history).toEqual(["leads"]);
  expect(await first.end).toBe("lost");
  expect(clock.monotonicMs() - startedAtMs).toBeLessThanOrEqual(leaderLeaseMs + 2 * leaderRetryMs);
  second.finish();
  second.stop();
  await clock.advance(leaderRetryMs);
});

test("an outage shorter than the deadline costs nothing", async () => {
  const [server, clock] = [new LeaseServer(), new SteppedClock()];
  const leader = enter(server, clock, "leader");
  await clock.advance(leaderRetryMs);
  leader.path.state = "down";
  await clock.advance(leaderRenewDeadlineMs - 2 * leaderRetryMs);
  leader.path.state = "up";
  await clock.advance(leaderLeaseMs);
  expect(leader.history).toEqual(["leads"]);
  leader.finish();
  leader.stop();
  await clock.advance(leaderRetryMs);
  expect(await leader.end).toBe("stopped");
});

test("somebody's edit of the Lease is survived, somebody's name in it is not", async () => {
  const [server, clock] = [new LeaseServer(), new SteppedClock()];
  const leader = enter(server, clock, "leader");
  await settle();
  const { lease } = server;
  if (lease === undefined) throw new Error("expected a lease");
  server.lease = { ...lease, metadata: { ...lease.metadata, labels: { touched: "yes" }, resourceVersion: "900" } };
  await clock.advance(leaderRetryMs * 3);
  expect(leader.history).toEqual(["leads"]);
  expect(server.lease.metadata.labels, "what others wrote stays").toEqual({ touched: "yes" });
  server.lease = { ...server.lease, spec: { holderIdentity: "intruder" }, metadata: { ...server.lease.metadata, resourceVersion: "901" } };
  await clock.advance(leaderRetryMs);
  expect(await leader.end).toBe("lost");
});

test("work that fails ends the election with its failure, and nothing renews any more", async () => {
  const [server, clock] = [new LeaseServer(), new SteppedClock()];
  const options = { api: server.reachedBy({ state: "up" }), clock, random: seededRandom(1), log: new FakeLog(), namespace: "n", name: "l", identity: "me" };
  await expect(leadWhileElected(options, new AbortController().signal, () => Promise.reject(new Error("bug")))).rejects.toThrow("bug");
  await settle();
  expect([clock.sleeperCount, server.writeCount]).toEqual([0, 1]);
});

test("a candidate that is asked to stop while it waits never leads", async () => {
  const [server, clock] = [new LeaseServer(), new SteppedClock()];
  const first = enter(server, clock, "first");
  await settle();
  const second = enter(server, clock, "second");
  await clock.advance(5_000);
  second.stop();
  expect(await second.end).toBe("stopped");
  expect(second.history).toEqual([]);
  first.finish();
  first.stop();
  await clock.advance(leaderRetryMs);
});

test("whether a candidate holds the Lease is asked of the server, not remembered", async () => {
  const [server, clock, path] = [new LeaseServer(), new SteppedClock(), { state: "up" as "up" | "down" }];
  const ask = (identity: string) => holdsLease({ api: server.reachedBy(path), namespace: "n", name: "l", identity });
  expect(await ask("first"), "nobody holds a Lease that does not exist").toMatchObject({ kind: "failed" });
  const first = enter(server, clock, "first");
  await settle();
  expect([await ask("first"), (await ask("second")).kind]).toEqual([{ kind: "done" }, "failed"]);
  path.state = "down";
  expect(await ask("first"), "silence is no yes").toMatchObject({ kind: "failed", failure: { kind: "transient" } });
  first.finish();
  first.stop();
  await clock.advance(leaderRetryMs);
  path.state = "up";
  expect(await ask("first"), "released").toMatchObject({ kind: "failed", failure: { kind: "conflict" } });
});
