import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startControlPlane } from "./control-plane.ts";
import { isRunning, recordOf, signal, startServer, waitUntil } from "./processes.ts";
import { createRun, findRun } from "./runs.ts";

it("ends the control plane of a killed process when the next one starts", async () => {
  const program = `
    import { startControlPlane } from "./control-plane.ts";
    console.log((await startControlPlane()).run.name);
    setInterval(() => undefined, 60_000);
  `;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: import.meta.dirname,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const abandoned = await findRun(line.toString("utf8").trim());
  if (abandoned === undefined) throw new Error("the child did not print the name of its run");
  child.kill("SIGKILL");
  await once(child, "close");
  const { processes } = abandoned.state;
  expect(processes.map(isRunning), "servers outlive a killed owner").toEqual([true, true, true]);

  const next = await startControlPlane();
  await next.stop();

  expect(processes.map(isRunning)).toEqual([false, false, false]);
  expect(existsSync(abandoned.dir)).toBe(false);
});

it("does not touch a process that only has the number of a recorded one", async () => {
  const child = spawn("sleep", ["60"]);
  const record = recordOf("sleep", child.pid ?? 0);
  const earlier = { ...record, startTicks: record.startTicks - 1 };

  expect(isRunning(earlier)).toBe(false);
  signal(earlier, "SIGKILL");
  expect(isRunning(record)).toBe(true);

  signal(record, "SIGKILL");
  await waitUntil({ what: "sleep ends", probe: async () => !isRunning(record), timeoutMs: 30_000 });
});

it("fails a wait at once, with the end of its log, when the server has died", async () => {
  const dir = await mkdtemp(join(tmpdir(), "bed-"));
  const logPath = join(dir, "server.log");
  const record = startServer({ name: "server", path: "/bin/sh", args: ["-c", "echo bad flag; exit 1"], logPath });
  const wait = waitUntil({ what: "readiness", probe: async () => false, timeoutMs: 60_000, server: { record, logPath } });
  await expect(wait).rejects.toThrow("readiness: the server ended\nbad flag");
  await rm(dir, { recursive: true });
});

it("frees a name at once, so that the next run of that name loses nothing to the end of the one before", async () => {
  const name = `race-${String(process.pid)}`;
  for (let round = 0; round < 20; round += 1) {
    const before = await createRun(name, "caller");
    await Promise.all(Array.from({ length: 50 }, (_, index) => writeFile(join(before.dir, `file-${String(index)}`), "")));
    const ending = before.end();
    const next = await created(name);
    await ending;
    await next.addFacts({ round: String(round) });
    expect((await findRun(name))?.state.facts).toEqual({ round: String(round) });
    await next.end();
  }
});

async function created(name: string): ReturnType<typeof createRun> {
  for (;;) {
    try {
      return await createRun(name, "caller");
    } catch (error) {
      if (!(error as Error).message.includes("exists")) throw error;
    }
  }
}
