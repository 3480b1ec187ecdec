import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { DurationMs } from "../../src/base/units.ts";
import { describeExit, startChild, stopChild, type Child } from "../../src/local/child-process.ts";
import { systemClock } from "../../src/system/clock.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const hour = 3_600_000 as DurationMs;

const run = (name: string, program: string): Promise<Child> =>
  startChild({ command: process.execPath, args: ["-e", program], environment: { GREETING: "hello" } }, join(folder, `${name}.log`));

describe("a child process", () => {
  it("has the environment that was given and no other, and its output in the log", async () => {
    const child = await run("env", "console.log(process.env.GREETING, process.env.PATH); console.error('last words'); process.exitCode = 3");
    expect(await child.exited).toEqual({ code: 3, signal: null });
    expect(readFileSync(join(folder, "env.log"), "utf8")).toContain("hello undefined\n");
    expect(child.lastLine()).toMatch(/hello undefined|last words/);
  });

  it("that cannot be started is a failure that names the program", async () => {
    const starting = startChild({ command: join(folder, "no-such-program"), args: [], environment: {} }, join(folder, "none.log"));
    await expect(starting).rejects.toMatchObject({ code: "PROCESS_FAILED", message: expect.stringContaining("no-such-program") as string });
  });

  it("ends in order when it is asked to, without its grace being waited for", async () => {
    const child = await run("polite", "process.on('SIGTERM', () => process.exit(0)); setInterval(() => {}, 1000); console.log('ready')");
    await expect.poll(() => child.lastLine()).toBe("ready");
    expect(describeExit(await stopChild(child, { clock: systemClock, graceMs: hour }))).toBe("exited with code 0");
  });

  it("that does not listen is ended after its grace", async () => {
    const child = await run("deaf", "process.on('SIGTERM', () => console.log('deaf')); setInterval(() => {}, 1000); console.log('ready')");
    await expect.poll(() => child.lastLine()).toBe("ready");
    const exit = await stopChild(child, { clock: systemClock, graceMs: 200 as DurationMs });
    expect(describeExit(exit)).toBe("was ended by SIGKILL");
    expect(child.lastLine()).toBe("deaf");
  });

  it("is ended at once when there is a hurry", async () => {
    const child = await run("hurry", "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.log('ready')");
    await expect.poll(() => child.lastLine()).toBe("ready");
    const exit = await stopChild(child, { clock: systemClock, graceMs: hour, signal: AbortSignal.abort() });
    expect(exit.signal).toBe("SIGKILL");
  });
});
