import { describe, expect, it } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import type { FailureCode, FailureKind } from "../../src/base/failure.ts";
import { streamNames } from "../../src/protocol/names.ts";
import { Bench, orders } from "./bench.ts";
import { spec } from "./plan/scenes.ts";

const failure = (kind: FailureKind, code: FailureCode): Failure => new Failure(kind, code, "try it");

describe("reconcile", () => {
  it("brings an empty account to Ready and then does nothing", async () => {
    const bench = new Bench();
    const passes = await bench.settle();
    expect(bench.conditions().slice(0, 6)).toEqual([
      "Ready True Serving", "BrokerReachable True Connected", "BrokerCompatible True Compatible", "TopologyReady True Provisioned",
      "WorkersReady True WorkersAvailable", "ResumeOpen True Open",
    ]);
    const writes = [...bench.broker.writes, ...bench.cluster.writes].length;
    expect(await bench.pass()).toMatchObject({ kind: "unchanged", isReady: true });
    expect([...bench.broker.writes, ...bench.cluster.writes].length).toBe(writes);
    expect(passes).toBeLessThanOrEqual(5);
  });

  it("shows a new resource as Unknown before anything slow is asked", async () => {
    const bench = new Bench();
    expect(await bench.pass()).toEqual({ kind: "changed", requeueAfterMs: 0, isReady: false });
    expect(bench.broker.sessions).toEqual([]);
    expect(bench.conditions().filter((text) => !text.includes("Unknown"))).toEqual(["Reconciling True NotObserved"]);
  });

  it("turns the gates in their order, and each only after a look", async () => {
    const bench = new Bench();
    await bench.settle();
    const gates = ["BrokerReachable", "BrokerCompatible", "TopologyReady", "WorkersReady", "ResumeOpen", "Ready"];
    const opened = gates.map((type) => bench.cluster.statuses.findIndex(({ conditions }) => conditions?.some((one) => one.type === type && one.status === "True")));
    expect(opened).toEqual([...opened].sort((a, b) => a - b));
    expect(opened[2]).toBeGreaterThan(opened[1] ?? Infinity);
    expect(bench.cluster.events.map(({ reason }) => reason).filter((reason) => !reason.endsWith("Created"))).toEqual(["WorkersAvailable", "Ready", "ResumeOpened"]);
  });

  it("creates the workers after every stream and consumer", async () => {
    const bench = new Bench();
    await bench.pass();
    await bench.pass();
    expect(bench.broker.writes).toHaveLength(12);
    expect(bench.cluster.workers.size).toBe(0);
    await bench.pass();
    expect(bench.cluster.workers.size).toBe(1);
  });

  it("asks to be run again at once after it changed something", async () => {
    const bench = new Bench();
    await bench.pass();
    expect(await bench.pass()).toMatchObject({ kind: "changed", requeueAfterMs: 0 });
  });

  it("stops at the first failure, and continues there", async () => {
    const bench = new Bench();
    bench.broker.plant(`createStream ${streamNames.schedules}`, failure("transient", "BROKER_TIMEOUT"));
    await bench.pass();
    expect(await bench.pass()).toMatchObject({ kind: "failed", failure: { code: "BROKER_TIMEOUT" } });
    expect(bench.broker.writes).toEqual([`createStream ${streamNames.state}`, "writeOwnerKey", `createStream ${streamNames.snapshots}`, `createStream ${streamNames.terminals}`]);
    expect(bench.conditions()).toContain("Reconciling True ProgressingWithRetry");
    await bench.settle();
    expect(bench.conditions()).toContain("Ready True Serving");
    expect(bench.broker.writes.filter((write) => write.startsWith("createStream"))).toHaveLength(7);
  });

  it("shows a failure that only a person can end, and does not hurry", async () => {
    const bench = new Bench();
    bench.broker.plant(`createStream ${streamNames.snapshots}`, failure("capacity", "STORAGE_INSUFFICIENT"), 100);
    await bench.pass();
    expect(await bench.pass()).toMatchObject({ kind: "changed", isReady: false });
    expect(bench.conditions()).toEqual(expect.arrayContaining(["Ready False InsufficientStorage", "TopologyReady False InsufficientStorage", "Stalled True InsufficientStorage"]));
    await bench.settle();
    const { length } = bench.cluster.writes;
    expect(await bench.pass()).toEqual({ kind: "unchanged", isReady: false });
    expect(bench.cluster.writes).toHaveLength(length);
  });

  it("repairs what is in the broker although the cluster refuses the workers, and shows both failures", async () => {
    const bench = new Bench();
    await bench.settle();
    bench.cluster.failures.set("applyWorkers", failure("invalid", "CLUSTER_INVALID"));
    bench.cluster.put(orders, spec({ topology: { streams: { terminals: { maxBytes: "30Gi" } } }, workers: { image: "worker:2" } }));
    expect(await bench.pass()).toMatchObject({ kind: "changed", requeueAfterMs: 0 });
    expect(bench.broker.writes.at(-1)).toBe(`updateStream ${streamNames.terminals}`);
    expect(bench.conditions()).toEqual(expect.arrayContaining(["WorkersReady False WorkersRefused", "Stalled True WorkersRefused"]));
    bench.broker.plant(`updateStream ${streamNames.terminals}`, failure("capacity", "STORAGE_INSUFFICIENT"), 100);
    bench.cluster.put(orders, spec({ topology: { streams: { terminals: { maxBytes: "40Gi" } } }, workers: { image: "worker:2" } }));
    expect(await bench.pass()).not.toHaveProperty("requeueAfterMs");
    expect(bench.conditions()).toEqual(expect.arrayContaining(["WorkersReady False WorkersRefused", "TopologyReady False InsufficientStorage"]));
    const stalled = bench.cluster.status(orders)?.conditions?.find(({ type }) => type === "Stalled");
    expect(stalled?.message.match(/try it/g)).toHaveLength(2);
    const { length } = bench.cluster.statuses;
    await bench.pass();
    expect(bench.cluster.statuses).toHaveLength(length);
  });

  it("says nothing of a lost race", async () => {
    const bench = new Bench();
    bench.broker.plant(`createStream ${streamNames.state}`, failure("conflict", "STREAM_EXISTS"));
    await bench.pass();
    const before = bench.cluster.events.length;
    expect(await bench.pass()).toMatchObject({ kind: "failed", failure: { kind: "conflict" } });
    expect(bench.conditions()).toContain("TopologyReady False Provisioning");
    expect(bench.cluster.events).toHaveLength(before);
  });

  it("hands a refused status write back, and emits no event for it", async () => {
    const bench = new Bench();
    bench.cluster.failures.set("writeStatus", failure("conflict", "CLUSTER_CONFLICT"));
    expect(await bench.pass()).toMatchObject({ kind: "failed", failure: { code: "CLUSTER_CONFLICT" } });
    expect(bench.cluster.events).toEqual([]);
  });

  it("tells of what it did although the status is refused, once, and of conditions only when they are stored", async () => {
    const bench = new Bench();
    await bench.pass();
    bench.cluster.failures.set("writeStatus", failure("conflict", "CLUSTER_CONFLICT"));
    await bench.pass();
    const told = bench.cluster.events.map(({ reason }) => reason);
    expect(new Set(told)).toEqual(new Set(["StreamCreated", "ConsumerCreated"]));
    expect(told).toHaveLength(11);
    bench.cluster.failures.clear();
    await bench.settle();
    expect(bench.cluster.events.filter(({ reason }) => reason === "StreamCreated")).toHaveLength(7);
  });

  it("opens the resume consumer only when workers are ready", async () => {
    const bench = new Bench();
    bench.cluster.becomesReady = false;
    await bench.settle();
    expect(bench.conditions()).toEqual(expect.arrayContaining(["WorkersReady False WorkersProgressing", "ResumeOpen False WaitingForWorkers"]));
    expect(bench.broker.consumers.get("NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME")?.isPaused).toBe(true);
    bench.cluster.setReady(orders, 2);
    await bench.settle();
    expect(bench.broker.consumers.get("NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME")?.isPaused).toBe(false);
    expect(bench.conditions()).toContain("Ready True Serving");
  });

  it("rolls workers although the topology cannot be repaired", async () => {
    const bench = new Bench();
    await bench.settle();
    bench.broker.plant(`updateStream ${streamNames.terminals}`, failure("capacity", "STORAGE_INSUFFICIENT"), 100);
    bench.cluster.put(orders, spec({ topology: { streams: { terminals: { maxBytes: "30Gi" } } }, workers: { image: "worker:2" } }));
    await bench.pass();
    expect(bench.cluster.workers.get("payments/orders")?.desired.spec.workers.image).toBe("worker:2");
  });

  it("uses the session that is open when the credentials are gone", async () => {
    const bench = new Bench();
    await bench.settle();
    bench.cluster.connection = { kind: "missing", problems: ["Secret dt does not exist."] };
    await bench.pass();
    expect(bench.conditions()).toEqual(expect.arrayContaining(["Ready True Serving", "CredentialsValid False CredentialsMissing"]));
    expect(bench.broker.sessions).toHaveLength(1);
  });

  it("opens another session when the connection changes, and closes the old one", async () => {
    const bench = new Bench();
    await bench.settle();
    bench.cluster.connection = { kind: "resolved", options: { servers: ["nats://fake:4222"], name: "test", auth: { kind: "token", token: "new" } }, warnings: [] };
    await bench.pass();
    expect({ sessions: bench.broker.sessions.length, open: bench.broker.openSessions }).toEqual({ sessions: 2, open: 1 });
  });

  it("keeps secrets out of its log, status and events", async () => {
    const bench = new Bench();
    bench.cluster.connection = { kind: "resolved", options: { servers: ["nats://fake:4222"], name: "test", auth: { kind: "token", token: "s3cret" } }, warnings: [] };
    await bench.settle();
    expect(JSON.stringify([bench.log.lines, bench.cluster.status(orders), bench.cluster.events])).not.toContain("s3cret");
  });

  it("lets go of a resource that is gone", async () => {
    const bench = new Bench();
    await bench.settle();
    bench.cluster.delete(orders);
    const { length } = bench.broker.writes;
    expect(await bench.pass()).toEqual({ kind: "gone" });
    expect({ open: bench.broker.openSessions, streams: bench.broker.streams.size, writes: bench.broker.writes.length }).toEqual({ open: 0, streams: 7, writes: length });
    expect(bench.cluster.writes.at(-1)).toBe("removeWorkers payments/orders");
  });

  it("shows a spec that it cannot read, and leaves what runs", async () => {
    const bench = new Bench();
    await bench.settle();
    bench.cluster.invalid.set("payments/orders", ["spec.topology.replicas must be 1, 3 or 5."]);
    expect(await bench.pass()).toEqual({ kind: "changed", isReady: false });
    expect(await bench.pass()).toEqual({ kind: "unchanged", isReady: false });
    expect(bench.conditions()).toEqual(expect.arrayContaining(["Ready False SpecInvalid", "Stalled True SpecInvalid", "WorkersReady True WorkersAvailable"]));
    expect(bench.cluster.workers.size).toBe(1);
  });

  it("flips nothing for an outage within the grace, and tells when to look again", async () => {
    const bench = new Bench();
    await bench.settle();
    bench.broker.lostForMs = 12_000;
    expect(await bench.pass()).toEqual({ kind: "unchanged", requeueAfterMs: 18_000, isReady: true });
    bench.broker.lostForMs = 30_000;
    await bench.pass();
    expect(bench.conditions().slice(0, 2)).toEqual(["Ready Unknown BrokerUnreachable", "BrokerReachable False BrokerUnreachable"]);
    expect(bench.cluster.events.slice(-1).map(({ reason }) => reason)).toEqual(["BrokerLost"]);
    bench.broker.lostForMs = undefined;
    await bench.settle();
    expect(bench.conditions()).toContain("Ready True Serving");
  });
});

