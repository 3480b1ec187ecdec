/**
 * Streams and an account that fill up under load: starts are held or refused at the door, everything that was taken still
 * ends, nothing is evicted, and service goes on by itself when there is room again. The account at the end of each test
 * finds every start that was ever acknowledged.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { streamNames, type StreamRole } from "../../src/protocol/names.ts";
import type { AdmissionReason } from "../../src/worker/metrics.ts";
import { request, told, type WorkerProcess, type WorldOptions } from "../worker/world.ts";
import { eventually, openBed, type Bed } from "./bed.ts";

let bed: Bed;
afterEach(() => bed[Symbol.asyncDispose]());

type Row = {
  readonly name: string;
  readonly reason: AdmissionReason;
  readonly options: WorldOptions;
  readonly bodyBytes: number;
  readonly timerCount: number;
  /** What makes room; without it the ends of timers do. */
  readonly makeRoom?: () => Promise<unknown>;
};

const account = (bytes: string): string => `accounts { APP { jetstream { max_file: ${bytes} }, users: [ { user: a, password: a } ] } }\nno_auth_user: a`;
const small = { state: "4Mi", commands: "2Mi", feedback: "2Mi", snapshots: "32Mi", terminals: "4Mi", resumes: "2Mi" };

describe.each<Row>([
  { name: "STATE", reason: "state_full", options: { sizes: { state: "2Mi", commands: "2Mi" } }, bodyBytes: 10, timerCount: 2_700 },
  { name: "SNAPSHOTS", reason: "snapshots_full", options: { sizes: { snapshots: "4Mi", commands: "2Mi" } }, bodyBytes: 4_000, timerCount: 1_200, makeRoom: () => resize("snapshots", 64) },
  { name: "TERMINALS", reason: "terminals_full", options: { sizes: { terminals: "2Mi", commands: "2Mi" } }, bodyBytes: 10, timerCount: 1_200, makeRoom: () => resize("terminals", 64) },
  { name: "the account", reason: "account_full", options: { sizes: small, config: account("48MB") }, bodyBytes: 20_000, timerCount: 1_200, makeRoom: () => reconfigure("48MB", "512MB") },
])("$name filling up under load", ({ reason, options, bodyBytes, timerCount, makeRoom }) => {
  test("holds starts while feedback flows, ends everything it took, and goes on by itself", async () => {
    bed = await openBed(options);
    const workers = await Promise.all([bed.world.spawnWorker(), bed.world.spawnWorker()]);
    const started = bed.start("fill", { count: timerCount, wait: { delayMs: 0 }, body: Buffer.alloc(bodyBytes, 7) });
    await eventually(`admission closed for ${reason}`, () => workers.every((worker) => hasClosed(worker, reason)));
    // Held here, and refused at the door once COMMANDS is full: what is refused was never acknowledged.
    const [resume] = await bed.world.resumes();
    if (resume === undefined) throw new Error("no resume although starts were taken");
    expect((await bed.world.client.fail(resume, { code: "gave_up", message: "" })).outcome).toMatchObject({ kind: "accepted" });
    expect((await bed.world.messages("commands")).length).toBeGreaterThan(0);
    for (const role of ["state", "snapshots", "terminals"] as const) expect(await usedShare(role)).toBeLessThan(1);
    const flow = bed.openFlow({ retries: 0, ending: "complete" });
    await eventually("ends of timers that were taken before", async () => (await bed.world.archived()).length > 100);
    await makeRoom?.();
    await started;
    await eventually("every end", async () => (await bed.world.archived()).length === timerCount);
    expect(flow.rejected.filter((code) => !code.startsWith("stale"))).toEqual([]);
    expect(await bed.account()).toMatchObject({ acknowledged: timerCount, archived: timerCount, unacknowledgedHeld: 0 });
    for (const worker of workers) expect(worker.lines.some((line) => line.includes("Opened admission of starts"))).toBe(true);
  }, 180_000);
});

test("resumes that nobody takes fill RESUMES and hold their wakes; all are resumed once a flow takes them", async () => {
  bed = await openBed({ sizes: { resumes: "2Mi" } });
  await bed.world.spawnWorker();
  await bed.start("owed", { count: 800, taken: true, wait: { delayMs: 0 }, body: Buffer.alloc(4_000, 7) });
  await eventually("every record elapsed", async () => (await bed.world.records()).every(({ phase }) => phase === "elapsed"));
  const resumedCount = (await bed.world.resumes()).length;
  expect(resumedCount).toBeLessThan(600);
  expect(await usedShare("resumes")).toBeGreaterThan(0.99);
  // Starts and feedback do not wait for it.
  await bed.world.client.start(request("beside", { wait: { delayMs: 600_000 } }), { awaitOutcome: true });
  bed.ledger.sent(request("beside", { wait: { delayMs: 600_000 } })).acknowledged = true;
  bed.openFlow({ retries: 0, ending: "complete" });
  await eventually("every end", async () => (await bed.world.archived()).length === 800);
  expect(await bed.account()).toMatchObject({ acknowledged: 801, archived: 800, waiting: 1 });
}, 180_000);

test("a COMMANDS that is full refuses starts at the door, and all that it had acknowledged are taken", async () => {
  bed = await openBed({ sizes: { commands: "2Mi" } });
  const all = Array.from({ length: 60 }, (_, index) => bed.world.client.start(request(`door-${String(index)}`, { wait: { delayMs: 600_000 }, body: Buffer.alloc(50_000, 7) })));
  const sent = await Promise.allSettled(all);
  const refused = sent.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
  expect(refused.length).toBeGreaterThan(0);
  for (const reason of refused) expect(reason).toMatchObject({ kind: "capacity", code: "STREAM_FULL" });
  for (const [index, one] of sent.entries()) {
    const timer = bed.ledger.sent(request(`door-${String(index)}`, { wait: { delayMs: 600_000 }, body: Buffer.alloc(50_000, 7) }));
    timer.acknowledged = one.status === "fulfilled";
  }
  await bed.world.spawnWorker();
  const taken = sent.length - refused.length;
  expect(await bed.account()).toMatchObject({ acknowledged: taken, waiting: taken, unacknowledgedHeld: 0 });
});

function hasClosed(worker: WorkerProcess, reason: AdmissionReason): boolean {
  return worker.lines.some((line) => line.includes("Closed admission of starts") && line.includes(`"reason":"${reason}"`));
}

async function usedShare(role: StreamRole): Promise<number> {
  const { bytes, config } = told(await bed.world.broker.jetStream.streamState(streamNames[role]));
  return bytes / Number(config["max_bytes"]);
}

async function resize(role: StreamRole, mebibytes: number): Promise<void> {
  const { config } = told(await bed.world.broker.jetStream.streamState(streamNames[role]));
  told(await bed.world.broker.admin.updateStream({ ...config, max_bytes: mebibytes * 2 ** 20 }));
}

/** Another limit for the account, in the running server. */
async function reconfigure(from: string, to: string): Promise<void> {
  const [server] = bed.world.servers.servers;
  if (server === undefined) throw new Error("no server");
  const path = join(dirname(server.storeDir), `${server.name}.conf`);
  writeFileSync(path, readFileSync(path, "utf8").replace(`max_file: ${from}`, `max_file: ${to}`));
  process.kill(server.pid, "SIGHUP");
  await eventually("the new limit", async () => (told(await bed.world.broker.jetStream.accountState()).storageBytesMax ?? 0) > 500_000_000);
}
