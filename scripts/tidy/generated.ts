// Generated files are what the generator would write now.

import { spawnSync } from "node:child_process";
import type { Finding, Repository } from "./repository.ts";

/** Asks the generator itself, which compares without writing. */
export function checkGenerated({ root, has }: Repository): readonly Finding[] {
  const path = "scripts/generate.ts";
  if (!has(path)) return [];
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, "--check"], { cwd: root, encoding: "utf8" });
  return status === 0 ? [] : [{ path, text: `\`npm run generate\` would change something:\n${stdout}${stderr}` }];
}
