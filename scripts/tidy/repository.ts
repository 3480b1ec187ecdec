// The repository as the tidy checks see it: paths and texts, nothing that git or npm leaves beside them.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** One thing to put right; `text` says what and how. */
export type Finding = { readonly path: string; readonly text: string };

/** A finding with the name of the check that made it. */
export type Problem = Finding & { readonly check: string };

/** Looks at the whole tree and answers what is wrong with it. */
export type Check = (repository: Repository) => readonly Finding[];

/** A tree of files. Paths are relative to its root, with slashes. */
export type Repository = {
  readonly root: string;
  readonly paths: readonly string[];
  readonly has: (path: string) => boolean;
  readonly read: (path: string) => string;
};

/** Lists the tree once and reads files when asked, each at most once. */
export function openRepository(root: string): Repository {
  const paths = list(root, "").toSorted();
  const known = new Set(paths);
  const texts = new Map<string, string>();
  const read = (path: string): string => {
    const text = texts.get(path) ?? readFileSync(join(root, path), "utf8");
    texts.set(path, text);
    return text;
  };
  return { root, paths, has: (path) => known.has(path), read };
}

function list(root: string, dir: string): readonly string[] {
  return readdirSync(join(root, dir), { withFileTypes: true }).flatMap((entry) => {
    const path = dir === "" ? entry.name : `${dir}/${entry.name}`;
    if (entry.isDirectory()) return NOT_OURS.has(entry.name) ? [] : list(root, path);
    return entry.isFile() ? [path] : [];
  });
}

const NOT_OURS = new Set([".git", ".cache", ".durable-timer", "node_modules", "dist", "coverage"]);
