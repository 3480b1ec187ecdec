import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { processIdentity } from "../../src/local/process-identity.ts";
import { stateLockHolder, takeStateLock } from "../../src/local/state-lock.ts";
import { seededRandom, systemRandom } from "../../src/system/random.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();

describe("the lock of a state folder", () => {
  it("is refused while its holder runs, naming the process and the remedy, and free after its release", () => {
    const path = join(folder, "a");
    const lock = takeStateLock(path, seededRandom(1));
    expect(stateLockHolder(path)).toBe(process.pid);
    expect(() => takeStateLock(path, seededRandom(2))).toThrow(
      expect.objectContaining({ code: "STATE_LOCKED", message: expect.stringMatching(new RegExp(`process ${String(process.pid)} runs on this state folder.*--state`)) as string }),
    );
    lock.release();
    expect(stateLockHolder(path)).toBeUndefined();
    takeStateLock(path, seededRandom(3)).release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("of a process that was killed is free", async () => {
    const path = join(folder, "b");
    const child = await holdLock(path);
    expect(() => takeStateLock(path, systemRandom)).toThrow(expect.objectContaining({ code: "STATE_LOCKED" }));
    child.kill("SIGKILL");
    await once(child, "exit");
    const lock = takeStateLock(path, systemRandom);
    expect(stateLockHolder(path)).toBe(process.pid);
    lock.release();
  });

  const dead = [
    { name: "a pid that another process has now", text: JSON.stringify({ pid: process.pid, identity: "another boot 17", token: "x" }) },
    { name: "a pid that nobody has", text: JSON.stringify({ pid: 2 ** 30, identity: "x", token: "x" }) },
    { name: "text that no holder wrote", text: "" },
  ];
  it.each(dead)("with $name is free", ({ text }) => {
    const path = join(folder, "c");
    writeFileSync(path, text);
    takeStateLock(path, systemRandom).release();
    expect(existsSync(path)).toBe(false);
  });

  it("goes to exactly one of many processes that find the same dead one", async () => {
    const path = join(folder, "d");
    writeFileSync(path, JSON.stringify({ pid: 2 ** 30, identity: "gone", token: "x" }));
    const children = await Promise.all(Array.from({ length: 6 }, () => holdLock(path).catch(() => undefined)));
    const holders = children.filter((child) => child !== undefined);
    expect(holders).toHaveLength(1);
    expect(stateLockHolder(path)).toBe(holders[0]?.pid);
    for (const child of holders) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  });

  it("is not taken from its next holder by a late release", () => {
    const path = join(folder, "e");
    const first = takeStateLock(path, seededRandom(1));
    first.release();
    const second = takeStateLock(path, seededRandom(2));
    first.release();
    expect(stateLockHolder(path)).toBe(process.pid);
    second.release();
  });
});

/** A process that takes the lock and keeps it until it is killed; rejects when it is refused. */
async function holdLock(path: string): Promise<ChildProcess> {
  const source = (name: string): string => JSON.stringify(join(import.meta.dirname, "../../src", name));
  const program = `
    const { takeStateLock } = await import(${source("local/state-lock.ts")});
    const { systemRandom } = await import(${source("system/random.ts")});
    takeStateLock(${JSON.stringify(path)}, systemRandom);
    console.log("held");
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "ignore"] });
  const held = await Promise.race([once(child.stdout, "data").then(() => true), once(child, "exit").then(() => false)]);
  if (!held || child.pid === undefined || processIdentity(child.pid) === undefined) throw new Error("refused");
  return child;
}
