/**
 * A log file of bounded size: when it is full it is moved aside, in place of the one before it, and begun anew.
 */
import { appendFileSync, mkdirSync, renameSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { childLogBytesMax } from "../base/limits.ts";

/** One log file, open for as long as the process. */
export class LogFile {
  readonly #path: string;
  #bytes: number;
  #tail = "";

  constructor(path: string) {
    this.#path = path;
    mkdirSync(dirname(path), { recursive: true });
    this.#bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Appends at once: what was written before a crash is there after it. */
  write(chunk: Uint8Array | string): void {
    const bytes = Buffer.from(chunk);
    if (this.#bytes + bytes.length > childLogBytesMax && this.#bytes > 0) {
      renameSync(this.#path, `${this.#path}.1`);
      this.#bytes = 0;
    }
    appendFileSync(this.#path, bytes);
    this.#bytes += bytes.length;
    this.#tail = (this.#tail + bytes.toString("utf8")).slice(-tailCharsMax);
  }

  /** The last line that was written, for people; at most a few hundred characters of it are of use. */
  lastLine(): string {
    return this.#tail.trimEnd().split("\n").at(-1) ?? "";
  }
}

const tailCharsMax = 2_000;
