// The operator as a process of its own, as in a pod: what a test learns of it comes from its log, its probes and the cluster.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { waitUntil } from "../cluster/processes.ts";

export type LogLine = { readonly level: string; readonly message: string } & Readonly<Record<string, unknown>>;

export class OperatorProcess {
  readonly lines: LogLine[] = [];
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  #stderr = "";
  #rest = "";

  constructor(environment: Readonly<Record<string, string>>) {
    const program = fileURLToPath(new URL("../../src/bin/operator.ts", import.meta.url));
    const env = { PATH: process.env["PATH"] ?? "", DURABLE_TIMER_HEALTH_PORT: "0", DURABLE_TIMER_HEALTH_HOST: "127.0.0.1", ...environment };
    this.#child = spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "pipe"] });
    this.#exited = once(this.#child, "exit");
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.#stderr += text));
  }

  /** What it wrote beside its log; a stack trace, say. */
  get stderr(): string {
    return this.#stderr;
  }

  has(message: string): boolean {
    return this.lines.some((line) => line.message === message);
  }

  async waitFor(message: string): Promise<void> {
    const probe = async (): Promise<boolean> => {
      if (this.#child.exitCode !== null && !this.has(message)) throw new Error(`ended with ${String(this.#child.exitCode)}: ${this.#stderr}`);
      return this.has(message);
    };
    await waitUntil({ what: `the operator says "${message}"`, probe, timeoutMs: 60_000 });
  }

  /** Status of a probe. */
  async probe(path: "/livez" | "/readyz"): Promise<number> {
    return (await this.#get(path)).status;
  }

  async metrics(): Promise<string> {
    return await (await this.#get("/metrics")).text();
  }

  /** Resolves with the exit code, or with the signal that ended it. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<number | string | null> {
    this.#child.kill(signal);
    return await this.ended();
  }

  /** Resolves once it has ended, by itself or by a signal. */
  async ended(): Promise<number | string | null> {
    await this.#exited;
    return this.#child.exitCode ?? this.#child.signalCode;
  }

  async #get(path: string): Promise<Response> {
    const port = this.lines.find(({ message }) => message === "Started the operator")?.["healthPort"];
    return await fetch(`http://127.0.0.1:${String(port)}${path}`);
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.lines.push(JSON.parse(line) as LogLine);
  }
}
