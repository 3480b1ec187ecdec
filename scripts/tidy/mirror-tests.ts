// Every file of src with behaviour has a test at the mirrored place: src/a/b.ts → test/a/b.test.ts, b.int.test.ts, b.<aspect>.test.ts …

import ts from "typescript";
import type { Finding, Repository } from "./repository.ts";
import { WITHOUT_MIRROR_TEST } from "./without-mirror-test.ts";

/** Finds files without a mirror test, and entries of the list of exceptions that are no longer needed. */
export function checkMirrorTests(repository: Repository): readonly Finding[] {
  const sources = repository.paths.filter((path) => path.startsWith("src/") && path.endsWith(".ts"));
  const tested = new Set(repository.paths.filter((path) => path.startsWith("test/")).map(mirroredSource));
  // The list is this repository's own: another tree that is checked has none.
  const listed = repository.paths.includes(listPath) ? Object.keys(WITHOUT_MIRROR_TEST) : [];
  const missing = sources.filter((path) => !tested.has(path) && !listed.includes(path) && hasBehaviour(path, repository));
  return [
    ...missing.map((path) => ({ path, text: `has no test: add ${path.replace(/^src/, "test").replace(/\.ts$/, ".test.ts")} or another tier's` })),
    ...listed.filter((path) => !sources.includes(path)).map((path) => ({ path, text: "is listed in without-mirror-test.ts but does not exist" })),
    ...listed.filter((path) => tested.has(path)).map((path) => ({ path, text: "has a test now: take it off without-mirror-test.ts" })),
  ];
}

function mirroredSource(path: string): string {
  return path.replace(/^test\//, "src/").replace(/(?:\.[a-z0-9-]+)*\.test\.ts$/, ".ts");
}

/** Types vanish before anything runs, and a list of re-exports does nothing that its sources do not. */
function hasBehaviour(path: string, { read }: Repository): boolean {
  const { statements } = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest);
  return statements.some(
    (statement) =>
      !ts.isImportDeclaration(statement) &&
      !ts.isTypeAliasDeclaration(statement) &&
      !ts.isInterfaceDeclaration(statement) &&
      !ts.isExportDeclaration(statement),
  );
}

const listPath = "scripts/tidy/without-mirror-test.ts";
