// The worker program from outside: its sweeps as its metrics tell, its memory and its processor time.

import { readFileSync } from "node:fs";
import { until, type WorkerProcess } from "../../test/worker/world.ts";

/** One sweep that saw all records, and what it did. */
export type Sweep = { readonly beganAtMs: number; readonly endedAtMs: number; readonly actions: ReadonlyMap<string, number> };

type Look = { readonly atMs: number; readonly bytes: number; readonly cpuMs: number };

/** Reads the worker's metrics and its memory several times a second. */
export class WorkerWatch {
  readonly #pid: number;
  readonly #url: string;
  readonly #timer: NodeJS.Timeout;
  #sweeps = 0;
  #durationSum = 0;
  #actions: ReadonlyMap<string, number> = new Map();
  readonly #looks: Look[] = [];

  constructor({ child, lines }: WorkerProcess) {
    this.#pid = child.pid ?? 0;
    const started = lines.map((line) => /"healthPort":(\d+)/.exec(line)?.[1]).find((port) => port !== undefined);
    if (started === undefined) throw new Error("the worker did not say where its metrics are");
    this.#url = `http://127.0.0.1:${started}/metrics`;
    this.#timer = setInterval(() => { this.#look(); }, lookMs);
  }

  async nextSweep(what: string, timeoutMs = 1_800_000): Promise<Sweep> {
    return await until(what, async () => {
      const metrics = await this.#read();
      const ended = ["completed", "incomplete"].reduce((sum, result) => sum + (metrics.get(`durable_timer_worker_sweeps_total{result="${result}"}`) ?? 0), 0);
      if (ended <= this.#sweeps) return undefined;
      const durationSum = metrics.get("durable_timer_worker_sweep_duration_seconds_sum") ?? 0;
      const endedAtMs = Date.now();
      const actions = new Map([...metrics].flatMap(([name, value]) => {
        const action = /sweep_actions_total\{action="(\w+)"\}/.exec(name)?.[1];
        return action === undefined ? [] : [[action, value] as const];
      }));
      const grown = new Map([...actions].map(([action, value]) => [action, value - (this.#actions.get(action) ?? 0)] as const).filter(([, value]) => value > 0));
      const sweep = { endedAtMs, beganAtMs: endedAtMs - (durationSum - this.#durationSum) * 1_000, actions: grown };
      this.#sweeps = ended;
      this.#durationSum = durationSum;
      this.#actions = actions;
      return sweep;
    }, timeoutMs);
  }

  /** Smallest and largest memory within a time. */
  memoryIn({ beganAtMs, endedAtMs }: Sweep): { readonly min: number; readonly max: number } {
    const bytes = this.#looks.filter(({ atMs }) => atMs >= beganAtMs && atMs <= endedAtMs).map((one) => one.bytes);
    return { min: Math.min(...bytes), max: Math.max(...bytes) };
  }

  /** Processor time of the worker within a time, in milliseconds. */
  cpuIn({ beganAtMs, endedAtMs }: Sweep): number {
    const looks = this.#looks.filter(({ atMs }) => atMs >= beganAtMs - lookMs && atMs <= endedAtMs + lookMs);
    return (looks.at(-1)?.cpuMs ?? 0) - (looks[0]?.cpuMs ?? 0);
  }

  peakBytes(): number {
    return Math.max(...this.#looks.map(({ bytes }) => bytes));
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    try {
      const bytes = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${String(this.#pid)}/status`, "utf8"))?.[1] ?? 0) * 1_024;
      const fields = readFileSync(`/proc/${String(this.#pid)}/stat`, "utf8").replace(/^.*\) /, "").split(" ");
      this.#looks.push({ atMs: Date.now(), bytes, cpuMs: (Number(fields[11]) + Number(fields[12])) * tickMs });
    } catch {
      // Not Linux, or gone: figures of memory and processor are left out.
    }
  }

  async #read(): Promise<ReadonlyMap<string, number>> {
    try {
      const text = await (await fetch(this.#url, { signal: AbortSignal.timeout(5_000) })).text();
      return new Map(text.split("\n").filter((line) => !line.startsWith("#")).map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
    } catch {
      return new Map();
    }
  }
}

const lookMs = 200;
/** The kernel counts processor time in hundredths of a second. */
const tickMs = 10;
