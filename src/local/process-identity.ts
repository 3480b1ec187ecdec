/**
 * Which process a pid stands for. Pids are used again, so a pid that was written down names a process only together with
 * the moment at which it started.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Text that no other process of this machine has had or will have; undefined when no such process runs. */
export function processIdentity(pid: number): string | undefined {
  return process.platform === "linux" ? linuxIdentity(pid) : posixIdentity(pid);
}

/** A zombie counts as gone: it does nothing any more, and in a container nobody may ever collect it. */
function linuxIdentity(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, "utf8");
    // The second field is the program's name in parentheses and may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state] = fields;
    if (state === "Z" || state === "X") return undefined;
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${String(fields[startTimeField])}`;
  } catch {
    return undefined;
  }
}

/** `starttime` is field 22 of /proc/<pid>/stat; the first two are cut off here. */
const startTimeField = 22 - 3;

function posixIdentity(pid: number): string | undefined {
  try {
    const started = execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
    return started === "" ? undefined : started;
  } catch {
    return undefined;
  }
}
