// Plants one violation of every import rule and checks that each is found, and that what the table allows is not.

import { expect, test } from "vitest";
import { checkRooms, PLACE_RULE, ROOM_RULES } from "../../scripts/room-rules.ts";
import type { RoomReport } from "../../scripts/room-rules.ts";
import { PURE_ROOMS, roomOf, ROOMS } from "../../scripts/rooms.ts";
import type { Tree } from "./planted-tree.ts";
import { withTree } from "./planted-tree.ts";

const roomNames = Object.keys(ROOMS);
const outsider = "left-pad";
const packages = [outsider, "zod", "yaml", "commander", "pino", "prom-client", "@nats-io/jetstream", "@kubernetes/client-node"];

test("each rule finds the violation planted for it", async () => {
  const { tree, expected } = plantedViolations();
  const report = await withTree(tree, packages, checkRooms);
  const found = new Set(report.violations.map(({ rule, from }) => `${rule} ← ${from}`));
  expect([...expected].filter((violation) => !found.has(violation))).toEqual([]);
  const rules = new Set(report.violations.map(({ rule }) => rule));
  expect(rules).toEqual(new Set([PLACE_RULE, ...ROOM_RULES.map(({ name }) => name)]));
});

test("whatever the table allows breaks no rule", async () => {
  const report = await withTree(allowedTree(), packages, checkRooms);
  expect(report).toEqual({ violations: [], fileCount: report.cruisedCount, cruisedCount: report.cruisedCount });
});

test("a types-only room imported for a value beside its types is found", async () => {
  const tree: Tree = {
    "src/nats/both.ts": `import type { A } from "../worker/ports.ts";\nimport { a } from "../worker/ports.ts";\nexport const b: A = a;\n`,
    "src/worker/ports.ts": "export type A = number;\nexport const a = 1;\n",
  };
  expect(await violationsFrom(tree, "nats: worker is types-only")).toEqual(["src/nats/both.ts"]);
});

test("a cycle of type imports is a cycle", async () => {
  const tree: Tree = {
    "src/base/a.ts": `import type { B } from "./b.ts";\nexport type A = B;\n`,
    "src/base/b.ts": `import type { A } from "./a.ts";\nexport type B = A;\n`,
  };
  expect(await violationsFrom(tree, "no cycles")).toEqual(["src/base/a.ts"]);
});

test("every source file of this repository is cruised", async () => {
  const report = await checkRooms(".");
  expect(report.cruisedCount).toBe(report.fileCount);
});

test("a file belongs to its innermost room", () => {
  expect(["src/operator/plan/plan.ts", "src/operator/gather.ts", "src/nats/core/connection.ts", "src/bin/demo.ts"].map(roomOf)).toEqual([
    "operator/plan",
    "operator",
    "nats/core",
    undefined,
  ]);
});

async function violationsFrom(tree: Tree, rule: string): Promise<readonly string[]> {
  const { violations }: RoomReport = await withTree(tree, packages, checkRooms);
  return violations.filter((violation) => violation.rule === rule).map(({ from }) => from).sort();
}

/** One file per rule, and the violation expected of it. */
function plantedViolations(): { readonly tree: Tree; readonly expected: ReadonlySet<string> } {
  const tree: Record<string, string> = {
    "test/outside.ts": "export const outside = 1;\n",
    "src/nowhere.ts": "export const nowhere = 1;\n",
    "src/client/index.ts": "export const entry = 1;\n",
    "src/base/alone.ts": "export const alone = 1;\n",
    "src/system/reaches-out.ts": importing("../../test/outside.ts"),
    "src/system/unresolved.ts": importing("./absent.ts"),
    "src/system/cycle-a.ts": importing("./cycle-b.ts"),
    "src/system/cycle-b.ts": importing("./cycle-a.ts"),
  };
  const expected = new Set([
    `${PLACE_RULE} ← src/nowhere.ts`,
    "no orphans ← src/base/alone.ts",
    "src stands alone ← src/system/reaches-out.ts",
    "every import resolves ← src/system/unresolved.ts",
    "no cycles ← src/system/cycle-a.ts",
  ]);
  const plant = (path: string, specifier: string, rule: string): void => {
    tree[`src/${path}.ts`] = importing(specifier);
    expected.add(`${rule} ← src/${path}.ts`);
  };
  for (const room of roomNames) tree[`src/${room}/main.ts`] = "export const main = 1;\nexport type Main = number;\n";
  for (const [room, { rooms, typesOf, typesOfPackages }] of Object.entries(ROOMS)) {
    const forbidden = roomNames.filter((other) => ![room, ...rooms, ...typesOf].includes(other));
    for (const other of [...forbidden, "bin"]) plant(`${room}/takes-${slug(other)}`, `${up(room)}${other}/main.ts`, `${room}: unknown room`);
    for (const other of typesOf) plant(`${room}/takes-values-of-${slug(other)}`, `${up(room)}${other}/main.ts`, `${room}: ${other} is types-only`);
    plant(`${room}/takes-package`, outsider, `${room}: package`);
    for (const scope of typesOfPackages) {
      plant(`${room}/takes-package-values`, String(packages.find((name) => name.startsWith(scope))), `${room}: ${scope} is types-only`);
    }
  }
  for (const room of PURE_ROOMS) plant(`${room}/takes-built-in`, "node:fs", "pure rooms import no Node built-in");
  tree["src/bin/main.ts"] = "export const main = 1;\n";
  return { tree, expected };
}

/** Every import the table allows, all of it reached from one entry point. */
function allowedTree(): Tree {
  const tree: Record<string, string> = {};
  const reached: string[] = [];
  for (const [room, row] of Object.entries(ROOMS)) {
    const values = row.rooms.map((other) => importing(`${up(room)}${other}/ports.ts`));
    const types = row.typesOf.map((other) => importingType(`${up(room)}${other}/ports.ts`));
    const scoped = (name: string): string => String(packages.find((known) => known.startsWith(name)));
    const npm = [...row.packages.map((name) => importing(scoped(name))), ...row.typesOfPackages.map((name) => importingType(scoped(name)))];
    tree[`src/${room}/ports.ts`] = "export const main = 1;\nexport type Main = number;\n";
    tree[`src/${room}/uses.ts`] = [...values, ...types, ...npm, row.isPure ? "" : importing("node:fs")].join("");
    reached.push(importing(`../${room}/uses.ts`), importing(`../${room}/ports.ts`));
  }
  return { ...tree, "src/bin/all.ts": reached.join("") };
}

function importing(specifier: string): string {
  return `import * as m${slug(specifier)} from "${specifier}";\nconsole.log(m${slug(specifier)});\n`;
}

function importingType(specifier: string): string {
  return `import type * as M${slug(specifier)} from "${specifier}";\nexport type T${slug(specifier)} = typeof M${slug(specifier)};\n`;
}

function up(room: string): string {
  return "../".repeat(room.split("/").length);
}

function slug(text: string): string {
  return text.replace(/\W+/g, "_");
}
