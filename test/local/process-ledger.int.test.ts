import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { DurationMs } from "../../src/base/units.ts";
import { startChild, type Child } from "../../src/local/child-process.ts";
import { ProcessLedger, serverRole } from "../../src/local/process-ledger.ts";
import { readJsonFile, writeJsonFile } from "../../src/local/state-files.ts";
import { systemClock } from "../../src/system/clock.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const graceMs = 200 as DurationMs;
const sleeper = (name: string, program = "setInterval(() => {}, 1000)"): Promise<Child> =>
  startChild({ command: process.execPath, args: ["-e", `${program}; console.log('ready')`], environment: {} }, join(folder, `${name}.log`));

describe("the ledger of child processes", () => {
  it("lets the next run end what a killed one left behind, the server last", async () => {
    const path = join(folder, "left.json");
    const [server, worker, deaf] = await Promise.all([sleeper("server"), sleeper("worker"), sleeper("deaf", "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)")]);
    await expect.poll(() => deaf.lastLine()).toBe("ready");
    const killed = new ProcessLedger(path);
    killed.add(server.pid, serverRole);
    killed.add(worker.pid, "worker w1");
    killed.add(deaf.pid, "worker w2");

    const stopped = await new ProcessLedger(path).stopLeftovers(systemClock, graceMs);
    expect(stopped.map(({ role }) => role)).toEqual(["worker w1", "worker w2", serverRole]);
    expect(await Promise.all([server.exited, worker.exited, deaf.exited])).toEqual([
      { code: null, signal: "SIGTERM" }, { code: null, signal: "SIGTERM" }, { code: null, signal: "SIGKILL" },
    ]);
    expect(readJsonFile(path)).toEqual({ processes: [] });
  });

  it("never signals a process that only has the pid of a recorded one", async () => {
    const path = join(folder, "reused.json");
    const other = await sleeper("other");
    writeJsonFile(path, { processes: [{ pid: other.pid, identity: "an earlier process", role: "worker w1" }, { pid: 2 ** 30, identity: "x", role: "worker w2" }, "nonsense"] });
    expect(await new ProcessLedger(path).stopLeftovers(systemClock, graceMs)).toEqual([]);
    other.kill();
    expect(await other.exited).toEqual({ code: null, signal: "SIGKILL" });
  });

  it("forgets a process that has ended", async () => {
    const path = join(folder, "forgotten.json");
    const child = await sleeper("forgotten");
    const ledger = new ProcessLedger(path);
    ledger.add(child.pid, "worker w1");
    expect(readJsonFile(path)).toMatchObject({ processes: [{ pid: child.pid }] });
    ledger.remove(child.pid);
    expect(readJsonFile(path)).toEqual({ processes: [] });
    child.kill();
    await child.exited;
  });
});
