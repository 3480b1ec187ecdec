/**
 * The child processes of local mode, written down, so that those of a run that was killed are found by the next one.
 *
 * Only processes that are the recorded ones beyond doubt (pid and start time) are ever signalled.
 */
import { childProbeIntervalMs } from "../base/limits.ts";
import type { Clock } from "../base/clock.ts";
import type { DurationMs } from "../base/units.ts";
import { processIdentity } from "./process-identity.ts";
import { readJsonFile, writeJsonFile } from "./state-files.ts";

/** A child as it was written down. */
export type RecordedProcess = { readonly pid: number; readonly identity: string; readonly role: string };

/** The record of one state folder; needs the folder's lock. */
export class ProcessLedger {
  readonly #path: string;
  readonly #recorded = new Map<number, RecordedProcess>();

  constructor(path: string) {
    this.#path = path;
  }

  add(pid: number, role: string): void {
    const identity = processIdentity(pid);
    if (identity === undefined) return;
    this.#recorded.set(pid, { pid, identity, role });
    this.#write();
  }

  remove(pid: number): void {
    if (this.#recorded.delete(pid)) this.#write();
  }

  /**
   * Ends what an earlier run left behind: asks first, and forces after `graceMs`. Returns what it ended. Workers go
   * before the server that they talk to.
   */
  async stopLeftovers(clock: Clock, graceMs: DurationMs): Promise<readonly RecordedProcess[]> {
    const leftovers = readLedger(this.#path).filter(isRunning).sort((a, b) => stopOrder(a) - stopOrder(b));
    for (const leftover of leftovers) await stopProcess(leftover, clock, graceMs);
    this.#write();
    return leftovers;
  }

  #write(): void {
    writeJsonFile(this.#path, { processes: [...this.#recorded.values()] });
  }
}

/** The role under which the embedded server is recorded; every other role is a worker's. */
export const serverRole = "nats-server";

function stopOrder({ role }: RecordedProcess): number {
  return role === serverRole ? 1 : 0;
}

function readLedger(path: string): readonly RecordedProcess[] {
  const stored = readJsonFile(path) as { readonly processes?: readonly Partial<RecordedProcess>[] } | undefined;
  return (stored?.processes ?? []).flatMap(({ pid, identity, role }) =>
    typeof pid === "number" && typeof identity === "string" && typeof role === "string" ? [{ pid, identity, role }] : [],
  );
}

function isRunning({ pid, identity }: RecordedProcess): boolean {
  return processIdentity(pid) === identity;
}

async function stopProcess(recorded: RecordedProcess, clock: Clock, graceMs: DurationMs): Promise<void> {
  const untilMs = clock.monotonicMs() + graceMs;
  signal(recorded, "SIGTERM");
  while (isRunning(recorded) && clock.monotonicMs() < untilMs) await clock.sleep(childProbeIntervalMs);
  signal(recorded, "SIGKILL");
}

function signal(recorded: RecordedProcess, name: "SIGTERM" | "SIGKILL"): void {
  if (!isRunning(recorded)) return;
  try {
    process.kill(recorded.pid, name);
  } catch {
    // It ended in this moment.
  }
}
