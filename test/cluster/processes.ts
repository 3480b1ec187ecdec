/**
 * Starts and stops servers that outlive the call, and recognises them later by their record.
 *
 * A pid alone does not identify a process: numbers are reused. A record also holds the start time
 * that the kernel reports, and nothing is ever signalled unless both agree.
 */
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Identifies one process of this machine, also after its parent is gone. Plain data. */
export type ProcessRecord = {
  readonly name: string;
  readonly pid: number;
  /** Field 22 of /proc/<pid>/stat: clock ticks since boot. */
  readonly startTicks: number;
  readonly bootId: string;
};

export type ServerCommand = {
  readonly name: string;
  readonly path: string;
  readonly args: readonly string[];
  /** Standard output and error are appended here. */
  readonly logPath: string;
  readonly env?: NodeJS.ProcessEnv;
};

/**
 * Starts a server in a session of its own, so that an interrupt typed in a terminal does not reach
 * it before its dependants are stopped. It does not keep this process alive.
 */
export function startServer(command: ServerCommand): ProcessRecord {
  const log = openSync(command.logPath, "a");
  const child = spawn(command.path, command.args, {
    detached: true,
    stdio: ["ignore", log, log],
    env: { ...process.env, ...command.env },
  });
  closeSync(log);
  child.unref();
  // The reason is in `pid` being absent; without a listener the event would end this process.
  child.once("error", () => undefined);
  if (child.pid === undefined) throw new Error(`${command.path} does not start`);
  return recordOf(command.name, child.pid);
}

/** The record of a process that is alive now. */
export function recordOf(name: string, pid: number): ProcessRecord {
  const stat = readStat(pid);
  if (stat === undefined) throw new Error(`${name} (pid ${pid}) ended at once`);
  return { name, pid, startTicks: stat.startTicks, bootId: bootId() };
}

/**
 * Whether exactly this process still runs. A zombie does not, but only once its last thread is gone:
 * until then its sockets are open, although its first thread is a zombie already.
 */
export function isRunning(record: ProcessRecord): boolean {
  const stat = readStat(record.pid);
  if (stat === undefined || stat.startTicks !== record.startTicks || record.bootId !== bootId()) return false;
  return stat.state !== "Z" || stat.threadCount > 1;
}

/** Asks the process to end, insists after the grace. Resolves when it is gone; idempotent. */
export async function stopProcess(record: ProcessRecord, graceMs: number): Promise<void> {
  signal(record, "SIGTERM");
  if (await hasEnded(record, graceMs)) return;
  signal(record, "SIGKILL");
  if (!(await hasEnded(record, KILL_WAIT_MS))) throw new Error(`${record.name} (pid ${record.pid}) survives SIGKILL`);
}

/** Sends a signal if exactly this process still runs. */
export function signal(record: ProcessRecord, name: NodeJS.Signals): void {
  if (!isRunning(record)) return;
  try {
    process.kill(record.pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

export type Readiness = {
  readonly what: string;
  /** True when ready; a rejection counts as not yet. */
  readonly probe: () => Promise<boolean>;
  readonly timeoutMs: number;
  /** When it ends, waiting is pointless: the wait fails at once with the end of its log. */
  readonly server?: { readonly record: ProcessRecord; readonly logPath: string };
};

/** Polls until the probe is true; fails with what the probe, or the server's log, said last. */
export async function waitUntil({ what, probe, timeoutMs, server }: Readiness): Promise<void> {
  const deadlineMs = Date.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      if (await probe()) return;
    } catch (error) {
      last = error;
    }
    const hasDied = server !== undefined && !isRunning(server.record);
    if (hasDied || Date.now() > deadlineMs) {
      const log = server === undefined ? "" : `\n${await logTail(server.logPath)}`;
      throw new Error(`${what}: ${hasDied ? "the server ended" : `not within ${timeoutMs} ms`}${log}`, { cause: last });
    }
    await sleep(POLL_MS);
  }
}

/** The last lines of a log, or a remark that there is none. */
export async function logTail(path: string): Promise<string> {
  try {
    const lines = (await readFile(path, "utf8")).trimEnd().split("\n");
    return lines.slice(-LOG_TAIL_LINES).join("\n");
  } catch {
    return `(no log at ${path})`;
  }
}

/**
 * A TCP port that is free now, below the range from which the kernel takes the ports of outgoing
 * connections. From inside that range, a client that keeps dialling a stopped server can be given
 * that very port, connect to itself and keep the server from coming back.
 */
export async function freePort(address: string): Promise<number> {
  for (let attempt = 0; attempt < FREE_PORT_ATTEMPTS; attempt += 1) {
    const port = FREE_PORT_FIRST + Math.floor(Math.random() * (FREE_PORT_LAST - FREE_PORT_FIRST + 1));
    if (await isFree(address, port)) return port;
  }
  throw new Error(`no free TCP port on ${address} between ${FREE_PORT_FIRST} and ${FREE_PORT_LAST}`);
}

async function isFree(address: string, port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => {
      resolve(false);
    });
    server.listen({ host: address, port, exclusive: true }, () => {
      server.close(() => {
        resolve(true);
      });
    });
  });
}

async function hasEnded(record: ProcessRecord, withinMs: number): Promise<boolean> {
  const deadlineMs = Date.now() + withinMs;
  while (isRunning(record)) {
    if (Date.now() > deadlineMs) return false;
    await sleep(STOP_POLL_MS);
  }
  return true;
}

type Stat = { readonly state: string; readonly threadCount: number; readonly startTicks: number };

function readStat(pid: number): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The second field is the program's name in parentheses, and may itself hold spaces and ")".
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0] ?? "", threadCount: Number(fields[17]), startTicks: Number(fields[19]) };
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

const POLL_MS = 50;
const STOP_POLL_MS = 10;
const KILL_WAIT_MS = 5_000;
const LOG_TAIL_LINES = 15;
const FREE_PORT_FIRST = 20_000;
const FREE_PORT_LAST = 32_000;
const FREE_PORT_ATTEMPTS = 50;
