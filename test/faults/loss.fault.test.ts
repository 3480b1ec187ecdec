/**
 * Streams that are deleted, emptied or made anew under running workers, and a replica whose store is gone. A worker takes no
 * start while what was accepted before is lost, says so, and makes nothing itself; SCHEDULES alone comes back from STATE.
 */
import { rmSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import { consumerNames, streamNames, subjectFilters, type StreamRole } from "../../src/protocol/names.ts";
import { consumerStreams } from "../../src/topology/desired.ts";
import { request, told, type WorkerProcess } from "../worker/world.ts";
import { eventually, openBed, type Bed } from "./bed.ts";
import { healthOf } from "./health.ts";

let bed: Bed;
afterEach(() => bed[Symbol.asyncDispose]());

type Row = { readonly name: string; readonly role: Exclude<StreamRole, "schedules">; readonly kind: string; readonly lose: () => Promise<unknown>; readonly acceptsCommands: boolean };

const remove = (role: StreamRole) => async () => { told(await bed.world.broker.admin.deleteStream(streamNames[role])); };
const empty = (role: StreamRole, subject: string) => async () => { told(await bed.world.broker.jetStream.purge({ stream: streamNames[role], subject })); };

describe.each<Row>([
  { name: "STATE gone", role: "state", kind: "missing", lose: remove("state"), acceptsCommands: true },
  { name: "STATE emptied", role: "state", kind: "emptied", lose: empty("state", ">"), acceptsCommands: true },
  { name: "SNAPSHOTS gone", role: "snapshots", kind: "missing", lose: remove("snapshots"), acceptsCommands: true },
  { name: "SNAPSHOTS emptied", role: "snapshots", kind: "emptied", lose: empty("snapshots", subjectFilters.snapshots), acceptsCommands: true },
  { name: "TERMINALS gone", role: "terminals", kind: "missing", lose: remove("terminals"), acceptsCommands: true },
  { name: "RESUMES gone", role: "resumes", kind: "missing", lose: remove("resumes"), acceptsCommands: true },
  { name: "FEEDBACK gone", role: "feedback", kind: "missing", lose: remove("feedback"), acceptsCommands: true },
  { name: "COMMANDS gone", role: "commands", kind: "missing", lose: remove("commands"), acceptsCommands: false },
])("$name under a running worker", ({ role, kind, lose, acceptsCommands }) => {
  test("stops admission, shows in log, metric and health, and nothing is made anew", async () => {
    bed = await openBed();
    const worker = await bed.world.spawnWorker();
    await bed.start("before", { count: 20, taken: true, wait: { delayMs: 600_000 } });
    await lose();
    await eventually("the loss in the log", () => says(worker, { role, kind }));
    await eventually("the loss in the metric", async () => (await healthOf(worker, "/metrics")).text.includes(`durable_timer_worker_data_lost{stream="${role}"} 1`));
    expect((await healthOf(worker, "/metrics")).text).toContain('durable_timer_worker_admission_reason{reason="data_lost"} 1');
    const ready = await healthOf(worker, "/readyz");
    expect(ready.status).toBe(503);
    expect(ready.text).toContain(streamNames[role]);
    expect((await healthOf(worker, "/livez")).status).toBe(200);
    const existing = async () => Promise.all((Object.keys(streamNames) as StreamRole[]).map(async (one) => (await bed.world.broker.jetStream.streamState(streamNames[one])).kind));
    const before = await existing();
    if (acceptsCommands) {
      await bed.world.client.start(request("after", { wait: { delayMs: 0 } }));
      // Long enough for several looks, redeliveries and a sweep to do what they must not.
      await new Promise((resolve) => { setTimeout(resolve, 2_500); });
      expect((await bed.world.messages("commands")).length).toBe(1);
      if (role !== "resumes") expect(await bed.world.resumes()).toEqual([]);
    }
    expect(await existing()).toEqual(before);
    expect(worker.child.exitCode).toBeNull();
  });
});

test("while STATE is emptied feedback is held, not refused", async () => {
  bed = await openBed();
  const worker = await bed.world.spawnWorker();
  await bed.start("held", { count: 1, taken: true, wait: { delayMs: 0 } });
  await eventually("a resume", async () => (await bed.world.resumes()).length === 1);
  const [resume] = await bed.world.resumes();
  if (resume === undefined) throw new Error("no resume");
  await empty("state", ">")();
  await eventually("the loss in the log", () => says(worker, { role: "state", kind: "emptied" }));
  const { outcome } = await bed.world.client.complete(resume, { outcomeTimeoutMs: 3_000 });
  expect(outcome).toMatchObject({ kind: "unknown" });
  expect(await bed.world.messages("feedback")).toHaveLength(1);
});

test("a stream that its owner made anew ends the worker in order, and the next one begins with it", async () => {
  bed = await openBed();
  const worker = await bed.world.spawnWorker();
  await bed.start("before", { count: 5, taken: true, wait: { delayMs: 600_000 } });
  await recreate("terminals");
  await worker.exited;
  expect(worker.lines.some((line) => line.includes("only a new process may begin with it"))).toBe(true);
  expect(worker.lines.some((line) => line.includes("Drained the worker"))).toBe(true);
  expect(worker.child.exitCode).toBe(0);
  await bed.world.spawnWorker();
  await bed.start("after", { count: 5, taken: true, wait: { delayMs: 600_000 } });
  expect(await bed.account()).toMatchObject({ acknowledged: 10, waiting: 10 });
});

test("SCHEDULES lost: everything is armed again, and resumes that had no place in RESUMES are not forgotten", async () => {
  bed = await openBed({ sizes: { resumes: "2Mi" } });
  await bed.world.spawnWorker();
  await bed.start("owed", { count: 600, taken: true, wait: { delayMs: 0 }, body: Buffer.alloc(6_000, 7) });
  await bed.start("waiting", { count: 50, taken: true, wait: { delayMs: 20_000 } });
  await eventually("records elapsed beyond RESUMES", async () => (await bed.world.records()).filter(({ phase }) => phase === "elapsed").length === 600);
  expect((await bed.world.resumes()).length).toBeLessThan(600);
  await recreate("schedules");
  bed.openFlow({ retries: 0, ending: "complete" });
  await eventually("every end", async () => (await bed.world.archived()).length === 650, 150_000);
  expect(await bed.account()).toMatchObject({ acknowledged: 650, archived: 650 });
}, 240_000);

test("one replica of three whose store is gone: nothing is lost, and it catches up", async () => {
  bed = await openBed({ count: 3 });
  const worker = await bed.world.spawnWorker();
  await bed.start("replicated", { count: 100, taken: true, wait: { delayMs: 3_000 } });
  const [wiped] = bed.world.servers.servers;
  if (wiped === undefined) throw new Error("no server");
  await wiped.kill();
  rmSync(wiped.storeDir, { recursive: true, force: true });
  bed.openFlow({ retries: 0, ending: "complete" });
  await bed.start("meanwhile", { count: 100, wait: { delayMs: 500 } });
  await wiped.start();
  await eventually("every end", async () => (await bed.world.archived()).length === 200);
  expect(await bed.account()).toMatchObject({ acknowledged: 200, archived: 200 });
  await eventually("all replicas current", async () => {
    const states = await Promise.all(Object.values(streamNames).map((name) => bed.world.broker.jetStream.streamState(name)));
    return states.every((state) => told(state).replicas.every(({ current }) => current));
  });
  expect(worker.lines.filter((line) => line.includes("Found a data stream that lost"))).toEqual([]);
}, 240_000);

/** Deleted, and made anew empty by its owner, with its consumers. */
async function recreate(role: StreamRole): Promise<void> {
  const { broker } = bed.world;
  const { config } = told(await broker.jetStream.streamState(streamNames[role]));
  const consumers = await Promise.all(
    (["wake", "resume", "feedback", "start"] as const).filter((one) => consumerStreams[one] === role).map(async (one) => told(await broker.jetStream.consumerState(streamNames[role], consumerNames[one])).config),
  );
  told(await broker.admin.deleteStream(streamNames[role]));
  const metadata = Object.fromEntries(Object.entries(config["metadata"] as Record<string, string>).filter(([name]) => !name.startsWith("_nats.")));
  told(await broker.admin.createStream({ ...config, metadata: { ...metadata, "durable_timer.incarnation": "second" } }));
  for (const consumer of consumers) told(await broker.admin.createConsumer(streamNames[role], consumer));
}

function says(worker: WorkerProcess, { role, kind }: { readonly role: string; readonly kind: string }): boolean {
  return worker.lines.some((line) => line.includes("Found a data stream that lost") && line.includes(`"stream":"${role}"`) && line.includes(`"kind":"${kind}"`));
}
