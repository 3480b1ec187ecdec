import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FAULTS } from "../../scripts/prove/faults.ts";
import { root } from "../../scripts/run-process.ts";

test.each(FAULTS)("the deliberate fault still fits the code: $name", ({ edits }) => {
  // Whoever changes what a fault edits brings the fault along; trying all of them takes minutes and happens later.
  for (const { path, from, to } of edits) {
    expect(readFileSync(join(root, path), "utf8").split(from), path).toHaveLength(2);
    expect(to).not.toBe(from);
  }
});

test("no two faults share a name, by which they are selected", () => {
  expect(new Set(FAULTS.map(({ name }) => name)).size).toBe(FAULTS.length);
});
