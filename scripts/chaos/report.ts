// The report of `npm run chaos`, for the terminal and for docs/chaos.md.

import { availableParallelism, totalmem } from "node:os";
import type { Lateness } from "./lateness.ts";
import type { RunResult } from "./run.ts";
import { disturbanceKinds } from "./storm.ts";
import type { Check } from "./verdict.ts";

/** A run in a few lines. */
export function summaryLines(result: RunResult): readonly string[] {
  const { verdict, checks, disturbances } = result;
  const broken = checks.filter(({ violations }) => violations.length > 0);
  return [
    identityLine(result),
    `${String(disturbances.length)} disturbances, ${String(result.workerRestartCount)} workers restarted, ${String(verdict.counts.generationsResumed)} generations resumed, ${String(verdict.counts.resumesRepeated)} of them stored once more`,
    `lateness in calm: ${latenessText(result.lateness.quiet)}; all: ${latenessText(result.lateness.all)}`,
    ...broken.flatMap(({ name, violations }) => [`BROKEN ${name}: ${String(violations.length)}`, ...violations.slice(0, 10).map(({ timer, problem }) => `  ${timer} ${problem}`)]),
  ];
}

/** The whole report. */
export function reportText({ seed, results }: { readonly seed: number; readonly results: readonly RunResult[] }): string {
  const timerCount = results.reduce((sum, result) => sum + result.timerCount, 0);
  return [
    "# A chaos run", "",
    "Written by `npm run chaos`; do not edit.", "",
    `${number(timerCount)} timers ran while workers and servers were killed, stopped and cut off at random. Afterwards every acknowledged start was looked for in NATS.`, "",
    ...identitySection(results), ...checkSection(results), ...disturbanceSection(results), ...latenessSection(results), ...answerSection(results), ...howSection(seed, results),
  ].join("\n");
}

function identitySection(results: readonly RunResult[]): readonly string[] {
  const rows: readonly (readonly [string, (result: RunResult) => number])[] = [
    ["timers", ({ timerCount }) => timerCount],
    ["**acknowledged** starts", ({ verdict }) => verdict.identity.acknowledged],
    ["= resumed and open", ({ verdict }) => verdict.identity.open],
    ["+ waiting", ({ verdict }) => verdict.identity.waiting],
    ["+ archived", ({ verdict }) => verdict.identity.archived],
    ["+ refused", ({ verdict }) => verdict.identity.refused],
    ["left in COMMANDS", ({ verdict }) => verdict.identity.pending],
    ["left half ended", ({ verdict }) => verdict.identity.ending],
    ["not acknowledged to their sender, and there all the same", ({ verdict }) => verdict.counts.unacknowledgedHeld],
    ["generations resumed", ({ verdict }) => verdict.counts.generationsResumed],
    ["of these, stored more than once", ({ verdict }) => verdict.counts.resumesRepeated],
  ];
  return [
    "## The identity", "",
    ...results.map((result) => `- ${serversText(result)}: ${identityLine(result)}`), "",
    ...table(["", ...results.map(serversText)], rows.map(([name, value]) => [name, ...results.map((result) => number(value(result)))])), "",
    "Open, waiting, archived and pending are read from the streams; refusals are the answers that senders got. Some timers are started twice at once with",
    "different meanings; each such pair counts as two acknowledged starts, of which one is refused.", "",
    ...results.map((result) => `- refused with ${serversText(result)}: ${[...result.verdict.refusals].map(([code, count]) => `\`${code}\` ${number(count)}`).join(", ")}`), "",
  ];
}

function identityLine({ verdict: { identity } }: RunResult): string {
  const { acknowledged, open, waiting, archived, refused, holds } = identity;
  return `${number(acknowledged)} acknowledged ${holds ? "=" : "≠"} ${number(open)} resumed and open + ${number(waiting)} waiting + ${number(archived)} archived + ${number(refused)} refused`;
}

function checkSection(results: readonly RunResult[]): readonly string[] {
  const cell = (check: Check | undefined) => (check === undefined ? ["–", "–"] : [number(check.comparedCount), number(check.violations.length)]);
  const names = results[0]?.checks.map(({ name }) => name) ?? [];
  const broken = results.flatMap((result) => result.checks.flatMap(({ name, violations }) => violations.slice(0, 10).map(({ timer, problem }) => `- ${serversText(result)}, ${name}: \`${timer}\` ${problem}`)));
  return [
    "## What was checked", "",
    ...table(["rule", ...results.flatMap((result) => [`compared, ${serversText(result)}`, "violations"])], names.map((name) => [name, ...results.flatMap(({ checks }) => cell(checks.find((check) => check.name === name)))])), "",
    ...(broken.length === 0 ? [] : [...broken, ""]),
  ];
}

