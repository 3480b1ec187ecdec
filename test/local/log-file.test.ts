import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { childLogBytesMax } from "../../src/base/limits.ts";
import { LogFile } from "../../src/local/log-file.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();

describe("a log file", () => {
  it("goes on after what an earlier run wrote, and knows its own last line", () => {
    const path = join(folder, "logs", "a.log");
    new LogFile(path).write("one\n");
    const log = new LogFile(path);
    expect(log.lastLine()).toBe("");
    log.write("two\nth");
    log.write(Buffer.from("ree\n"));
    expect(readFileSync(path, "utf8")).toBe("one\ntwo\nthree\n");
    expect(log.lastLine()).toBe("three");
  });

  it("never grows beyond its bound, and keeps one older file", () => {
    const path = join(folder, "b.log");
    const log = new LogFile(path);
    const chunk = "x".repeat(childLogBytesMax / 4);
    for (let count = 0; count < 11; count += 1) log.write(chunk);
    expect(statSync(path).size).toBe(3 * chunk.length);
    expect(statSync(`${path}.1`).size).toBe(childLogBytesMax);
    expect(existsSync(`${path}.2`)).toBe(false);
  });
});
