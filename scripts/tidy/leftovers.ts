// Text that was meant to be temporary, or that belongs to the machine of whoever wrote it.

import type { Finding, Repository } from "./repository.ts";

type Pattern = { readonly what: string; readonly pattern: RegExp; readonly only?: RegExp };

/** Finds notes to self, focused tests and paths of one machine. */
export function checkLeftovers({ paths, read }: Repository): readonly Finding[] {
  return paths.filter((path) => TEXT.test(path)).flatMap((path) => {
    const lines = read(path).split("\n");
    const patterns = PATTERNS.filter(({ only }) => only?.test(path) ?? true);
    return lines.flatMap((line, index) =>
      patterns.filter(({ pattern }) => pattern.test(line)).map(({ what }) => ({ path: `${path}:${index + 1}`, text: what })),
    );
  });
}

const TEXT = /\.(ts|mjs|js|json|ya?ml|md|go|sh|tpl|toml)$|^[^.]+$|^\.[^/]+$/;

/** Written in pieces, so that this file does not find itself. */
const NOTES = ["FIX" + "ME", "TO" + "DO", "XX" + "X", "HA" + "CK"];
const HOMES = ["work", "root", "home/[a-z][\\w-]*", "Users/[A-Za-z][\\w-]*"];

const PATTERNS: readonly Pattern[] = [
  { what: "a note to self: do it, or file an issue", pattern: new RegExp(`\\b(${NOTES.join("|")})\\b`) },
  { what: "a path of one machine", pattern: new RegExp(`(^|[\\s"'\`(=:,])/(${HOMES.join("|")})/`) },
  { what: "a focused test hides all others", pattern: /\b(test|it|describe)\.only\b/, only: /\.test\.ts$/ },
];
