import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** A new folder that is removed when the tests of the file are done. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "durable-timer-local-"));
  afterAll(() => { rmSync(folder, { recursive: true, force: true }); });
  return folder;
}
