/**
 * One process at a time per state folder.
 *
 * L1 The lock is a file with its holder in it, which appears complete or not at all (a hard link to a finished file).
 * L2 A lock whose holder no longer runs is free; the holder is told by pid and start time, so that a reused pid frees it.
 * L3 Two processes that find the same dead lock do not both get it: whoever moves it away checks that it moved that one.
 */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { Failure } from "../base/failure.ts";
import type { Random } from "../base/random.ts";
import { processIdentity } from "./process-identity.ts";
import { isMissing, readTextFile } from "./state-files.ts";

/** A held lock. */
export type StateLock = { readonly release: () => void };

/** Takes the lock for this process, or throws a Failure that names the holder. */
export function takeStateLock(path: string, random: Random): StateLock {
  const token = random.token(16);
  const mine = JSON.stringify({ pid: process.pid, identity: processIdentity(process.pid), token });
  const prepared = `${path}.${token}`;
  writeFileSync(prepared, mine);
  try {
    for (let attempt = 0; attempt < attemptCountMax; attempt += 1) {
      if (tryLink(prepared, path)) return { release: () => { releaseLock(path, mine); } };
      freeIfDead(path, `${path}.dead.${token}`);
    }
  } finally {
    rmSync(prepared, { force: true });
  }
  throw new Failure("transient", "STATE_LOCKED", `lock ${path}: others keep taking it`);
}

/** The pid of the process that holds the lock, or undefined when nobody does. */
export function stateLockHolder(path: string): number | undefined {
  const text = readTextFile(path);
  const holder = text === undefined ? undefined : holderIn(text);
  return holder !== undefined && isAlive(holder) ? holder.pid : undefined;
}

type Holder = { readonly pid: number; readonly identity: string };

const attemptCountMax = 10;

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

function freeIfDead(path: string, aside: string): void {
  const text = readTextFile(path);
  if (text === undefined) return;
  const holder = holderIn(text);
  if (holder !== undefined && isAlive(holder)) {
    throw new Failure(
      "denied", "STATE_LOCKED",
      `lock ${path}: process ${String(holder.pid)} runs on this state folder; stop it, or choose another folder with --state`,
    );
  }
  if (!tryMove(path, aside)) return;
  // L3: between reading and moving, somebody else may have freed and taken it.
  if (readFileSync(aside, "utf8") !== text) tryLink(aside, path);
  rmSync(aside, { force: true });
}

function tryMove(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

function releaseLock(path: string, mine: string): void {
  if (readTextFile(path) === mine) rmSync(path, { force: true });
}

function isAlive({ pid, identity }: Holder): boolean {
  return processIdentity(pid) === identity;
}

/** Undefined for text that no holder wrote: such a lock binds nobody. */
function holderIn(text: string): Holder | undefined {
  try {
    const { pid, identity } = JSON.parse(text) as { readonly pid?: unknown; readonly identity?: unknown };
    return typeof pid === "number" && typeof identity === "string" ? { pid, identity } : undefined;
  } catch {
    return undefined;
  }
}
