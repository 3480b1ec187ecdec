/**
 * One child process: started, its output kept in a bounded log file, and ended.
 *
 * It runs in a process group of its own, so that Ctrl-C in a terminal reaches only us and we decide the order in which
 * things stop.
 */
import { spawn } from "node:child_process";
import type { Clock } from "../base/clock.ts";
import { Failure } from "../base/failure.ts";
import type { DurationMs } from "../base/units.ts";
import { LogFile } from "./log-file.ts";

/** What to run. */
export type ChildCommand = {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the child. */
  readonly environment: Readonly<Record<string, string>>;
};

/** How a child ended: exactly one of the two is set. */
export type ChildExit = { readonly code: number | null; readonly signal: string | null };

/** A running child. */
export interface Child {
  readonly pid: number;
  /** Resolves when it has ended; never rejects. */
  readonly exited: Promise<ChildExit>;
  /** The last line that it wrote, for people. */
  lastLine(): string;
  /** Asks it to end; idempotent. */
  terminate(): void;
  /** Ends it; idempotent. */
  kill(): void;
}

/** Starts a child. Rejects with a Failure when the program cannot be started. */
export async function startChild(command: ChildCommand, logFile: string): Promise<Child> {
  const output = new LogFile(logFile);
  const child = spawn(command.command, command.args, { detached: true, stdio: ["ignore", "pipe", "pipe"], env: command.environment });
  const exited = new Promise<ChildExit>((resolve) => { child.once("close", (code, signal) => { resolve({ code, signal }); }); });
  child.stdout.on("data", (chunk: Buffer) => { output.write(chunk); });
  child.stderr.on("data", (chunk: Buffer) => { output.write(chunk); });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (cause) => { reject(new Failure("invalid", "PROCESS_FAILED", `start ${command.command}`, { cause })); });
  });
  if (child.pid === undefined) throw new Failure("invalid", "PROCESS_FAILED", `start ${command.command}`);
  return {
    pid: child.pid,
    exited,
    lastLine: () => output.lastLine(),
    terminate: () => { child.kill("SIGTERM"); },
    kill: () => { child.kill("SIGKILL"); },
  };
}

/** Asks a child to end and ends it after `graceMs`, or at once when `signal` aborts. Resolves when it is gone. */
export async function stopChild(child: Child, options: { readonly clock: Clock; readonly graceMs: DurationMs; readonly signal?: AbortSignal }): Promise<ChildExit> {
  const gone = new AbortController();
  const exited = child.exited.then((exit) => {
    gone.abort();
    return exit;
  });
  child.terminate();
  await options.clock.sleep(options.graceMs, options.signal === undefined ? gone.signal : AbortSignal.any([gone.signal, options.signal]));
  if (!gone.signal.aborted) child.kill();
  return await exited;
}

/** How a child ended, as a phrase for people. */
export function describeExit({ code, signal }: ChildExit): string {
  if (signal !== null) return `was ended by ${signal}`;
  return `exited with code ${String(code)}`;
}
