// Plants one breach of every lint rule that the project relies on, and checks that it is found where the rule applies and only there.

import { ESLint } from "eslint";
import type { Linter } from "eslint";
import tseslint from "typescript-eslint";
import { expect, test } from "vitest";

type Row = { readonly name: string; readonly path: string; readonly code: string; readonly rules: readonly string[]; readonly because: string };

const syntax = "no-restricted-syntax";
const properties = "no-restricted-properties";

const rows: readonly Row[] = [
  { name: "Date.now in a pure room", path: "src/timer/a.ts", code: "export const a = Date.now();", rules: [properties], because: "time is a parameter" },
  { name: "Date.now elsewhere", path: "src/system/a.ts", code: "export const a = Date.now();", rules: [], because: "somebody has to read the clock" },
  { name: "new Date() in a pure room", path: "src/protocol/a.ts", code: "export const a = new Date();", rules: [syntax], because: "it reads the clock" },
  { name: "new Date(x) in a pure room", path: "src/protocol/a.ts", code: "export const a = new Date(0);", rules: [], because: "it converts" },
  { name: "Math.random in a pure room", path: "src/topology/a.ts", code: "export const a = Math.random();", rules: [properties], because: "randomness is a parameter" },
  { name: "an async function in a pure room", path: "src/operator/plan/a.ts", code: "export async function a(): Promise<void> {}", rules: [syntax], because: "pure is synchronous" },
  { name: "an async arrow in a pure room", path: "src/base/a.ts", code: "export const a = async (): Promise<void> => {};", rules: [syntax], because: "pure is synchronous" },
  { name: "an async function next to a pure room", path: "src/operator/a.ts", code: "export async function a(): Promise<void> {}", rules: [], because: "the operator's other files wait" },
  { name: "a timer in a pure room", path: "src/kube/manifests/a.ts", code: "setTimeout(() => undefined, 1);", rules: ["no-restricted-globals"], because: "a pure room has no platform" },
  { name: "Buffer in a pure room", path: "src/kube/manifests/a.ts", code: 'export const a = Buffer.from("a");', rules: ["no-restricted-globals"], because: "a pure room has no platform" },
  { name: "process.env outside bin", path: "src/nats/a.ts", code: 'export const a = process.env["A"];', rules: [properties], because: "configuration is passed in" },
  { name: "process.exit outside bin", path: "src/cli/a.ts", code: "process.exit(1);", rules: [properties], because: "only bin ends the process" },
  { name: "process.on outside bin", path: "src/worker/a.ts", code: 'process.on("SIGTERM", () => undefined);', rules: [properties], because: "only bin handles signals" },
  { name: "process.env out of node:process", path: "src/nats/a.ts", code: 'import { env } from "node:process";\nexport const a = env;', rules: ["no-restricted-imports"], because: "another spelling of the same" },
  { name: "process.env in bin", path: "src/bin/a.ts", code: 'export const a = process.env["A"];', rules: [], because: "bin reads the environment" },
  { name: "export *", path: "src/kube/a.ts", code: 'export * from "./b.ts";', rules: [syntax], because: "names are listed" },
  { name: "a re-export", path: "src/kube/a.ts", code: 'export { b } from "./b.ts";', rules: [syntax], because: "one place per name" },
  { name: "a re-export of the client package", path: "src/client/index.ts", code: 'export { b } from "./b.ts";', rules: [], because: "that file is the package" },
  { name: "a default export", path: "src/kube/a.ts", code: "export default 1;", rules: [syntax], because: "named exports only" },
  { name: "a default export in a pure room", path: "src/base/a.ts", code: "export default 1;", rules: [syntax], because: "pure rooms have the general bans too" },
  { name: "an enum", path: "src/kube/a.ts", code: "export enum A { B }", rules: [syntax], because: "Node strips types and cannot run it" },
  { name: "any", path: "src/kube/a.ts", code: "export const a = (b: any): unknown => b;", rules: ["@typescript-eslint/no-explicit-any"], because: "unknown is honest" },
  { name: "an import of nothing but inline types", path: "src/nats/a.ts", code: 'import { type A } from "./b.ts";\nexport type B = A;', rules: ["@typescript-eslint/no-import-type-side-effects"], because: "the rooms check sees it as types only, Node runs it" },
  { name: "an unused name", path: "src/kube/a.ts", code: "const a = 1;\nexport const b = 2;", rules: ["@typescript-eslint/no-unused-vars"], because: "dead code" },
  { name: "console in src", path: "src/worker/a.ts", code: 'console.log("a");', rules: ["no-console"], because: "telemetry logs" },
  { name: "four parameters", path: "src/kube/a.ts", code: "export const a = (b: 1, c: 1, d: 1, e: 1): unknown => [b, c, d, e];", rules: ["max-params"], because: "then it is an object" },
  { name: "depth four", path: "src/kube/a.ts", code: nested(4), rules: ["max-depth"], because: "it reads as a maze" },
  { name: "depth three", path: "src/kube/a.ts", code: nested(3), rules: [], because: "the limit itself is allowed" },
  { name: "complexity eleven", path: "src/kube/a.ts", code: branches(10), rules: ["complexity"], because: "too many ways through" },
  { name: "complexity ten", path: "src/kube/a.ts", code: branches(9), rules: [], because: "the limit itself is allowed" },
  { name: "a switch of twelve cases", path: "src/kube/a.ts", code: switchOf(12), rules: [], because: "a total switch is one decision" },
  { name: "a function of 71 lines", path: "src/kube/a.ts", code: longFunction(69), rules: ["max-lines-per-function"], because: "it has parts" },
  { name: "a function of 70 lines", path: "src/kube/a.ts", code: longFunction(68), rules: [], because: "the limit itself is allowed" },
  { name: "a file of 401 lines", path: "src/kube/a.ts", code: longFile(401), rules: ["max-lines"], because: "it has parts" },
  { name: "a file of 400 lines", path: "src/kube/a.ts", code: longFile(400), rules: [], because: "comments and blank lines do not count" },
  { name: "vi.mock in a test", path: "test/kube/a.test.ts", code: 'import { vi } from "vitest";\nvi.mock("a");', rules: [properties], because: "fakes stand behind ports" },
];

