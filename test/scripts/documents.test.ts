// What documents show must be true: their code is a part of an example that compiles, their resources are valid.

import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { root } from "../../scripts/run-process.ts";
import { readResourceFile } from "../../src/local/resource-file.ts";
import { conditionReasons } from "../../src/resource/conditions.ts";
import { parseManifest } from "../../src/resource/validate.ts";

type Block = { readonly page: string; readonly index: number; readonly text: string };

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const pages = ["README.md", ...readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`)];

/** Code blocks of one language, of all pages. */
function blocks(language: string): readonly Block[] {
  return pages.flatMap((page) =>
    [...read(page).matchAll(/^```(\S+)\n([\s\S]*?)^```$/gm)].flatMap(([, tag, text = ""], index) => (tag === language ? [{ page, index, text }] : [])),
  );
}

/** A line's own indentation is no part of what it says. */
function withoutIndent(text: string): string {
  return text.trim().split("\n").map((line) => line.trim()).join("\n");
}

describe("TypeScript in documents", () => {
  test("is taken from an example, word for word", () => {
    const examples = readdirSync(join(root, "docs/examples")).filter((name) => name.endsWith(".ts")).map((name) => withoutIndent(read(`docs/examples/${name}`)));
    const shown = blocks("ts");
    expect(shown.length).toBeGreaterThan(0);
    expect(shown.filter(({ text }) => !examples.some((example) => example.includes(withoutIndent(text))))).toEqual([]);
  });

  test("compiles against the client package", { timeout: 120_000 }, async () => {
    const compiler = promisify(execFile)(process.execPath, ["node_modules/typescript/bin/tsc", "--project", "docs/examples"], { cwd: root });
    await expect(compiler).resolves.toMatchObject({ stdout: "" });
  });
});

describe("resources in documents", () => {
  const resources = blocks("yaml").filter(({ text }) => text.includes("kind: DurableTimer"));
  const isForCluster = ({ text }: Block): boolean => text.includes("servers:");

  test.each(resources.filter(isForCluster))("$page, block $index: is what a cluster takes", ({ text }) => {
    const parsed = parseManifest(parse(text));
    expect(parsed.ok ? [] : parsed.problems).toEqual([]);
  });

  test.each(resources.filter((block) => !isForCluster(block)))("$page, block $index: is what local mode takes", ({ text }) => {
    const file = readResourceFile(text, "nats://127.0.0.1:4222");
    expect(file.ok ? [] : file.problems).toEqual([]);
  });

  test("are there, for both", () => {
    expect(resources.some(isForCluster)).toBe(true);
    expect(resources.every(isForCluster)).toBe(false);
  });
});

test("every reason of a condition is explained for whoever meets it, and no other", () => {
  const words = [...read("docs/troubleshooting.md").matchAll(/`([A-Z][A-Za-z]+)`/g)].map(([, word]) => String(word));
  expect(conditionReasons.filter((reason) => !words.includes(reason))).toEqual([]);
  const first = [...read("docs/troubleshooting.md").matchAll(/^\| (`[A-Z][^|]*) \|/gm)].flatMap(([, cell = ""]) => cell.split(", ").map((word) => word.replaceAll("`", "")));
  expect(first.filter((word) => !(conditionReasons as readonly string[]).includes(word))).toEqual([]);
});

test("every invariant is enforced and shown by files that exist", () => {
  const rows = [...read("ARCHITECTURE.md").matchAll(/^\| I(\d+) \|.*\|(.*)\|(.*)\|$/gm)];
  expect(rows.map(([, number]) => Number(number))).toEqual(Array.from({ length: 15 }, (_, index) => index + 1));
  const named = (cell = ""): readonly string[] => [...cell.matchAll(/`([^` ]+)`/g)].map(([, path]) => String(path));
  const files = rows.flatMap(([, , enforced, shown]) => [...named(enforced).map((path) => `src/${path}`), ...named(shown).map((path) => `${path}.test.ts`)]);
  expect(files.length).toBeGreaterThan(30);
  expect(files.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
