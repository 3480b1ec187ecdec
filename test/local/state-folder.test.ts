import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createStateFolder, folderIdentity, knownIdentity, statePaths } from "../../src/local/state-folder.ts";
import { seededRandom } from "../../src/system/random.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();

describe("a state folder", () => {
  it("has an identity that is made once and then stays", () => {
    const paths = statePaths(join(folder, "one"));
    createStateFolder(paths);
    expect(knownIdentity(paths)).toBeUndefined();
    const made = folderIdentity(paths, seededRandom(1));
    expect(made).toMatch(/^local-[a-z2-7]{16}$/);
    expect(folderIdentity(paths, seededRandom(2))).toBe(made);
    expect(knownIdentity(paths)).toBe(made);
  });

  it("is closed to other users, also when it is there already", () => {
    const paths = statePaths(join(folder, "deep", "two"));
    createStateFolder(paths);
    createStateFolder(paths);
    expect(statSync(paths.root).mode & 0o077).toBe(0);
  });

  it("whose identity is damaged is refused, because a new one would not own its streams", () => {
    const paths = statePaths(join(folder, "three"));
    createStateFolder(paths);
    writeFileSync(paths.identity, "{}");
    expect(() => folderIdentity(paths, seededRandom(1))).toThrow(expect.objectContaining({ code: "STATE_DAMAGED" }));
  });
});
