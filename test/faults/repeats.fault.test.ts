/** Input that comes twice, too late, too early or from nowhere, and flows that die with a resume in hand. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { EpochMs } from "../../src/base/units.ts";
import { prepareStart } from "../../src/client/start.ts";
import { armedHeaders } from "../../src/nats/armed.ts";
import { commandSubjects, headerNames, wakeSubject } from "../../src/protocol/names.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { timerKey } from "../../src/timer/identity.ts";
import { request, type StoredResume } from "../worker/world.ts";
import { eventually, openBed, type Bed } from "./bed.ts";

let bed: Bed;
afterEach(async () => { await bed[Symbol.asyncDispose](); });

const timerCount = 50;

test("starts that come five times to two workers make one timer each, resumed once", async () => {
  bed = await openBed();
  await Promise.all([bed.world.spawnWorker(), bed.world.spawnWorker()]);
  const requests = Array.from({ length: timerCount }, (_, index) => request(`twice-${String(index)}`, { wait: { delayMs: 1_000 } }));
  // Without message ids: the broker suppresses none of the copies.
  const copies = requests.flatMap((one) => {
    bed.ledger.sent(one);
    const { message } = prepareStart(one, { brokerPayloadBytesMax: undefined }, systemSha256);
    const command = { subject: commandSubjects.start, headers: [[headerNames.context, message.contextHeader]] as const, body: message.body };
    return Array.from({ length: 5 }, () => command);
  });
  const outcomes = await bed.world.broker.jetStream.publish(copies);
  expect(outcomes.filter(({ kind }) => kind !== "stored")).toEqual([]);
  for (const timer of bed.ledger.timers.values()) timer.acknowledged = true;
  await eventually("every resume", async () => (await bed.world.resumes()).length >= timerCount);
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount, elapsed: timerCount, generationsResumed: timerCount, resumesRepeated: 0 });
});

test("wakes that come again after their timers elapsed repeat nothing but the same resume", async () => {
  bed = await openBed();
  await Promise.all([bed.world.spawnWorker(), bed.world.spawnWorker()]);
  await bed.start("woken", { count: timerCount, wait: { delayMs: 500 } });
  await eventually("every resume", async () => (await bed.world.resumes()).length === timerCount);
  const resumes = await bed.world.resumes();
  await wakeByHand(resumes, { generation: 0, fence: 1 });
  await wakeByHand(resumes, { generation: 0, fence: 1 });
  await eventually("no wake left", async () => (await bed.world.messages("schedules")).length === 0);
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount, elapsed: timerCount, generationsResumed: timerCount, resumesRepeated: 0 });
});

test("a wake that comes early, whatever it says of its due time, leaves its timer waiting until it is due", async () => {
  bed = await openBed();
  await Promise.all([bed.world.spawnWorker(), bed.world.spawnWorker()]);
  await bed.start("early", { count: timerCount, taken: true, wait: { delayMs: 6_000 } });
  await wakeByHand(await bed.world.records(), { generation: 0, fence: 1 });
  await eventually("the wakes taken", async () => (await bed.wakeConsumer()).pending === 0);
  await eventually("every resume", async () => (await bed.world.resumes()).length === timerCount);
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount, elapsed: timerCount, generationsResumed: timerCount });
});

test("feedback of an earlier generation or of a fence that never was is rejected and changes nothing", async () => {
  bed = await openBed();
  await bed.world.spawnWorker();
  const { client } = bed.world;
  await bed.start("stale", { count: 1, taken: true, wait: { delayMs: 0 }, retryWait: { delayMs: 0 } });
  const first = await nextResume(0);
  expect((await client.retry(first)).outcome).toMatchObject({ kind: "accepted" });
  const second = await nextResume(1);
  const before = await bed.world.records();
  const other = { body: Buffer.from("another feedback than the accepted one") };
  expect((await client.retry(first, other)).outcome).toMatchObject({ kind: "rejected", code: "stale" });
  expect((await client.complete(first)).outcome).toMatchObject({ kind: "rejected", code: "stale" });
  expect((await client.fail({ ...first, fence: first.fence - 1 }, { code: "late", message: "" })).outcome).toMatchObject({ kind: "rejected", code: "stale" });
  expect((await client.complete({ ...second, fence: second.fence + 2 }, { outcomeTimeoutMs: 30_000 })).outcome).toMatchObject({ kind: "rejected", code: "unknown_fence" });
  expect((await client.complete({ ...second, generation: 2 }, { outcomeTimeoutMs: 30_000 })).outcome).toMatchObject({ kind: "rejected", code: "unknown_fence" });
  expect((await bed.world.records()).map(encodeRecord)).toEqual(before.map(encodeRecord));
  expect(await bed.account()).toMatchObject({ acknowledged: 1, elapsed: 1, generationsResumed: 2 });
});

test("a flow that dies with resumes in its hand gets the very same ones again", async () => {
  bed = await openBed({ spec: { resume: { ackWaitSeconds: 5 } } });
  await bed.world.spawnWorker();
  await bed.start("claimed", { count: timerCount, wait: { delayMs: 0 } });
  await eventually("every resume", async () => (await bed.world.resumes()).length === timerCount);
  for (const resume of await bed.world.resumes()) bed.ledger.resumed(resume, resume.storedAtMs);
  const child = spawn(process.execPath, [join(import.meta.dirname, "dying-flow.ts"), ...bed.world.servers.urls], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => { said += chunk.toString(); });
  try {
    await eventually("resumes in its hand", () => said.includes(`${String(timerCount)}\n`));
  } finally {
    child.kill("SIGKILL");
    await exited;
  }
  const flow = bed.openFlow({ retries: 0, ending: "complete" });
  await eventually("every end", async () => (await bed.world.archived()).length === timerCount);
  expect(bed.ledger.resumes.length).toBeGreaterThanOrEqual(2 * timerCount);
  expect(await bed.account()).toMatchObject({ acknowledged: timerCount, archived: timerCount, generationsResumed: timerCount, resumesRepeated: 0 });
  expect(flow.rejected).toEqual([]);
});

/** As the broker would, with a due time that has long passed. */
async function wakeByHand(timers: readonly Pick<StoredResume, "lineage">[], { generation, fence }: { readonly generation: number; readonly fence: number }): Promise<void> {
  const headers = armedHeaders({ generation, fence, dueAtMs: 1 as EpochMs });
  const outcomes = await bed.world.broker.jetStream.publish(timers.map(({ lineage }) => ({ subject: wakeSubject(timerKey(lineage, systemSha256)), headers, body: new Uint8Array(0) })));
  expect(outcomes.filter(({ kind }) => kind !== "stored")).toEqual([]);
}

async function nextResume(generation: number): Promise<StoredResume> {
  const find = async () => (await bed.world.resumes()).find((resume) => resume.generation === generation);
  await eventually(`the resume of generation ${String(generation)}`, async () => (await find()) !== undefined);
  const resume = await find();
  if (resume === undefined) throw new Error("it was there");
  return resume;
}
