/**
 * A file system that is full under the broker. It needs a small file system of its own, which takes the right to mount one:
 * without that right the test is skipped, and says so.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { request } from "../worker/world.ts";
import { eventually, openBed, type Bed } from "./bed.ts";

let bed: Bed | undefined;
let mounted: string | undefined;

afterEach(async () => {
  await bed?.[Symbol.asyncDispose]();
  bed = undefined;
  if (mounted !== undefined) unmount(mounted);
  mounted = undefined;
});

const sizeMebibytes = 64;

test.skipIf(!canMount())(`a full disk takes no start and loses none; after a restart with room all of them go on (skipped without the right to mount: ${canMount() ? "here it is granted" : "here it is not"})`, async () => {
  const disk = mount();
  mounted = disk;
  bed = await onDisk(disk, () => openBed({ sizes: { state: "8Mi", commands: "8Mi", feedback: "8Mi", snapshots: "32Mi", terminals: "8Mi", resumes: "8Mi" } }));
  const { world, ledger } = bed;
  const [server] = world.servers.servers;
  if (server === undefined) throw new Error("no server");
  const worker = await world.spawnWorker();
  await bed.start("before", { count: 100, taken: true, wait: { delayMs: 8_000 } });
  const ballast = fill(disk);
  // Attempts that may be stored or not; whoever sent them does not know, and sends them again below.
  const attempts = Array.from({ length: 40 }, (_, index) => request(`during-${String(index)}`, { wait: { delayMs: 500 }, body: Buffer.alloc(100_000, index) }));
  for (const attempt of attempts) ledger.sent(attempt);
  const sent = await Promise.allSettled(attempts.map((attempt) => world.client.start(attempt)));
  sent.forEach((one, index) => { if (one.status === "fulfilled" && attempts[index] !== undefined) ledger.sent(attempts[index]).acknowledged = true; });
  expect(sent.some(({ status }) => status === "rejected")).toBe(true);
  expect(worker.child.exitCode).toBeNull();
  rmSync(ballast);
  await server.kill();
  await server.start();
  await bed.start("after", { count: 20, wait: { delayMs: 500 } });
  await Promise.all(attempts.map((attempt) => ledger.start(world.client, attempt)));
  bed.openFlow({ retries: 0, ending: "complete" });
  await eventually("every end", async () => (await world.archived()).length === 160, 150_000);
  expect(await bed.account()).toMatchObject({ acknowledged: 160, archived: 160 });
  expect(worker.child.exitCode).toBeNull();
}, 300_000);

/** Servers make their stores below the temporary folder. */
async function onDisk<T>(disk: string, make: () => Promise<T>): Promise<T> {
  const before = process.env["TMPDIR"];
  process.env["TMPDIR"] = disk;
  try {
    return await make();
  } finally {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
  }
}

/** Takes all the room there is. */
function fill(disk: string): string {
  const ballast = join(disk, "ballast");
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(ballast, Buffer.alloc(bavail * bsize));
  expect(statfsSync(disk).bavail).toBe(0);
  return ballast;
}

function mount(): string {
  const folder = mkdtempSync(join(tmpdir(), "durable-timer-disk-"));
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${String(sizeMebibytes)}m`, "tmpfs", folder], { encoding: "utf8" });
  if (status === 0) return folder;
  rmSync(folder, { recursive: true, force: true });
  throw new Error(`mount: ${stderr}`);
}

function unmount(folder: string): void {
  spawnSync("umount", [folder]);
  rmSync(folder, { recursive: true, force: true });
}

function canMount(): boolean {
  try {
    unmount(mount());
    return true;
  } catch {
    return false;
  }
}
