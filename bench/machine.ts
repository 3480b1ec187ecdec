// What processes and the whole machine use, read from /proc. Linux only.

import { readdirSync, readFileSync } from "node:fs";

/** CPU seconds, user and system, of processes and everything they started. */
export function cpuSecondsOf(pids: readonly number[]): number {
  const all = processes();
  return sum(treesOf(pids, all).map((pid) => all.get(pid)?.cpuSeconds ?? 0));
}

/** Proportional set size of processes and everything they started: shared pages count once. */
export function memoryBytesOf(pids: readonly number[]): number {
  return sum(treesOf(pids, processes()).map(proportionalBytes));
}

/** CPU seconds of everything on this machine, waiting for the disk and idling left out. */
export function machineCpuSeconds(): number {
  const fields = readFileSync("/proc/stat", "utf8").split("\n", 1)[0]?.trim().split(/\s+/).slice(1).map(Number) ?? [];
  return sum(busyFields.map((index) => fields[index] ?? 0)) / ticksPerSecond;
}

/** user, nice, system, irq, softirq, steal */
const busyFields = [0, 1, 2, 5, 6, 7];
const ticksPerSecond = 100;

type ProcessFacts = { readonly parent: number; readonly cpuSeconds: number };

function processes(): ReadonlyMap<number, ProcessFacts> {
  const found = new Map<number, ProcessFacts>();
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    const stat = read(`/proc/${name}/stat`);
    // The name of a program may hold spaces and brackets; what follows the last one is fixed.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ").map(Number);
    if (fields.length > 12) found.set(Number(name), { parent: fields[1] ?? 0, cpuSeconds: sum(fields.slice(11, 15)) / ticksPerSecond });
  }
  return found;
}

function treesOf(roots: readonly number[], all: ReadonlyMap<number, ProcessFacts>): readonly number[] {
  const found: number[] = [];
  const open = [...roots];
  for (let pid = open.pop(); pid !== undefined; pid = open.pop()) {
    if (!all.has(pid) || found.includes(pid)) continue;
    found.push(pid);
    open.push(...[...all].filter(([, { parent }]) => parent === pid).map(([child]) => child));
  }
  return found;
}

function proportionalBytes(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(read(`/proc/${String(pid)}/smaps_rollup`))?.[1] ?? 0) * 1024;
}

/** Empty when the process has gone meanwhile. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
