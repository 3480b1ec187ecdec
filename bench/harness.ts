// The one measurement that every system goes through: arm N timers, each start awaited until it is acknowledged, and see each of
// them come due, in one process and by one clock.
//
// H1 Lateness is the instant at which the system's handler ran, here, minus the due instant. Early, missing and doubled ones count.
// H2 Client, servers and handler share the machine: figures are those of the whole box, good for ratios in one run.
// H3 `otherCpuPercent` says what anything else used meanwhile; above twenty or so a run is noise.

import { setTimeout as sleep } from "node:timers/promises";
import { cpuSecondsOf, machineCpuSeconds, memoryBytesOf } from "./machine.ts";
import { quantile, rounded } from "./statistics.ts";

/** A system under measurement. */
export type System = {
  /** Resolves once the system has acknowledged the timer. */
  readonly arm: (timer: { readonly id: number; readonly dueAtMs: number; readonly body: string }) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** `onWake` is to be called when a timer's handler runs. */
export type OpenSystem = (onWake: (id: number) => void) => Promise<System>;

export type Load = {
  /** `spread`: each due 10 to 20 s after its own start. `burst`: all at one instant, `leadMs` after the first start. */
  readonly mode: "spread" | "burst";
  readonly timerCount: number;
  readonly startsInFlight: number;
  readonly bodyBytes: number;
  readonly leadMs: number;
  readonly giveUpMs: number;
  /** Servers and workers of the system, for their use of CPU and memory. */
  readonly pids: readonly number[];
};

export type Measurement = {
  readonly startsPerSecond: number;
  readonly ackMs: Quantiles;
  readonly lateMs: Quantiles;
  readonly early: number;
  readonly missing: number;
  readonly doubled: number;
  /** Of a burst: handled per second from the due instant to the last one. */
  readonly resumedPerSecond?: number;
  /** Of a burst: the lead was too short, the timers were not all armed when they came due. */
  readonly armedLate: boolean;
  readonly serverCpuSeconds: number;
  readonly clientCpuSeconds: number;
  readonly serverMemoryMiB: number;
  readonly otherCpuPercent: number;
};

export type Quantiles = { readonly p50?: number; readonly p95?: number; readonly p99?: number; readonly max?: number };

/** Measures one system once. */
export async function measure(open: OpenSystem, load: Load): Promise<Measurement> {
  const record = new Record(load.timerCount);
  const system = await open((id) => { record.woke(id); });
  const use = beginUse(load.pids);
  const armed = await arm(system, load, record);
  const endAtMs = record.lastDueAtMs() + load.giveUpMs;
  while (record.missing() > 0 && Date.now() < endAtMs) await sleep(50);
  await sleep(doublesMs);
  const result = { ...armed, ...record.result(), ...(load.mode === "burst" ? record.burst() : {}), ...use.end() };
  await system.close();
  return result;
}

/** A second copy of a wake comes soon, if at all. */
const doublesMs = 1_500;

type Armed = Pick<Measurement, "startsPerSecond" | "ackMs" | "armedLate">;

async function arm(system: System, load: Load, record: Record): Promise<Armed> {
  const body = "x".repeat(load.bodyBytes);
  const beganAtMs = Date.now();
  const burstAtMs = beganAtMs + load.leadMs;
  const ackMs: number[] = [];
  let next = 0;
  const sender = async (): Promise<void> => {
    while (next < load.timerCount) {
      const id = next;
      next += 1;
      const sentAtMs = Date.now();
      const dueAtMs = load.mode === "burst" ? burstAtMs : Math.round(sentAtMs + spreadMsMin + Math.random() * spreadMs);
      record.due(id, dueAtMs);
      await system.arm({ id, dueAtMs, body });
      ackMs.push(Date.now() - sentAtMs);
    }
  };
  await Promise.all(Array.from({ length: load.startsInFlight }, sender));
  const tookMs = Date.now() - beganAtMs;
  return { startsPerSecond: Math.round((load.timerCount / tookMs) * 1_000), ackMs: quantiles(ackMs), armedLate: load.mode === "burst" && Date.now() > burstAtMs - 500 };
}

const spreadMsMin = 10_000;
const spreadMs = 10_000;

/** When each timer was due, and when its handler ran. */
class Record {
  readonly #due: Float64Array;
  readonly #woke: Float64Array;
  #seen = 0;
  #doubled = 0;
  #lastAtMs = 0;

  constructor(count: number) {
    this.#due = new Float64Array(count).fill(Number.NaN);
    this.#woke = new Float64Array(count).fill(Number.NaN);
  }

  due(id: number, atMs: number): void {
    this.#due[id] = atMs;
  }

  woke(id: number): void {
    const nowMs = Date.now();
    if (!Number.isNaN(this.#woke[id])) {
      this.#doubled += 1;
      return;
    }
    this.#woke[id] = nowMs;
    this.#seen += 1;
    this.#lastAtMs = nowMs;
  }

  missing(): number {
    return this.#due.length - this.#seen;
  }

  lastDueAtMs(): number {
    return this.#due.reduce((latest, atMs) => Math.max(latest, atMs), 0);
  }

  result(): Pick<Measurement, "lateMs" | "early" | "missing" | "doubled"> {
    const late = [...this.#woke].map((atMs, id) => atMs - (this.#due[id] ?? 0)).filter((ms) => !Number.isNaN(ms));
    return { lateMs: quantiles(late), early: late.filter((ms) => ms < 0).length, missing: this.missing(), doubled: this.#doubled };
  }

  burst(): Pick<Measurement, "resumedPerSecond"> {
    return { resumedPerSecond: Math.round((this.#seen / Math.max(1, this.#lastAtMs - this.lastDueAtMs())) * 1_000) };
  }
}

function quantiles(values: readonly number[]): Quantiles {
  const sorted = values.toSorted((a, b) => a - b);
  const entries = Object.entries({ p50: 0.5, p95: 0.95, p99: 0.99, max: 1 }).map(([name, part]) => [name, rounded(quantile(sorted, part))]);
  return Object.fromEntries(entries) as Quantiles;
}

function beginUse(pids: readonly number[]): { end(): Pick<Measurement, "serverCpuSeconds" | "clientCpuSeconds" | "serverMemoryMiB" | "otherCpuPercent"> } {
  const before = { server: cpuSecondsOf(pids), client: process.cpuUsage(), machine: machineCpuSeconds(), atMs: Date.now() };
  let memoryBytes = 0;
  const sampling = setInterval(() => { memoryBytes = Math.max(memoryBytes, memoryBytesOf(pids)); }, 1_000);
  return {
    end: () => {
      clearInterval(sampling);
      const server = cpuSecondsOf(pids) - before.server;
      const usage = process.cpuUsage(before.client);
      const client = (usage.user + usage.system) / 1e6;
      const other = Math.max(0, machineCpuSeconds() - before.machine - server - client);
      const wallSeconds = (Date.now() - before.atMs) / 1_000;
      return {
        serverCpuSeconds: rounded(server) ?? 0,
        clientCpuSeconds: rounded(client) ?? 0,
        serverMemoryMiB: Math.round(memoryBytes / 1024 / 1024),
        otherCpuPercent: Math.round((100 * other) / wallSeconds / cpuCount),
      };
    },
  };
}

const cpuCount = (await import("node:os")).availableParallelism();
