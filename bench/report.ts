// Writes what was measured: the figures as JSON, a page of tables, and plots.

import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, totalmem } from "node:os";
import { join } from "node:path";
import { root } from "../scripts/run-process.ts";
import type { Row } from "./bench.ts";
import type { Measurement } from "./harness.ts";
import { barPlot } from "./plot.ts";
import { median, rounded } from "./statistics.ts";

/** Writes docs/performance.md, its plots, and bench/results/comparison.json. */
export function writeReport(rows: readonly Row[], leftOut: readonly string[]): void {
  const results = join(root, "bench", "results");
  const plots = join(root, "docs", "performance");
  for (const folder of [results, plots]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(results, "comparison.json"), `${JSON.stringify({ machine: machine(), rows }, null, 2)}\n`);
  for (const { file, title, value } of PLOTS) {
    const bars = rows.flatMap((row) => {
      const shown = value(row);
      return shown === undefined ? [] : [{ label: `${row.name}, ${row.label}`, value: shown, isOurs: row.name === "durable-timer" }];
    });
    writeFileSync(join(plots, file), barPlot(title, bars));
  }
  writeFileSync(join(root, "docs", "performance.md"), page(rows, leftOut));
  console.log("Written: docs/performance.md, docs/performance/*.svg, bench/results/comparison.json");
}

const middle = (row: Row, of: (run: Measurement) => number | undefined): number | undefined => median(row.runs.map(of).filter((value) => value !== undefined));

const PLOTS: readonly { readonly file: string; readonly title: string; readonly value: (row: Row) => number | undefined }[] = [
  { file: "starts.svg", title: "Acknowledged starts per second", value: (row) => (row.load.mode === "spread" ? middle(row, (run) => run.startsPerSecond) : undefined) },
  { file: "lateness.svg", title: "Lateness p99 of timers spread over ten seconds, in ms", value: (row) => (row.load.mode === "spread" ? middle(row, (run) => run.lateMs.p99) : undefined) },
  { file: "burst.svg", title: "Timers resumed per second, all due at one instant", value: (row) => middle(row, (run) => run.resumedPerSecond) },
];

function page(rows: readonly Row[], leftOut: readonly string[]): string {
  const { cores, model, memoryGiB, node, nats } = machine();
  const count = rows[0]?.load.timerCount.toLocaleString("en") ?? "0";
  return `<!-- Written by \`npm run bench\`; do not edit. -->
# Performance

Measured by \`npm run bench\` on one machine: ${String(cores)} cores (${model}), ${String(memoryGiB)} GiB, Linux, Node ${node}, NATS ${nats}. Client, workers and servers share those
cores, every system had them to itself, one after the other. ${count} timers, bodies of 512 bytes, each start awaited until it was acknowledged, and
acknowledged means "on disk". A figure is the median of ${String(Math.max(...rows.map(({ runs }) => runs.length)))} rounds, the range in brackets. Compare figures with each other, not with another machine's.

None of the other systems has generations with a fence, immutable snapshots whose hash is checked, an exact archive, or a sweep that proves that
every waiting timer is armed. *nats-schedules* is what this product stands on: native schedules of NATS, alone.

## Timers spread over ten seconds

${table(rows.filter(({ load }) => load.mode === "spread"), SPREAD)}

![Starts per second](performance/starts.svg)

![Lateness](performance/lateness.svg)

## All timers due at one instant

${table(rows.filter(({ load }) => load.mode === "burst"), BURST)}

![Resumed per second](performance/burst.svg)
${leftOut.length === 0 ? "" : `\nLeft out: ${leftOut.join("; ")}.\n`}
*Other* is what everything else on the machine used meanwhile, the kernel's work for the disk included; above twenty percent or so a row is noise.
`;
}

type Column = { readonly title: string; readonly of: (run: Measurement) => number | undefined };

const EVERYWHERE: readonly Column[] = [
  { title: "early", of: (run) => run.early },
  { title: "missing", of: (run) => run.missing },
  { title: "doubled", of: (run) => run.doubled },
  { title: "CPU s, servers and workers", of: (run) => run.serverCpuSeconds },
  { title: "CPU s, client", of: (run) => run.clientCpuSeconds },
  { title: "memory MiB", of: (run) => run.serverMemoryMiB },
  { title: "other %", of: (run) => run.otherCpuPercent },
];
const LATE: readonly Column[] = [
  { title: "late p50 ms", of: (run) => run.lateMs.p50 },
  { title: "p95", of: (run) => run.lateMs.p95 },
  { title: "p99", of: (run) => run.lateMs.p99 },
];
const SPREAD: readonly Column[] = [
  { title: "starts/s", of: (run) => run.startsPerSecond },
  { title: "ack p50 ms", of: (run) => run.ackMs.p50 },
  { title: "ack p99 ms", of: (run) => run.ackMs.p99 },
  ...LATE, ...EVERYWHERE,
];
const BURST: readonly Column[] = [{ title: "resumed/s", of: (run) => run.resumedPerSecond }, { title: "starts/s", of: (run) => run.startsPerSecond }, ...LATE, ...EVERYWHERE];

function table(rows: readonly Row[], columns: readonly Column[]): string {
  const lines = rows.map((row) => `| ${row.name}: ${row.label} | ${columns.map(({ of }) => cell(row, of)).join(" | ")} |`);
  return [`| system | ${columns.map(({ title }) => title).join(" | ")} |`, `|---|${columns.map(() => "---:|").join("")}`, ...lines].join("\n");
}

function cell(row: Row, of: Column["of"]): string {
  const values = row.runs.map(of).filter((value) => value !== undefined);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const shown = (value: number | undefined): string => rounded(value)?.toLocaleString("en") ?? "–";
  return low === high || values.length < 2 ? shown(median(values)) : `${shown(median(values))} (${shown(low)}–${shown(high)})`;
}

function machine(): { readonly cores: number; readonly model: string; readonly memoryGiB: number; readonly node: string; readonly nats: string } {
  const version = execFileSync(process.env["DURABLE_TIMER_NATS_SERVER"] ?? "nats-server", ["--version"], { encoding: "utf8" });
  return {
    cores: availableParallelism(), model: cpus()[0]?.model.trim() ?? "unknown", memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.versions.node, nats: /v?(\d+\.\d+\.\d+)/.exec(version)?.[1] ?? "unknown",
  };
}
