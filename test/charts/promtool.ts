/** Builds promtool, once per version, from the Go module that is pinned in promtool/. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Report } from "../cluster/build.ts";
import { clusterCacheDir } from "../cluster/paths.ts";

const moduleDir = join(import.meta.dirname, "promtool");

/** The path of promtool, which is complete when it exists. */
export async function bringPromtool(report: Report): Promise<string> {
  const dir = join(clusterCacheDir, `promtool-${pinnedVersion()}`);
  const path = join(dir, "promtool");
  if (existsSync(path)) return path;
  report("Building promtool from source, once per version (minutes, not seconds)");
  await mkdir(dir, { recursive: true });
  const partialPath = `${path}.${String(process.pid)}.partial`;
  try {
    await compile(partialPath);
    await rename(partialPath, path);
  } finally {
    await rm(partialPath, { force: true });
  }
  return path;
}

function pinnedVersion(): string {
  const version = /github\.com\/prometheus\/prometheus v(\S+)/.exec(readFileSync(join(moduleDir, "go.mod"), "utf8"))?.[1];
  if (version === undefined) throw new Error("promtool/go.mod pins no version of Prometheus");
  return version;
}

/** Without service discovery, which promtool needs for other files than ours and which is most of its code. */
async function compile(outputPath: string): Promise<void> {
  const args = ["build", "-trimpath", "-tags", "remove_all_sd", "-ldflags", "-s -w", "-o", outputPath, "github.com/prometheus/prometheus/cmd/promtool"];
  const child = spawn("nice", ["-n", "10", "go", ...args], {
    cwd: moduleDir,
    env: { ...process.env, CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-mod=readonly -buildvcs=false" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => { errors = (errors + chunk).slice(-4_000); });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`go build promtool ended with code ${String(code)}:\n${errors}`);
}
