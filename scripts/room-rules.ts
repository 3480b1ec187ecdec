// Turns the rooms table into dependency-cruiser rules and runs them over a tree that has a `src` folder.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { cruise } from "dependency-cruiser";
import type { ICruiseResult, IForbiddenRuleType } from "dependency-cruiser";
import { ENTRY_POINTS, PURE_ROOMS, ROOMS, roomOf } from "./rooms.ts";
import type { RoomRow } from "./rooms.ts";

/** One broken rule, ready to print. */
export type RoomViolation = { readonly rule: string; readonly from: string; readonly to: string };

/** What a check of a tree found; `fileCount` and `cruisedCount` differ if files of `src` were overlooked. */
export type RoomReport = {
  readonly violations: readonly RoomViolation[];
  readonly fileCount: number;
  readonly cruisedCount: number;
};

/** Not dependency-cruiser's: there, a rule about a file's place would overlook files without imports. */
export const PLACE_RULE = "every file of src is in a room";

/** All import rules, one after the other, with the name that a violation shows. */
export const ROOM_RULES: readonly IForbiddenRuleType[] = [
  ...Object.entries(ROOMS).flatMap(([name, row]) => rulesOf(name, row)),
  rule("pure rooms import no Node built-in", { path: PURE_ROOMS.map(inside) }, { dependencyTypes: ["core"] }),
  rule("src stands alone", { path: "^src/" }, { pathNot: ["^src/", "(^|/)node_modules/"], dependencyTypes: ["local", "localmodule", "undetermined"] }),
  rule("no cycles", { path: "^src/" }, { circular: true }),
  rule("no orphans", { orphan: true, path: "^src/", pathNot: ENTRY_POINTS.map((path) => `^${path}`) }, {}),
  rule("every import resolves", { path: "^src/" }, { couldNotResolve: true }),
  {
    ...rule("every file is reached from an entry point", {}, {}),
    from: { path: ENTRY_POINTS.map((path) => `^${path}`) },
    to: { path: "^src/", pathNot: ENTRY_POINTS.map((path) => `^${path}`), reachable: false },
  },
];

/** Checks the tree below `baseDir`. */
export async function checkRooms(baseDir: string): Promise<RoomReport> {
  const { output } = await cruise(["src"], {
    baseDir,
    validate: true,
    ruleSet: { forbidden: [...ROOM_RULES] },
    outputType: "json",
    // Type imports count: a cycle of types is a cycle for the reader.
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
  });
  const { modules, summary } = JSON.parse(output as string) as ICruiseResult;
  const files = sourceFiles(baseDir);
  const misplaced = files.filter((path) => roomOf(path) === undefined && !path.startsWith("src/bin/"));
  return {
    violations: [
      ...misplaced.map((path) => ({ rule: PLACE_RULE, from: path, to: path })),
      ...summary.violations.map(({ rule: broken, from, to }) => ({ rule: broken.name, from, to })),
    ],
    fileCount: files.length,
    cruisedCount: modules.filter(({ source }) => source.startsWith("src/")).length,
  };
}

function rulesOf(name: string, { rooms, typesOf, packages, typesOfPackages }: RoomRow): readonly IForbiddenRuleType[] {
  const from = { path: inside(name) };
  return [
    rule(`${name}: unknown room`, from, { path: "^src/", pathNot: [name, ...rooms, ...typesOf].map(inside) }),
    ...typesOf.map((other) => rule(`${name}: ${other} is types-only`, from, { path: inside(other), dependencyTypesNot: ["type-only"] })),
    rule(`${name}: package`, from, {
      dependencyTypes: ["npm", "npm-dev", "npm-optional", "npm-peer", "npm-no-pkg", "npm-unknown"],
      pathNot: ["(?!)", ...[...packages, ...typesOfPackages].map(packagePath)],
    }),
    ...typesOfPackages.map((other) =>
      rule(`${name}: ${other} is types-only`, from, { path: packagePath(other), dependencyTypesNot: ["type-only"] }),
    ),
  ];
}

function rule(name: string, from: object, to: object): IForbiddenRuleType {
  return { name, severity: "error", comment: "scripts/rooms.ts", from, to };
}

/** The files of a room without those of rooms inside it. */
function inside(name: string): string {
  const inner = Object.keys(ROOMS).filter((other) => other.startsWith(`${name}/`)).map((other) => other.slice(name.length + 1));
  return inner.length === 0 ? `^src/${name}/` : `^src/${name}/(?!(?:${inner.join("|")})/)`;
}

function packagePath(name: string): string {
  return `(^|/)node_modules/${name.endsWith("/") ? name : `${name}/`}`;
}

function sourceFiles(baseDir: string): readonly string[] {
  const paths = readdirSync(join(baseDir, "src"), { recursive: true, encoding: "utf8" });
  return paths.filter((path) => /\.[cm]?[jt]sx?$/.test(path)).map((path) => `src/${path}`);
}
