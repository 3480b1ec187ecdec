/**
 * Small JSON files that are never seen half written: a new file is written aside, brought to disk and moved into place.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { Failure } from "../base/failure.ts";

/** The value in a file, or undefined when there is no such file. Throws a Failure when the file holds no JSON. */
export function readJsonFile(path: string): unknown {
  const text = readTextFile(path);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw damaged(path, error);
  }
}

/** Replaces a file, and creates its folder where it is missing. Durable when it returns. */
export function writeJsonFile(path: string, value: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  const aside = `${path}.new`;
  const file = openSync(aside, "w", ownerOnly);
  try {
    writeSync(file, `${JSON.stringify(value, null, 2)}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(aside, path);
}

/** The text of a file, or undefined when there is none. Throws a Failure for what is there and cannot be read, such as a folder. */
export function readTextFile(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw new Failure("invalid", "RESOURCE_INVALID", `read ${path}: it must be a file that may be read`, { cause: error });
  }
}

/** A file of the state folder that does not hold what was written there. */
export function damaged(path: string, cause: unknown): Failure {
  return new Failure("invalid", "STATE_DAMAGED", `read ${path}: it is damaged; restore it, or move the state folder away to begin anew`, { cause });
}

/** True for the error of a file or folder that does not exist. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

const ownerOnly = 0o600;
