// The repository is tidy; and each check finds what was planted for it.

import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { roomsTable } from "../../scripts/rooms.ts";
import { CHECKS, tidy } from "../../scripts/tidy.ts";
import type { Tree } from "../rooms/planted-tree.ts";
import { withTree } from "../rooms/planted-tree.ts";

const root = join(import.meta.dirname, "../..");

describe("this repository", () => {
  test.each(Object.keys(CHECKS))("has nothing to put right: %s", (name) => {
    expect(tidy(root, [name]).map(({ path, text }) => `${path}: ${text}`)).toEqual([]);
  });
});

type Row = { readonly name: string; readonly check: string; readonly tree: Tree; readonly found: readonly string[]; readonly because: string };

const note = "TO" + "DO";
const home = "/home" + "/someone/";

const rows: readonly Row[] = [
  { name: "a file named utils", check: "names", tree: { "src/base/utils.ts": "" }, found: ["src/base/utils.ts"], because: "the name says nothing" },
  { name: "a folder named common", check: "names", tree: { "test/common/a.ts": "" }, found: ["test/common/a.ts"], because: "the name says nothing" },
  { name: "an index outside the client", check: "names", tree: { "src/kube/index.ts": "", "src/client/index.ts": "" }, found: ["src/kube/index.ts"], because: "a barrel hides where names come from" },
  { name: "camel case", check: "names", tree: { "src/base/epochMs.ts": "", "src/base/epoch-ms.test.ts": "" }, found: ["src/base/epochMs.ts"], because: "some file systems ignore case" },
  { name: "a note to self", check: "leftovers", tree: { "docs/a.md": `one\n${note}: two\n` }, found: ["docs/a.md:2"], because: "nobody looks for it" },
  { name: "a path of one machine", check: "leftovers", tree: { "src/base/a.ts": `const a = "${home}a";` }, found: ["src/base/a.ts:1"], because: "it exists nowhere else" },
  { name: "an address with such a path in it", check: "leftovers", tree: { "README.md": `https://example.org${home}a` }, found: [], because: "it is no path" },
  { name: "a focused test", check: "leftovers", tree: { "test/a.test.ts": `test.${"only"}();` }, found: ["test/a.test.ts:1"], because: "the others do not run" },
  { name: "a file without a mirror test", check: "mirror tests", tree: { "src/base/a.ts": "export const a = 1;" }, found: ["src/base/a.ts"], because: "nothing shows that it works" },
  { name: "a file with an integration test", check: "mirror tests", tree: { "src/nats/a.ts": "export const a = 1;", "test/nats/a.int.test.ts": "" }, found: [], because: "any tier will do" },
  { name: "a file with a test of one aspect", check: "mirror tests", tree: { "src/nats/a.ts": "export const a = 1;", "test/nats/a.refusals.int.test.ts": "" }, found: [], because: "one file may have several" },
  { name: "a test of a longer name", check: "mirror tests", tree: { "src/nats/a.ts": "export const a = 1;", "test/nats/a-b.test.ts": "" }, found: ["src/nats/a.ts"], because: "it is another file's" },
  { name: "a file of types", check: "mirror tests", tree: { "src/worker/ports.ts": 'import type { A } from "./a.ts";\nexport type B = A;\nexport interface C { a: A }' }, found: [], because: "nothing in it runs" },
  { name: "an export without a doc comment", check: "doc comments", tree: { "src/base/a.ts": "// A.\n\nexport const a = 1;" }, found: ["src/base/a.ts:3"], because: "the reader has only the name" },
  { name: "a group under one doc comment", check: "doc comments", tree: { "src/base/a.ts": "/** Both ends. */\nexport const a = 1;\nexport const b = 2;" }, found: [], because: "they belong together" },
  { name: "a new group without one", check: "doc comments", tree: { "src/base/a.ts": "/** One. */\nexport const a = 1;\n\nexport const b = 2;" }, found: ["src/base/a.ts:4"], because: "a blank line ends a group" },
  { name: "a type with comments on its members", check: "doc comments", tree: { "src/base/a.ts": "export type A = {\n  /** B. */\n  readonly b: 1;\n};" }, found: [], because: "its members say it all" },
  { name: "an export of bin", check: "doc comments", tree: { "src/bin/a.ts": "export const a = 1;" }, found: [], because: "nobody imports bin" },
  { name: "a bound no test mentions", check: "limits", tree: { "src/base/limits.ts": "export const aMax = 1;\nexport const aMaxB = 1;", "test/a.test.ts": "aMaxB;" }, found: ["src/base/limits.ts"], because: "nobody would notice its end" },
  {
    name: "metrics and their page",
    check: "metrics",
    tree: { "src/telemetry/metrics.ts": '"durable_timer_a_total" "durable_timer_b_seconds"', "docs/metrics.md": "`durable_timer_b_seconds{outcome}` `durable_timer_c_total`" },
    found: ["docs/metrics.md", "docs/metrics.md"],
    because: "one is not explained, one does not exist",
  },
  { name: "metrics in another form", check: "metrics", tree: { "src/telemetry/metrics.ts": "`${product}_a_total`" }, found: ["src/telemetry/metrics.ts"], because: "a check that finds nothing must not pass" },
  {
    name: "alerts and their runbooks",
    check: "alerts",
    tree: { "charts/a/templates/rules.yaml": "        - alert: TimerLost\n          expr: 1\n", "docs/runbooks/TimerFound.md": "", "docs/runbooks/README.md": "" },
    found: ["docs/runbooks/TimerLost.md", "docs/runbooks/TimerFound.md"],
    because: "whoever is woken needs a page, and a page needs an alert",
  },
  {
    name: "a gap between decision records",
    check: "decision records",
    tree: { "docs/adr/0001-a.md": "# 1. A", "docs/adr/0003-c.md": "# 0003: C", "docs/adr/README.md": "" },
    found: ["docs/adr/0003-c.md"],
    because: "a number is missing",
  },
  { name: "a decision record under another number", check: "decision records", tree: { "docs/adr/0001-a.md": "# 0002: A" }, found: ["docs/adr/0001-a.md"], because: "its title says otherwise" },
  { name: "a dead link", check: "links", tree: { "docs/a.md": "[b](b.md) [c](../src/) [d](https://example.org) [e](#e) [f](a.md#f)", "src/a.ts": "" }, found: ["docs/a.md"], because: "b.md does not exist" },
  { name: "the rooms table", check: "rooms table", tree: { "ARCHITECTURE.md": `# Map\n\n${roomsTable()}\n\nMore.` }, found: [], because: "it is the same" },
  { name: "the rooms table, laid out by an editor", check: "rooms table", tree: { "ARCHITECTURE.md": roomsTable().replaceAll(" | ", "   |   ").replaceAll("base", "`base`") }, found: [], because: "only the words count" },
  { name: "another rooms table", check: "rooms table", tree: { "ARCHITECTURE.md": roomsTable().replace("| timer | base |", "| timer | system |") }, found: ["ARCHITECTURE.md"], because: "one row differs" },
  { name: "an architecture without the table", check: "rooms table", tree: { "ARCHITECTURE.md": "# Map" }, found: ["ARCHITECTURE.md"], because: "the map shows the rooms" },
  { name: "a script that does not exist", check: "script table", tree: { "CONTRIBUTING.md": "| `npm run fly` | flies |" }, found: ["CONTRIBUTING.md"], because: "a newcomer would run it" },
  { name: "a version range", check: "packages", tree: { "package.json": '{ "dependencies": { "yaml": "^2.9.1", "zod": "4.6.7" } }' }, found: ["package.json"], because: "two clones would differ" },
  { name: "a registry's address in the lock file", check: "packages", tree: { "package-lock.json": '{ "resolved": "https://example.org/a.tgz" }' }, found: ["package-lock.json"], because: "others install from elsewhere" },
  { name: "a generator that would write", check: "generated", tree: { "scripts/generate.ts": "process.exitCode = 1;" }, found: ["scripts/generate.ts"], because: "a generated file is stale" },
  { name: "a generator that would not", check: "generated", tree: { "scripts/generate.ts": "process.exitCode = process.argv.includes('--check') ? 0 : 1;" }, found: [], because: "all is fresh" },
];

describe("the check finds", () => {
  test.each(rows)("$check: $name", async ({ check, tree, found, because }) => {
    const problems = await withTree(tree, [], (dir) => tidy(dir, [check]));
    expect(problems.map(({ path }) => path), because).toEqual(found);
  });
});
