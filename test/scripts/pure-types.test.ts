// Checks that the compiler settings of the pure rooms leave them without a platform, and that they cover exactly the pure rooms.

import { join } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";
import { PURE_ROOMS, ROOMS } from "../../scripts/rooms.ts";

const root = join(import.meta.dirname, "../..");
const { config } = ts.readConfigFile(join(root, "tsconfig.pure.json"), ts.sys.readFile.bind(ts.sys)) as { config: { include: readonly string[] } };
const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, root);

test("no name of a platform exists in a pure room", () => {
  const names = ["process", "Buffer", "setTimeout", "console", "fetch", "crypto", "performance", "require", "globalThis.process"];
  const lines = [...names.map((name) => `export const a${name.replace(".", "_")}: unknown = ${name};`), 'export * as fs from "node:fs";'];
  const code = [...lines, 'import { z } from "zod";', "export const c = z.string();"].join("\n");
  expect(errorLines(code)).toEqual(lines.map((_, index) => index));
});

test("what the language and the three declared names give is there in a pure room", () => {
  const code = `
    export const text: string = new TextDecoder("utf-8", { fatal: true }).decode(new TextEncoder().encode("a"));
    export const isAborted = (signal: AbortSignal): boolean => signal.aborted;
    export const sorted: readonly number[] = [2, 1].toSorted((a, b) => a - b);
  `;
  expect(errorLines(code)).toEqual([]);
});

test("the compiler's list of pure rooms is that of the rooms table, less those whose imports bring a platform", () => {
  const listed = config.include.filter((path) => path.startsWith("src/")).map((path) => path.slice("src/".length));
  const isBare = (name: string): boolean => ROOMS[name]?.typesOfPackages.length === 0;
  expect(listed).toEqual(expect.arrayContaining(PURE_ROOMS.filter(isBare)));
  expect(PURE_ROOMS.filter((name) => !listed.includes(name))).toEqual(["kube/manifests"]);
});

/** Compiles one file that stands in `src/base` but not on disk; answers the lines with errors, counted from 0. */
function errorLines(code: string): readonly number[] {
  const planted = join(root, "src/base/planted.ts");
  const disk = ts.createCompilerHost(options);
  const host: ts.CompilerHost = {
    ...disk,
    fileExists: (path) => path === planted || disk.fileExists(path),
    readFile: (path) => (path === planted ? code : disk.readFile(path)),
    getSourceFile: (path, target, onError) =>
      path === planted ? ts.createSourceFile(path, code, target) : disk.getSourceFile(path, target, onError),
  };
  const declarations = fileNames.filter((path) => path.endsWith(".d.ts"));
  const program = ts.createProgram({ rootNames: [...declarations, planted], options, host });
  const file = program.getSourceFile(planted);
  const diagnostics = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
  return [...new Set(diagnostics.map(({ start }) => file?.getLineAndCharacterOfPosition(start ?? 0).line ?? -1))];
}
