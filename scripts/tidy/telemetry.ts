// What operators of the service read must keep up with the code: metrics and alerts; and each bound must be known to a test.

import type { Finding, Repository } from "./repository.ts";

const METRICS = "src/telemetry/metrics.ts";
const METRICS_PAGE = "docs/metrics.md";
const LIMITS = "src/base/limits.ts";

/** Compares the metrics that telemetry declares with those that docs/metrics.md explains, both ways. */
export function checkMetrics({ has, read }: Repository): readonly Finding[] {
  if (!has(METRICS)) return [];
  const declared = namesIn(read(METRICS), /["'`](durable_timer_[a-z0-9_]+)["'`]/g);
  if (declared.length === 0) return [{ path: METRICS, text: "declares no metric that this check can read: write names out in full" }];
  const explained = has(METRICS_PAGE) ? namesIn(read(METRICS_PAGE), /`(durable_timer_[a-z0-9_]+)[`{]/g) : [];
  return [
    ...declared.filter((name) => !explained.includes(name)).map((name) => ({ path: METRICS_PAGE, text: `explain \`${name}\`` })),
    ...explained.filter((name) => !declared.includes(name)).map((name) => ({ path: METRICS_PAGE, text: `\`${name}\` does not exist` })),
  ];
}

/** Asks for a runbook per alert of the charts, and an alert per runbook. */
export function checkAlerts({ paths, read, has }: Repository): readonly Finding[] {
  const charts = paths.filter((path) => /^charts\/.*\.(ya?ml|tpl)$/.test(path));
  const alerts = charts.flatMap((path) => namesIn(read(path), /^\s*(?:- )?alert:\s*"?([A-Za-z0-9]+)"?\s*$/gm));
  const runbooks = paths.filter((path) => path.startsWith("docs/runbooks/") && path.endsWith(".md") && !path.endsWith("/README.md"));
  const runbookOf = (alert: string): string => `docs/runbooks/${alert}.md`;
  return [
    ...alerts.filter((alert) => !has(runbookOf(alert))).map((alert) => ({ path: runbookOf(alert), text: `write what to do when ${alert} fires` })),
    ...runbooks.filter((path) => !alerts.some((alert) => runbookOf(alert) === path)).map((path) => ({ path, text: "belongs to no alert" })),
  ];
}

/** Finds bounds that no test mentions: nobody would notice if they stopped being applied. */
export function checkLimits({ paths, has, read }: Repository): readonly Finding[] {
  if (!has(LIMITS)) return [];
  const tests = paths.filter((path) => /^test\/.*\.ts$/.test(path)).map(read).join("\n");
  const names = namesIn(read(LIMITS), /^export const (\w+)/gm);
  return names.filter((name) => !new RegExp(`\\b${name}\\b`).test(tests)).map((name) => ({ path: LIMITS, text: `no test mentions ${name}` }));
}

function namesIn(text: string, pattern: RegExp): readonly string[] {
  return [...new Set([...text.matchAll(pattern)].map(([, name]) => String(name)))];
}
