/** The failure table and the tests cannot drift apart. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const text = readFileSync(join(root, "docs/failures.md"), "utf8");

/** Cells of the last column: a quoted name, and where it is. */
const named = [...text.matchAll(/\| "([^"]+)" · `([^`]+)` \|$/gm)].map(([, name, place]) => ({ name: String(name), place: String(place) }));
const pathOf = (place: string): string => (place.includes("/") ? place : `test/faults/${place}.fault.test.ts`);
const sourceOf = (place: string): string => readFileSync(join(root, pathOf(place)), "utf8");

test.each(named)("$place has the test that the failure table names: $name", ({ name, place }) => {
  expect(sourceOf(place)).toContain(`"${name}"`);
});

test("every row of the failure table names a test, or says where the row above does", () => {
  const rows = text.split("\n").filter((line) => /^\| (?!failure)/.test(line));
  expect(rows.length).toBeGreaterThan(25);
  expect(rows.filter((line) => !/\| "[^"]+" · `[^`]+` \|$|\| as above \|$/.test(line))).toEqual([]);
});

test("every test of these files is a row of the failure table", () => {
  const files = ["archive", "broker", "cluster", "connections", "repeats", "restarts", "workers"];
  expect(readdirSync(import.meta.dirname)).toEqual(expect.arrayContaining(files.map((file) => `${file}.fault.test.ts`)));
  const names = files.flatMap((place) => [...sourceOf(place).matchAll(/(?:\btest\(|\bname: )"([^"]+)"/g)].map(([, name]) => `${place}: ${String(name)}`));
  expect(names.length).toBeGreaterThan(20);
  expect(names.filter((name) => !named.some((row) => `${row.place}: ${row.name}` === name))).toEqual([]);
});
