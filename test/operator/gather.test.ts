import { describe, expect, it } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import { failureFact, gather } from "../../src/operator/gather.ts";
import type { Gathered } from "../../src/operator/gather.ts";
import { seededRandom } from "../../src/system/random.ts";
import { Bench } from "./bench.ts";

async function gathered(bench: Bench): Promise<Gathered> {
  const resource = [...bench.cluster.resources.values()][0] ?? expect.fail("a resource");
  const { cluster, sessions, clock } = bench;
  return await gather({ cluster, sessions, clock, random: seededRandom(1) }, resource, new AbortController().signal);
}

describe("gather", () => {
  it("reads everything and changes nothing", async () => {
    const bench = new Bench();
    await bench.settle();
    const writes = [bench.broker.writes.length, bench.cluster.writes.length];
    const { observed, session } = await gathered(bench);
    expect(observed).toMatchObject({ clusterId: "fake-cluster", connection: { kind: "resolved" }, broker: { kind: "reached" }, workers: { kind: "found" } });
    expect(session).toBe(bench.sessions.current(observed.resource.key));
    expect([bench.broker.writes.length, bench.cluster.writes.length]).toEqual(writes);
  });

  it("gives plain data without secrets", async () => {
    const bench = new Bench();
    bench.cluster.connection = { kind: "resolved", options: { servers: ["nats://fake:4222"], name: "test", auth: { kind: "user", user: "u", password: "s3cret" } }, warnings: ["It expires."] };
    const { observed } = await gathered(bench);
    expect(JSON.parse(JSON.stringify(observed))).toEqual(observed);
    expect(JSON.stringify(observed)).not.toContain("s3cret");
    expect(observed.connection).toEqual({ kind: "resolved", warnings: ["It expires."] });
  });

  it("asks no broker when there is no way to it", async () => {
    const bench = new Bench();
    bench.cluster.connection = { kind: "missing", problems: ["Secret a is missing."] };
    const { observed, session } = await gathered(bench);
    expect({ broker: observed.broker, session, connection: observed.connection }).toEqual({ broker: undefined, session: undefined, connection: bench.cluster.connection });
  });

  it("tells why the cluster did not say what the connection is made of", async () => {
    const bench = new Bench();
    bench.cluster.failures.set("resolveConnection", new Failure("transient", "CLUSTER_UNREACHABLE", "read a Secret", { cause: new Error("reset") }));
    const { observed } = await gathered(bench);
    expect(observed.connection).toEqual({ kind: "failed", failure: { kind: "transient", code: "CLUSTER_UNREACHABLE", message: "read a Secret: reset" }, failedForMs: 0 });
  });

  it("tells for how long the cluster has not said it, without a break", async () => {
    const bench = new Bench();
    const failedForMs = async (): Promise<number | undefined> => {
      const { observed } = await gathered(bench);
      return observed.connection.kind === "failed" ? observed.connection.failedForMs : undefined;
    };
    const failure = new Failure("transient", "CLUSTER_UNREACHABLE", "read a Secret");
    bench.cluster.failures.set("resolveConnection", failure);
    expect(await failedForMs()).toBe(0);
    await bench.clock.advance(4_000);
    expect(await failedForMs()).toBe(4_000);
    bench.cluster.failures.delete("resolveConnection");
    expect(await failedForMs()).toBeUndefined();
    bench.cluster.failures.set("resolveConnection", failure);
    await bench.clock.advance(4_000);
    expect(await failedForMs()).toBe(0);
  });

  it("tells for how long a broker that answers has not told everything", async () => {
    const bench = new Bench();
    const first = (await gathered(bench)).observed;
    const session = bench.broker.sessions[0] ?? expect.fail("a session");
    const whole = await session.observe();
    if (whole.kind !== "reached") expect.fail("a reached broker");
    const failure = { kind: "transient", code: "BROKER_TIMEOUT", message: "look at it" } as const;
    session.observe = () => Promise.resolve({ ...whole, ownerKey: { kind: "failed", failure } });
    const second = (await gathered(bench)).observed;
    await bench.clock.advance(7_000);
    const third = (await gathered(bench)).observed;
    session.observe = () => Promise.resolve(whole);
    const last = (await gathered(bench)).observed;
    expect([first, second, third, last].map(({ unreadForMs }) => unreadForMs)).toEqual([undefined, 0, 7_000, undefined]);
  });

  it("brings a fresh mark for each pass", async () => {
    const bench = new Bench();
    const random = seededRandom(2);
    const resource = [...bench.cluster.resources.values()][0] ?? expect.fail("a resource");
    const marks = await Promise.all([1, 2].map(async () => (await gather({ ...bench, random }, resource, new AbortController().signal)).observed.freshIncarnation));
    expect(new Set(marks).size).toBe(2);
    expect(marks.every((mark) => /^[a-z2-7]{10}$/.test(mark))).toBe(true);
  });
});

describe("failureFact", () => {
  it("keeps the chain of causes as text", () => {
    const failure = new Failure("denied", "BROKER_AUTH", "connect", { cause: new Error("expired") });
    expect(failureFact(failure)).toEqual({ kind: "denied", code: "BROKER_AUTH", message: "connect: expired" });
  });
});
