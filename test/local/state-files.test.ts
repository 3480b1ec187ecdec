import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { damaged, isMissing, readJsonFile, readTextFile, writeJsonFile } from "../../src/local/state-files.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();

describe("state files", () => {
  it("give back what was written, in a folder that was not there, and leave nothing beside it", () => {
    const path = join(folder, "new", "a.json");
    writeJsonFile(path, { a: 1 });
    writeJsonFile(path, { a: 2 });
    expect(readJsonFile(path)).toEqual({ a: 2 });
    expect(readdirSync(join(folder, "new"))).toEqual(["a.json"]);
  });

  it("are readable by their owner alone: a status may hold names that are nobody else's business", () => {
    const path = join(folder, "mode.json");
    writeJsonFile(path, {});
    expect(statSync(path).mode & 0o077).toBe(0);
  });

  it("are absent when they do not exist", () => {
    expect(readJsonFile(join(folder, "none.json"))).toBeUndefined();
    expect(readTextFile(join(folder, "none", "none.json"))).toBeUndefined();
  });

  it("that hold no JSON are a failure that names the file and the remedy", () => {
    const path = join(folder, "bad.json");
    writeFileSync(path, "{");
    expect(() => readJsonFile(path)).toThrow(expect.objectContaining({ code: "STATE_DAMAGED", message: expect.stringContaining(path) as string }));
    expect(damaged(path, "x").message).toContain("restore it, or move the state folder away");
  });

  it("refuse what is there and is no file", () => {
    mkdirSync(join(folder, "dir.json"));
    expect(() => readTextFile(join(folder, "dir.json"))).toThrow(expect.objectContaining({ kind: "invalid", message: expect.stringContaining("must be a file") as string }) as Error);
    expect(isMissing(new Error("other"))).toBe(false);
  });

  it("keep the old content when a write fails before it is complete", () => {
    const path = join(folder, "kept.json");
    writeJsonFile(path, { a: 1 });
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    expect(() => { writeJsonFile(path, circular); }).toThrow(TypeError);
    chmodSync(path, 0o600);
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ a: 1 });
  });
});
