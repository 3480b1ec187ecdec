// The Grafana dashboard of the operator's chart, as data: rows of panels, each one question with its queries.

type Query = { readonly expr: string; readonly legend: string };
type Panel = { readonly title: string; readonly unit: "s" | "percentunit" | "ops" | "short"; readonly queries: readonly Query[] };

const timer = 'namespace=~"$namespace", durabletimer_dev_name=~"$name"';
const by = "namespace, durabletimer_dev_name";
const of = "{{namespace}}/{{durabletimer_dev_name}}";

const lateness = (part: number): Query => ({
  expr: `histogram_quantile(${String(part)}, sum by (${by}, le) (rate(durable_timer_worker_lateness_seconds_bucket{${timer}}[$__rate_interval])))`,
  legend: `p${String(part * 100)} ${of}`,
});
const largest = (metric: string, legend = of): Query => ({ expr: `max by (${by}) (${metric}{${timer}})`, legend });
const rate = (metric: string, label: string, matcher = ""): Query => ({
  expr: `sum by (${by}, ${label}) (rate(${metric}{${timer}${matcher}}[$__rate_interval]))`,
  legend: `{{${label}}} ${of}`,
});

/** What each panel asks. Every metric that it names has to exist; a test compares. */
export const PANELS: readonly Panel[] = [
  { title: "Lateness of resumes", unit: "s", queries: [lateness(0.5), lateness(0.99)] },
  { title: "Messages by outcome", unit: "ops", queries: [rate("durable_timer_worker_deliveries_total", "outcome")] },
  { title: "Timers waiting", unit: "short", queries: [{ expr: `max by (${by}, phase) (durable_timer_worker_timers{${timer}})`, legend: `{{phase}} ${of}` }] },
  { title: "Timers overdue, or without an answer", unit: "short", queries: [largest("durable_timer_worker_timers_overdue", `overdue ${of}`), largest("durable_timer_worker_timers_unanswered", `unanswered ${of}`)] },
  { title: "Used of the fullest stream or the account", unit: "percentunit", queries: [largest("durable_timer_worker_capacity_used_ratio")] },
  { title: "Admission: 1 takes starts", unit: "short", queries: [largest("durable_timer_worker_admission_open")] },
  { title: "Age of the oldest message taken", unit: "s", queries: [{ expr: `max by (${by}, loop) (durable_timer_worker_oldest_message_age_seconds{${timer}})`, legend: `{{loop}} ${of}` }] },
  { title: "Rejected commands by code", unit: "ops", queries: [rate("durable_timer_worker_rejections_total", "code")] },
  { title: "What the sweep did", unit: "ops", queries: [rate("durable_timer_worker_sweep_actions_total", "action")] },
  {
    title: "Duration of a batch, p99", unit: "s",
    queries: [{ expr: `histogram_quantile(0.99, sum by (${by}, loop, le) (rate(durable_timer_worker_batch_duration_seconds_bucket{${timer}}[$__rate_interval])))`, legend: `{{loop}} ${of}` }],
  },
  { title: "Workers connected to NATS", unit: "short", queries: [{ expr: `sum by (${by}) (durable_timer_worker_broker_connected{${timer}})`, legend: of }] },
  { title: "Streams that lost data", unit: "short", queries: [{ expr: `max by (${by}, stream) (durable_timer_worker_data_lost{${timer}})`, legend: `{{stream}} ${of}` }] },
  { title: "Memory of workers", unit: "short", queries: [{ expr: `process_resident_memory_bytes{${timer}}`, legend: "{{pod}}" }] },
  { title: "DurableTimers by readiness", unit: "short", queries: [{ expr: "sum by (ready) (durable_timer_operator_resources)", legend: "ready: {{ready}}" }] },
  { title: "Passes of the operator", unit: "ops", queries: [{ expr: "sum by (result) (rate(durable_timer_operator_reconciles_total[$__rate_interval]))", legend: "{{result}}" }] },
  { title: "Operators that lead", unit: "short", queries: [{ expr: "sum(durable_timer_operator_leading)", legend: "leading" }] },
];

/** The dashboard as Grafana imports it. */
export function dashboard(): object {
  return {
    title: "Durable timers", uid: "durable-timer", tags: ["durable-timer"], schemaVersion: 39, editable: true, refresh: "30s", timezone: "browser",
    time: { from: "now-3h", to: "now" },
    templating: { list: [datasourceVariable, variable("namespace", "label_values(durable_timer_worker_broker_connected, namespace)"), variable("name", 'label_values(durable_timer_worker_broker_connected{namespace=~"$namespace"}, durabletimer_dev_name)')] },
    panels: PANELS.map(panel),
  };
}

const datasource = { type: "prometheus", uid: "${datasource}" };
const datasourceVariable = { name: "datasource", label: "Data source", type: "datasource", query: "prometheus" };

function variable(name: string, query: string): object {
  return { name, type: "query", datasource, query: { query, refId: name }, definition: query, refresh: 2, includeAll: true, multi: true, allValue: ".*", current: { text: "All", value: "$__all" } };
}

function panel({ title, unit, queries }: Panel, index: number): object {
  return {
    id: index + 1, title, type: "timeseries", datasource,
    gridPos: { h: panelHeight, w: panelWidth, x: (index % 2) * panelWidth, y: Math.floor(index / 2) * panelHeight },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi" } },
    targets: queries.map(({ expr, legend }, order) => ({ refId: String.fromCharCode(65 + order), expr, legendFormat: legend, datasource })),
  };
}

const panelHeight = 8;
const panelWidth = 12;
