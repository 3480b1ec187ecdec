// The programs of src/bin as processes, as a person starts them.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { serverBinary } from "../servers.ts";

/** A program that runs, or has run. */
export class Program {
  readonly child: ChildProcess;
  #output = "";

  constructor(name: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
    this.child = spawn(process.execPath, [join(import.meta.dirname, "../../src/bin", `${name}.ts`), ...args], {
      env: { PATH: process.env["PATH"], DURABLE_TIMER_NATS_SERVER: serverBinary("recommended"), ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.child.stdout, this.child.stderr]) stream?.on("data", (chunk: Buffer) => (this.#output += chunk.toString()));
  }

  /** Everything that was printed so far. */
  get output(): string {
    return this.#output;
  }

  /** The exit code, or the signal, once it has ended. */
  async ended(): Promise<number | string> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "close");
    return this.child.exitCode ?? this.child.signalCode ?? "";
  }

  /** Ends the program as a person does with Ctrl-C. */
  async interrupt(): Promise<number | string> {
    this.child.kill("SIGINT");
    return await this.ended();
  }
}

/** Runs a program to its end. */
export async function runProgram(name: string, args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<{ readonly code: number | string; readonly output: string }> {
  const program = new Program(name, args, environment);
  const code = await program.ended();
  return { code, output: program.output };
}
