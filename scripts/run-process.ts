// Runs one child process in the foreground for the other scripts.

import { spawn } from "node:child_process";
import { join } from "node:path";

/** The repository's folder; every path of the scripts starts here. */
export const root = join(import.meta.dirname, "..");

/** Runs Node on a script of this repository with its output shown as it comes; answers the exit code. */
export async function runNode(args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [...args], { cwd: root, stdio: "inherit" });
  const passOn = (signal: NodeJS.Signals): void => {
    // A terminal has sent Ctrl-C to the whole group already.
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  };
  process.on("SIGINT", passOn);
  process.on("SIGTERM", passOn);
  try {
    return await new Promise<number>((resolve, reject) => {
      child.on("error", reject);
      child.on("exit", (code) => { resolve(code ?? 1); });
    });
  } finally {
    process.off("SIGINT", passOn);
    process.off("SIGTERM", passOn);
  }
}
