// File names: kebab-case, and each named for the one thing inside.

import type { Finding, Repository } from "./repository.ts";

/** Finds TypeScript files and folders whose name says nothing, or says it in another case. */
export function checkFileNames({ paths }: Repository): readonly Finding[] {
  return paths.filter((path) => /^(src|test|scripts|bench)\/.*\.ts$/.test(path)).flatMap(nameFindings);
}

function nameFindings(path: string): readonly Finding[] {
  const segments = path.split("/").slice(1);
  const stem = (segments.at(-1) ?? "").split(".")[0] ?? "";
  const empty = [...segments.slice(0, -1), stem].find((name) => EMPTY_NAMES.has(name));
  return [
    ...(empty === undefined ? [] : [{ path, text: `"${empty}" could hold anything; name it for the one thing inside` }]),
    ...(stem === "index" && path !== "src/client/index.ts" ? [{ path, text: "only the client package has an index.ts" }] : []),
    ...(segments.every((name) => /^[a-z0-9]+(?:[-.][a-z0-9]+)*$/.test(name)) ? [] : [{ path, text: "use kebab-case" }]),
  ];
}

const EMPTY_NAMES = new Set(["util", "utils", "helper", "helpers", "common", "misc", "shared", "type", "types", "constants"]);