function disturbanceSection(results: readonly RunResult[]): readonly string[] {
  const count = ({ disturbances }: RunResult, kind: string) => number(disturbances.filter((one) => one.kind === kind).length);
  return [
    "## What was done to it", "",
    ...table(["disturbance", ...results.map(serversText)], [
      ...disturbanceKinds.map((kind) => [kind, ...results.map((result) => count(result, kind))]),
      ["all", ...results.map(({ disturbances }) => number(disturbances.length))],
      ["worker processes started again", ...results.map(({ workerRestartCount }) => number(workerRestartCount))],
      ["seconds of storm", ...results.map(({ stormedMs }) => number(Math.round(stormedMs / 1_000)))],
    ]), "",
    "Killed is SIGKILL, stopped is SIGSTOP and later SIGCONT (workers for longer than the acknowledgement wait), asked to end is SIGTERM. Every worker and every",
    "flow reaches the servers through proxies of its own; a half-open connection loses what travels one way, and is cut in the end.", "",
  ];
}

function latenessSection(results: readonly RunResult[]): readonly string[] {
  const row = (name: string, result: RunResult, lateness: Lateness) => [`${serversText(result)}, ${name}`, number(lateness.count), ...[lateness.p50, lateness.p95, lateness.p99, lateness.most].map((ms) => number(Math.round(ms)))];
  return [
    "## Lateness", "",
    "From due to the stored resume, on the broker's clock, in milliseconds. *Calm* are the timers that were due when the last disturbance was over by more than the",
    "acknowledgement wait; *all* includes those whose worker was killed while it held their wake, or that were due while no server answered.", "",
    ...table(["", "resumes", "p50", "p95", "p99", "most"], results.flatMap((result) => [row("calm", result, result.lateness.quiet), row("all", result, result.lateness.all)])), "",
  ];
}

function answerSection(results: readonly RunResult[]): readonly string[] {
  const names = [...new Set(results.flatMap(({ answers }) => [...answers.keys()]))].sort();
  return [
    "## What senders were told", "",
    "Starts are mostly sent without waiting for their outcome. Feedback is sent until its outcome is known; some of it is wrong on purpose.", "",
    ...table(["command and answer", ...results.map(serversText)], names.map((name) => [name, ...results.map(({ answers }) => number(answers.get(name) ?? 0))])), "",
  ];
}

function howSection(seed: number, results: readonly RunResult[]): readonly string[] {
  const versions = [...new Set(results.map(({ natsVersion }) => natsVersion))].join(", ");
  return [
    "## How to run it again", "",
    "```sh", `npm run chaos -- --seed ${String(seed)}`, "```", "",
    "The seed gives the timers' plans and what is done to whom and when; how processes interleave differs from run to run. `npm run chaos -- --timers 2000` takes about",
    "a minute; `--servers 1` or `3`, `--minutes` and `--report` are the other arguments. A run with a violation keeps what happened, in order, below `.cache/`.", "",
    `- machine: ${String(availableParallelism())} cores, ${String(Math.round(totalmem() / 2 ** 30))} GiB of memory, on which servers, workers, flows and proxies run side by side`,
    `- Node ${process.versions.node}, NATS ${versions} with \`sync_interval: always\``,
    ...results.map(({ bed, waitMsMax, totalMs, ...result }) => `- ${serversText(result)}: ${String(bed.workerCount)} workers, waits of 0.5 to ${String(waitMsMax / 1_000)} s, acknowledgement wait ${String(bed.ackWaitMs / 1_000)} s, sweep every ${String(bed.sweepIntervalSeconds)} s; it took ${String(Math.round(totalMs / 1_000))} s`),
    "",
  ];
}

function serversText({ serverCount }: Pick<RunResult, "serverCount">): string {
  return serverCount === 1 ? "one server" : "three servers";
}

function latenessText({ count, p50, p99, most }: Lateness): string {
  return `${number(count)} resumes, p50 ${String(Math.round(p50))} ms, p99 ${String(Math.round(p99))} ms, most ${String(Math.round(most))} ms`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  return [`| ${head.join(" | ")} |`, `|${head.map((_, index) => (index === 0 ? "---" : "---:")).join("|")}|`, ...rows.map((row) => `| ${row.join(" | ")} |`)];
}

function number(value: number): string {
  return value.toLocaleString("en-US");
}
