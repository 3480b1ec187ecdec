/**
 * Backups made with NATS's own means and restored over a broker that lost everything: timers that were due meanwhile fire
 * once, those that had ended stay ended, and the rest waits on.
 */
import { cpSync, rmSync } from "node:fs";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import { streamNames, type StreamRole } from "../../src/protocol/names.ts";
import { told } from "../worker/world.ts";
import { eventually, openBed, type Bed } from "./bed.ts";

let bed: Bed;
afterEach(() => bed[Symbol.asyncDispose]());

type Backup = { readonly config: unknown; readonly state: unknown; readonly chunks: readonly Uint8Array[] };

const roles = Object.keys(streamNames) as StreamRole[];

test("every stream backed up and restored: what was due meanwhile is resumed once, what had ended stays ended", async () => {
  bed = await openBed();
  await startAll();
  const connection = await connect({ servers: [...bed.world.servers.urls] });
  try {
    const backups = new Map<StreamRole, Backup>();
    for (const role of roles) backups.set(role, await backUp(connection, streamNames[role]));
    for (const role of roles) told(await bed.world.broker.admin.deleteStream(streamNames[role]));
    await pastDue();
    for (const role of roles) await restore(connection, streamNames[role], backups.get(role));
  } finally {
    await connection.close();
  }
  await expectOnce();
}, 240_000);

test("the server's files copied back: what was due meanwhile is resumed once, what had ended stays ended", async () => {
  bed = await openBed();
  await startAll();
  const [server] = bed.world.servers.servers;
  if (server === undefined) throw new Error("no server");
  await server.stop();
  const copy = `${server.storeDir}-backup`;
  cpSync(server.storeDir, copy, { recursive: true });
  rmSync(server.storeDir, { recursive: true, force: true });
  await pastDue();
  cpSync(copy, server.storeDir, { recursive: true });
  await server.start();
  await expectOnce();
}, 240_000);

test("a worker that runs while SNAPSHOTS is gone and comes back takes starts again, and resumes with the right bytes", async () => {
  bed = await openBed();
  const worker = await bed.world.spawnWorker();
  await bed.start("held", { count: 20, taken: true, wait: { delayMs: 4_000 } });
  const connection = await connect({ servers: [...bed.world.servers.urls] });
  try {
    const backup = await backUp(connection, streamNames.snapshots);
    told(await bed.world.broker.admin.deleteStream(streamNames.snapshots));
    await eventually("the loss in the log", () => worker.lines.some((line) => line.includes("Found a data stream that lost")));
    await restore(connection, streamNames.snapshots, backup);
  } finally {
    await connection.close();
  }
  await eventually("the restoration in the log", () => worker.lines.some((line) => line.includes("Found data streams restored from a backup")));
  await bed.start("after", { count: 20, taken: true, wait: { delayMs: 0 } });
  bed.openFlow({ retries: 0, ending: "complete" });
  await eventually("every end", async () => (await bed.world.archived()).length === 40);
  expect(await bed.account()).toMatchObject({ acknowledged: 40, archived: 40 });
}, 240_000);

/** Some ended, some due soon, some later; no worker runs any more. */
async function startAll(): Promise<void> {
  const worker = await bed.world.spawnWorker();
  await bed.start("ended", { count: 20, taken: true, wait: { delayMs: 0 } });
  const flow = bed.openFlow({ retries: 0, ending: "complete" });
  await eventually("the first ends", async () => (await bed.world.archived()).length === 20);
  await flow.stop();
  await bed.start("later", { count: 30, taken: true, wait: { delayMs: 3_600_000 } });
  const dueAt = new Date(Date.now() + dueInMs);
  await bed.start("due", { count: 50, taken: true, wait: { dueAt }, maxRetries: 0 });
  await worker.kill("SIGTERM");
  dueAtMs = dueAt.getTime();
}

async function pastDue(): Promise<void> {
  await eventually("the due time", () => Date.now() > dueAtMs + 500);
}

async function expectOnce(): Promise<void> {
  await bed.world.broker.connected(30_000 as never);
  await bed.world.spawnWorker();
  await eventually("what was due", async () => (await bed.world.resumes()).length >= 50);
  expect(await bed.account()).toMatchObject({ acknowledged: 100, archived: 20, elapsed: 50, waiting: 30, resumesRepeated: 0 });
}

/** `$JS.API.STREAM.SNAPSHOT`: chunks come to a subject of ours, each to be acknowledged; an empty one ends it. */
async function backUp(connection: NatsConnection, stream: string): Promise<Backup> {
  const inbox = `_INBOX.backup.${stream}.${String(Date.now())}`;
  const chunks: Uint8Array[] = [];
  const done = Promise.withResolvers<undefined>();
  const subscription = connection.subscribe(inbox, {
    callback: (_, message) => {
      if (message.data.length === 0) { done.resolve(undefined); return; }
      chunks.push(Uint8Array.from(message.data));
      message.respond();
    },
  });
  await connection.flush();
  const reply = await connection.request(`$JS.API.STREAM.SNAPSHOT.${stream}`, JSON.stringify({ deliver_subject: inbox, no_consumers: false, chunk_size: 65_536 }), { timeout: 30_000 });
  const { error, config, state } = reply.json<{ error?: { description: string }; config: unknown; state: unknown }>();
  if (error !== undefined) throw new Error(`back up ${stream}: ${error.description}`);
  await done.promise;
  subscription.unsubscribe();
  return { config, state, chunks };
}

/** `$JS.API.STREAM.RESTORE`: chunks go to a subject of the server's, each acknowledged; an empty one ends it. */
async function restore(connection: NatsConnection, stream: string, backup: Backup | undefined): Promise<void> {
  if (backup === undefined) throw new Error(`no backup of ${stream}`);
  const begun = await connection.request(`$JS.API.STREAM.RESTORE.${stream}`, JSON.stringify({ config: backup.config, state: backup.state }), { timeout: 30_000 });
  const { error, deliver_subject: subject } = begun.json<{ error?: { description: string }; deliver_subject: string }>();
  if (error !== undefined) throw new Error(`restore ${stream}: ${error.description}`);
  for (const chunk of backup.chunks) await connection.request(subject, chunk, { timeout: 30_000 });
  const ended = await connection.request(subject, new Uint8Array(), { timeout: 30_000 });
  const answer = ended.json<{ error?: { description: string } }>();
  if (answer.error !== undefined) throw new Error(`restore ${stream}: ${answer.error.description}`);
}

const dueInMs = 12_000;
let dueAtMs = 0;
