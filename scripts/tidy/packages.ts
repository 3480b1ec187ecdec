// Packages are pinned, and the lock file works with any registry.

import type { Finding, Repository } from "./repository.ts";

/** Finds version ranges in package.json and addresses in the lock file. */
export function checkPackages({ has, read }: Repository): readonly Finding[] {
  return [...(has("package.json") ? ranges(read("package.json")) : []), ...(has("package-lock.json") ? addresses(read("package-lock.json")) : [])];
}

function ranges(manifest: string): readonly Finding[] {
  const parsed = JSON.parse(manifest) as Readonly<Record<string, Readonly<Record<string, string>> | undefined>>;
  const entries = ["dependencies", "devDependencies", "optionalDependencies"].flatMap((field) => Object.entries(parsed[field] ?? {}));
  return entries.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version)).map(([name, version]) => ({
    path: "package.json",
    text: `${name} ${version}: pin one version`,
  }));
}

function addresses(lock: string): readonly Finding[] {
  const hasAddress = /"resolved":\s*"[a-z]+:\/\//.test(lock);
  return hasAddress ? [{ path: "package-lock.json", text: "names a registry: install with this folder's .npmrc, which leaves addresses out" }] : [];
}
