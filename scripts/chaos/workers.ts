// Worker processes under supervision: the real program, started again whenever it ends, as an operator does.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { workerConfigVariable, workerNameVariable } from "../../src/resource/names.ts";
import { workerConfigText, type WorkerConfig } from "../../src/resource/worker-config.ts";
import { root } from "../run-process.ts";

/** One worker's place; processes come and go in it. */
export class WorkerSlot {
  readonly name: string;
  /** The last lines that its processes wrote. */
  readonly lines: string[] = [];
  /** Ends that nobody asked for, each with the last line before it. */
  readonly crashes: string[] = [];
  startCount = 0;
  /** Whether the present process has found everything that it needs. */
  isReady = false;
  readonly #config: WorkerConfig;
  #child: ChildProcess | undefined;
  #isAskedToEnd = false;
  #isOpen = true;
  #supervised: Promise<void> = Promise.resolve();

  constructor(name: string, config: WorkerConfig) {
    this.name = name;
    this.#config = config;
  }

  /** Starts the first process, and from then on one after each that ended. */
  open(): void {
    this.#supervised = this.#supervise();
  }

  /** SIGKILL, SIGTERM, or SIGSTOP and SIGCONT. The first two are followed by a new process. */
  signal(signal: "SIGKILL" | "SIGTERM" | "SIGSTOP" | "SIGCONT"): void {
    if (signal === "SIGKILL" || signal === "SIGTERM") this.#isAskedToEnd = true;
    this.#child?.kill(signal);
  }

  /** Kills what runs and starts nothing more. */
  async close(): Promise<void> {
    this.#isOpen = false;
    this.signal("SIGKILL");
    await this.#supervised;
  }

  async #supervise(): Promise<void> {
    while (this.#isOpen) {
      this.#isAskedToEnd = false;
      this.isReady = false;
      const child = this.#spawn();
      const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
      if (!this.#isAskedToEnd && this.#isOpen) this.crashes.push(`${this.name} ended by itself (${String(signal ?? code)}): ${this.lines.at(-1) ?? ""}`);
      if (this.#isOpen) await new Promise((resolve) => { setTimeout(resolve, restartMs); });
    }
  }

  #spawn(): ChildProcess {
    const env = { ...process.env, [workerConfigVariable]: workerConfigText(this.#config), [workerNameVariable]: this.name, DURABLE_TIMER_HEALTH_HOST: "127.0.0.1" };
    const child = spawn(process.execPath, [join(root, "src/bin/worker.ts")], { env, stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    this.startCount += 1;
    orphans.add(child);
    child.once("exit", () => orphans.delete(child));
    for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on("line", (line) => { this.#note(line); });
    return child;
  }

  #note(line: string): void {
    if (line.includes("Found everything the worker needs")) this.isReady = true;
    this.lines.push(line);
    if (this.lines.length > linesMax * 2) this.lines.splice(0, linesMax);
  }
}

const linesMax = 5_000;
const restartMs = 250;

const orphans = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of orphans) child.kill("SIGKILL");
});