/** Without type information one file takes milliseconds; the rules that need types have a test of their own below. */
const untyped = new ESLint({ overrideConfig: tseslint.configs.disableTypeChecked as Linter.Config });

test.each(rows)("$name breaks $rules", async ({ path, code, rules, because }) => {
  expect(await brokenRules(untyped, path, code), because).toEqual(rules);
});

test("rules that need types find a floating promise, a misused one, an incomplete switch and a value import of types", async () => {
  const code = `
    import { InvariantError } from "./assert.ts";
    declare const a: "b" | "c";
    declare function wait(): Promise<boolean>;
    wait();
    if (wait()) undefined;
    switch (a) { case "b": break; }
    export type E = InvariantError;
  `;
  const found = await brokenRules(new ESLint(), "src/base/assert.ts", code);
  expect(found).toEqual(
    expect.arrayContaining([
      "@typescript-eslint/consistent-type-imports",
      "@typescript-eslint/no-floating-promises",
      "@typescript-eslint/no-misused-promises",
      "@typescript-eslint/switch-exhaustiveness-check",
    ]),
  );
});

async function brokenRules(eslint: ESLint, filePath: string, code: string): Promise<readonly (string | null)[]> {
  const results = await eslint.lintText(code, { filePath });
  const messages = results.flatMap((result) => result.messages);
  const fatal = messages.find((message) => message.fatal === true);
  if (fatal !== undefined) throw new Error(fatal.message);
  return [...new Set(messages.map(({ ruleId }) => ruleId))].sort();
}

function nested(depth: number): string {
  return `export function a(b: number): number {\n${"if (b > 0) {\n".repeat(depth)}return b;\n${"}\n".repeat(depth)}return 0;\n}`;
}

function branches(count: number): string {
  const lines = Array.from({ length: count }, (_, index) => `if (b === ${index}) return ${index};`);
  return `export function a(b: number): number {\n${lines.join("\n")}\nreturn b;\n}`;
}

function switchOf(count: number): string {
  const cases = Array.from({ length: count }, (_, index) => `case ${index}: return ${index};`);
  return `export function a(b: number): number {\nswitch (b) {\n${cases.join("\n")}\ndefault: return b;\n}\n}`;
}

function longFunction(bodyLines: number): string {
  const lines = Array.from({ length: bodyLines }, (_, index) => `String(${index});`);
  return `export function a(): void {\n${lines.join("\n// not counted\n\n")}\n}`;
}

function longFile(lineCount: number): string {
  return Array.from({ length: lineCount }, (_, index) => `export const a${index} = ${index};`).join("\n// not counted\n\n");
}
