/**
 * Records and snapshots that were damaged, removed, or written by a newer version: those timers are set aside and reported,
 * never resumed with wrong bytes, and stop nobody else. Who writes the damage here writes it into NATS, past every worker.
 */
import { afterEach, describe, expect, test } from "vitest";
import type { EpochMs } from "../../src/base/units.ts";
import { consumerNames, leaseKeys, snapshotSubject, stateKey, stateSubject, streamNames, timerKeyFromSubject } from "../../src/protocol/names.ts";
import type { TimerKey } from "../../src/timer/identity.ts";
import { decodeSummary } from "../../src/worker/sweep-summary.ts";
import { request, told, type WorkerProcess, type WorldOptions } from "../worker/world.ts";
import { eventually, openBed, type Bed } from "./bed.ts";
import { healthOf } from "./health.ts";

let bed: Bed;
afterEach(() => bed[Symbol.asyncDispose]());

type Row = { readonly name: string; readonly problem: string; readonly damage: (key: TimerKey) => Promise<void>; readonly isRecord: boolean };

const rows: readonly Row[] = [
  { name: "a record that does not parse", problem: "state record", damage: (key) => overwrite(stateSubject(stateKey(key)), "{\"v\":1,"), isRecord: true },
  { name: "a record of a newer version", problem: "state record", damage: (key) => overwrite(stateSubject(stateKey(key)), "{\"v\":2,\"phase\":\"hibernating\"}"), isRecord: true },
  { name: "a snapshot that fails its hash", problem: "does not match its hash", damage: async (key) => { await overwrite(snapshotSubject(key), "{\"execution\":\"forged\"}"); }, isRecord: false },
  { name: "a missing snapshot", problem: "snapshot is missing", damage: async (key) => { told(await bed.world.broker.jetStream.purge({ stream: streamNames.snapshots, subject: snapshotSubject(key) })); }, isRecord: false },
];

describe.each(rows)("$name", ({ problem, damage, isRecord }) => {
  test("sets its timer aside at wake, start and feedback, and no other", async () => {
    const options: WorldOptions = { spec: { sweep: { intervalSeconds: 10, graceSeconds: 1 }, workers: { maxAckPending: 20 } } };
    bed = await openBed(options);
    const worker = await bed.world.spawnWorker();
    const wakes = { stream: streamNames.schedules, consumer: consumerNames.wake };
    // However slow this machine is, nothing wakes before the damage is done.
    told(await bed.world.broker.admin.pauseConsumer({ ...wakes, untilMs: (Date.now() + 600_000) as EpochMs }));
    // More damaged timers than the consumer may have in hand, all due before the first whole one.
    await bed.start("damaged", { count: 40, taken: true, wait: { delayMs: 3_000 } });
    const damaged = await keys();
    for (const key of damaged) await damage(key);
    await bed.start("whole", { count: 40, taken: true, wait: { delayMs: 4_000 } });
    told(await bed.world.broker.admin.pauseConsumer({ ...wakes, untilMs: 0 as EpochMs }));
    await eventually("the damage in the log", () => worker.lines.filter((line) => line.includes("Set a corrupt timer aside") && line.includes(problem)).length >= 40);
    await eventually("the whole ones' resumes", async () => (await bed.world.resumes()).length === 40);
    const resumed = await bed.world.resumes();
    expect(resumed.every(({ lineage }) => lineage.execution.startsWith("whole-"))).toBe(true);
    // Each of them waits where it holds up nobody, and is not forgotten.
    await eventually("no wake in hand", async () => {
      const { ackPending, pending } = told(await bed.world.broker.jetStream.consumerState(wakes.stream, wakes.consumer));
      return ackPending === 0 && pending === 0;
    });
    expect((await bed.world.messages("schedules")).map(({ subject }) => timerKeyFromSubject(subject)?.ref).toSorted()).toEqual(damaged.map(({ ref }) => ref).toSorted());
    expect((await healthOf(worker, "/metrics")).text).toMatch(/durable_timer_worker_unreadable_met_total [1-9]/);
    await (isRecord ? setsCommandsAside(worker) : takesCommands());
  }, 180_000);
});

/** Of a timer whose record cannot be read nothing is decided; its commands wait, and others are answered. */
async function setsCommandsAside(worker: WorkerProcess): Promise<void> {
  const { client } = bed.world;
  const asideOf = (loop: string) => worker.lines.filter((line) => line.includes("Set a corrupt timer aside") && line.includes(`"loop":"${loop}"`)).length;
  // Awaiting an outcome sends the second copy past the message id of the first.
  expect((await client.start(request("damaged-0", { wait: { delayMs: 3_000 } }), { awaitOutcome: true, outcomeTimeoutMs: 2_000 })).outcome).toMatchObject({ kind: "unknown" });
  await eventually("the start set aside", () => asideOf("start") > 0);
  const [whole] = await bed.world.resumes();
  if (whole === undefined) throw new Error("no resume");
  await client.complete({ ...whole, lineage: { ...whole.lineage, execution: "damaged-1" } }, { awaitOutcome: false });
  await eventually("the feedback set aside", () => asideOf("feedback") > 0);
  expect((await client.complete(whole, { outcomeTimeoutMs: 60_000 })).outcome).toMatchObject({ kind: "accepted" });
  expect((await client.start(request("beside", { wait: { delayMs: 600_000 } }), { awaitOutcome: true, outcomeTimeoutMs: 60_000 })).outcome).toMatchObject({ kind: "accepted" });
  expect((await bed.world.messages("commands")).length).toBe(1);
  expect((await bed.world.messages("feedback")).length).toBe(1);
  await eventually("the sweep's count", async () => {
    const [note] = await bed.world.messages("state", stateSubject(leaseKeys.sweepSummary));
    return note !== undefined && decodeSummary(Buffer.from(note.body).toString())?.unreadable === 40;
  });
}

/** Without its snapshot a timer has elapsed all the same: it is known, and its flow's owner can end it. */
async function takesCommands(): Promise<void> {
  const { client } = bed.world;
  const [record] = (await bed.world.records()).filter(({ lineage }) => lineage.execution === "damaged-1");
  if (record === undefined) throw new Error("no record");
  expect(record.phase).toBe("elapsed");
  expect((await client.start(request("damaged-0", { wait: { delayMs: 3_000 } }), { awaitOutcome: true, outcomeTimeoutMs: 60_000 })).outcome).toMatchObject({ kind: "duplicate" });
  const { lineage, generation, fence, snapshotHash } = record;
  expect((await client.fail({ lineage, generation, fence, snapshotHash }, { code: "snapshot_lost", message: "" }, { outcomeTimeoutMs: 60_000 })).outcome).toMatchObject({ kind: "accepted" });
  await eventually("its end", async () => (await bed.world.archived()).length === 1);
}

async function keys(): Promise<readonly TimerKey[]> {
  const messages = await bed.world.messages("state", "$KV.DURABLE_TIMER_STATE.t.>");
  return messages.map(({ subject }) => timerKeyFromSubject(subject)).filter((key) => key !== undefined);
}

async function overwrite(subject: string, text: string): Promise<void> {
  const [outcome] = await bed.world.broker.jetStream.publish([{ subject, headers: [["Durable-Timer-Context", "{}"]], body: Buffer.from(text) }]);
  expect(outcome?.kind).toBe("stored");
}