describe("reconcile of a resource that is to be deleted with its streams", () => {
  it("holds a resource whose policy is Delete before it makes anything, and deletes the streams with it", async () => {
    const bench = new Bench();
    bench.cluster.put(orders, spec({ deletionPolicy: "Delete" }));
    await bench.pass();
    expect(await bench.pass()).toMatchObject({ kind: "changed", requeueAfterMs: 0 });
    expect({ writes: bench.broker.writes, finalizers: bench.cluster.resources.get("payments/orders")?.finalizers }).toEqual({ writes: [], finalizers: ["durabletimer.dev/streams"] });
    await bench.settle();
    expect(bench.conditions()).toContain("Ready True Serving");
    bench.cluster.requestDeletion(orders, bench.clock.nowMs());
    for (let count = 0; count < 10 && bench.cluster.resources.size > 0; count += 1) await bench.pass();
    expect({ resources: bench.cluster.resources.size, streams: bench.broker.streams.size }).toEqual({ resources: 0, streams: 0 });
    const deletions = bench.broker.writes.filter((write) => write.startsWith("deleteStream"));
    expect([deletions.at(0), deletions.at(-1), deletions.length]).toEqual([`deleteStream ${streamNames.commands}`, `deleteStream ${streamNames.state}`, 7]);
    expect(await bench.pass()).toEqual({ kind: "gone" });
    expect(bench.cluster.events.filter(({ reason }) => reason === "StreamDeleted")).toHaveLength(7);
    expect(bench.cluster.events.map(({ reason }) => reason)).not.toContain("DataRetained");
  });

  it("deletes nothing while a start waits, until a person acknowledges the incident", async () => {
    const bench = new Bench();
    bench.cluster.put(orders, spec({ deletionPolicy: "Delete" }));
    await bench.settle();
    bench.broker.fill(streamNames.commands);
    bench.cluster.requestDeletion(orders, bench.clock.nowMs());
    await bench.settle();
    expect(bench.conditions()).toEqual(expect.arrayContaining(["Ready False Deleting", "Stalled True TimersWaiting", "AdmissionOpen False ClosedByIncident"]));
    expect({ streams: bench.broker.streams.size, workers: bench.cluster.workers.get("payments/orders")?.desired.spec.workers.replicas }).toEqual({ streams: 7, workers: 2 });
    const id = bench.cluster.status(orders)?.incidents?.[0]?.id ?? "";
    bench.cluster.put(orders, spec({ deletionPolicy: "Delete", acknowledge: [id] }));
    for (let count = 0; count < 10 && bench.cluster.resources.size > 0; count += 1) await bench.pass();
    expect({ resources: bench.cluster.resources.size, streams: bench.broker.streams.size }).toEqual({ resources: 0, streams: 0 });
  });

  it("notices a start that slips in before the door is closed", async () => {
    const bench = new Bench();
    bench.cluster.put(orders, spec({ deletionPolicy: "Delete" }));
    await bench.settle();
    bench.cluster.requestDeletion(orders, bench.clock.nowMs());
    await bench.pass();
    expect(bench.cluster.workers.get("payments/orders")?.desired.spec.workers.replicas).toBe(0);
    bench.broker.fillBefore = { write: `deleteStream ${streamNames.commands}`, stream: streamNames.commands };
    expect(await bench.pass()).toMatchObject({ kind: "failed", failure: { kind: "conflict" } });
    await bench.settle();
    expect(bench.conditions()).toContain("Stalled True TimersWaiting");
    expect(bench.broker.streams.size).toBe(7);
  });

  it("lets a deleted resource go whose spec it cannot read, and leaves the streams", async () => {
    const bench = new Bench();
    bench.cluster.put(orders, spec({ deletionPolicy: "Delete" }));
    await bench.settle();
    bench.cluster.invalid.set("payments/orders", ["spec.topology.replicas must be 1, 3 or 5."]);
    bench.cluster.requestDeletion(orders, bench.clock.nowMs());
    await bench.pass();
    expect({ resources: bench.cluster.resources.size, streams: bench.broker.streams.size }).toEqual({ resources: 0, streams: 7 });
    expect(bench.cluster.events.at(-1)?.reason).toBe("DataRetained");
  });
});
