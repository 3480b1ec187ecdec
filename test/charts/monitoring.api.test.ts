/** What the operator's chart has for monitoring: rules, dashboard and monitors, against the metrics that exist, and by Prometheus' own tool. */
import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { PANELS } from "../../scripts/dashboard.ts";
import { labelNames, labelValues } from "../../src/resource/names.ts";
import { openRegistry, operatorMetrics, workerMetrics } from "../../src/telemetry/metrics.ts";
import { bringClientTools } from "../cluster/client-tools.ts";
import { runCommand } from "../cluster/commands.ts";
import { chartPath } from "../cluster/paths.ts";
import { inventory, render, type Manifest, type Values } from "./helm.ts";
import { bringPromtool } from "./promtool.ts";

type Rule = { readonly alert: string; readonly expr: string; readonly annotations: Readonly<Record<string, string>> };
const rulesPath = join(chartPath("durable-timer-operator"), "files", "alerts.yaml");
const rules = (parse(await readFile(rulesPath, "utf8")) as { readonly groups: readonly { readonly rules: readonly Rule[] }[] }).groups.flatMap((group) => group.rules);

async function rendered(values: Values): Promise<readonly Manifest[]> {
  return await render({ chart: "durable-timer-operator", name: "durable-timer-operator", namespace: "timers", values });
}

/** Metrics that a query names, histograms by their own name. */
function metricsIn(query: string): readonly string[] {
  return [...query.matchAll(/\b(durable_timer_\w+|process_\w+)/g)].map(([, name]) => String(name).replace(/_bucket$/, ""));
}

function knownMetrics(): ReadonlySet<string> {
  const registry = openRegistry();
  workerMetrics(registry);
  operatorMetrics(registry);
  return new Set(registry.getMetricsAsArray().map(({ name }) => name));
}

beforeAll(() => bringClientTools(() => undefined));

describe("alert rules and dashboard", () => {
  const known = knownMetrics();

  it.each(rules.map(({ alert, expr }) => ({ alert, expr })))("ask for metrics that exist: $alert", ({ expr }) => {
    expect(metricsIn(expr).length).toBeGreaterThan(0);
    expect(metricsIn(expr).filter((name) => !known.has(name))).toEqual([]);
  });

  it.each(PANELS)("ask for metrics that exist: $title", ({ queries }) => {
    for (const { expr } of queries) {
      expect(metricsIn(expr).length).toBeGreaterThan(0);
      expect(metricsIn(expr).filter((name) => !known.has(name))).toEqual([]);
    }
  });

  it("fire when they should, and are quiet when they should be", { timeout: 1_800_000 }, async () => {
    const promtool = await bringPromtool((line) => { console.log(line); });
    const dir = await mkdtemp(join(tmpdir(), "alerts-"));
    try {
      await copyFile(rulesPath, join(dir, "alerts.yaml"));
      await copyFile(join(import.meta.dirname, "alerts.tests.yaml"), join(dir, "alerts.tests.yaml"));
      expect(await runCommand(promtool, ["check", "rules", "--lint=all", "--lint-fatal", join(dir, "alerts.yaml")])).toContain(`${String(rules.length)} rules found`);
      expect(await runCommand(promtool, ["test", "rules", join(dir, "alerts.tests.yaml")])).toContain("SUCCESS");
    } finally {
      await rm(dir, { recursive: true });
    }
  });
});

describe("what the chart creates for monitoring", () => {
  it("is nothing unless it is asked for", async () => {
    const kinds = (await rendered({})).map(({ kind }) => kind);
    expect(kinds.filter((kind) => ["PodMonitor", "PrometheusRule", "ConfigMap", "NetworkPolicy"].includes(kind))).toEqual([]);
  });

  it("selects the operator's pods and the workers' by the labels that they have", async () => {
    const objects = await rendered({ podMonitor: { enabled: true, labels: { release: "prometheus" } } });
    const monitors = objects.filter(({ kind }) => kind === "PodMonitor");
    expect(inventory(monitors)).toEqual(["PodMonitor timers/durable-timer-operator", "PodMonitor timers/durable-timer-operator-workers"]);
    expect(monitors.map(({ metadata }) => metadata.labels?.["release"])).toEqual(["prometheus", "prometheus"]);
    expect(monitors[1]?.["spec"]).toMatchObject({
      namespaceSelector: { any: true },
      selector: { matchLabels: { [labelNames.name]: labelValues.name, [labelNames.component]: labelValues.workerComponent } },
      podTargetLabels: [labelNames.durableTimer],
    });
    const watching = await rendered({ podMonitor: { enabled: true }, watchNamespaces: ["payments"] });
    expect(watching.findLast(({ kind }) => kind === "PodMonitor")?.["spec"]).toMatchObject({ namespaceSelector: { matchNames: ["payments"] } });
  });

  it("carries the rules as they are, with the address of the runbooks", async () => {
    const [rule] = (await rendered({ prometheusRule: { enabled: true, runbookUrlPrefix: "https://docs.example/runbooks/" } })).filter(({ kind }) => kind === "PrometheusRule");
    const shipped = (rule?.["spec"] as { readonly groups: readonly { readonly rules: readonly Rule[] }[] }).groups.flatMap((group) => group.rules);
    expect(shipped.map(({ alert, expr }) => ({ alert, expr }))).toEqual(rules.map(({ alert, expr }) => ({ alert, expr })));
    expect(shipped.map(({ alert, annotations }) => annotations["runbook_url"] === `https://docs.example/runbooks/${alert}.md`)).toEqual(rules.map(() => true));
  });

  it("carries the dashboard as Grafana reads it", async () => {
    const [map] = (await rendered({ dashboard: { enabled: true } })).filter(({ kind }) => kind === "ConfigMap");
    expect(map?.metadata.labels).toMatchObject({ grafana_dashboard: "1" });
    const shipped = JSON.parse((map?.["data"] as Readonly<Record<string, string>>)["durable-timer.json"] ?? "") as { readonly panels: readonly { readonly title: string }[] };
    expect(shipped.panels.map(({ title }) => title)).toEqual(PANELS.map(({ title }) => title));
  });

  it("lets in probes and metrics alone, from those who may ask, and binds what goes out only on request", async () => {
    const from = [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } } }];
    const policy = async (values: Values): Promise<unknown> => (await rendered({ networkPolicy: { enabled: true, ...values } })).find(({ kind }) => kind === "NetworkPolicy")?.["spec"];
    expect(await policy({})).toMatchObject({ policyTypes: ["Ingress"], ingress: [{ ports: [{ port: "health", protocol: "TCP" }] }] });
    expect(await policy({ metricsFrom: from, egress: [{ ports: [{ port: 443 }] }] })).toMatchObject({ policyTypes: ["Ingress", "Egress"], ingress: [{ from }], egress: [{ ports: [{ port: 443 }] }] });
  });
});
