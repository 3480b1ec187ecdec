import { describe, expect, test } from "vitest";
import { actionKindCountMax } from "../../src/base/limits.ts";
import { exposition, openRegistry, operatorMetrics, workerMetrics } from "../../src/telemetry/metrics.ts";
import { ms } from "../fakes/timers.ts";

function openWorker() {
  const registry = openRegistry();
  const metrics = workerMetrics(registry);
  return { metrics, ...reading(registry) };
}

function openOperator() {
  const registry = openRegistry();
  const metrics = operatorMetrics(registry);
  return { metrics, ...reading(registry) };
}

function reading(registry: ReturnType<typeof openRegistry>) {
  const text = () => exposition(registry).text();
  /** The value of one series as it is served. */
  const value = async (series: string) => Number((await text()).split("\n").find((line) => line.startsWith(`${series} `))?.slice(series.length + 1));
  return { text, value };
}

describe("a worker's metrics", () => {
  test("counters begin at zero for every label value", async () => {
    const { text } = openWorker();
    const lines = (await text()).split("\n");
    for (const series of [
      'durable_timer_worker_deliveries_total{loop="wake",outcome="duplicate"} 0',
      'durable_timer_worker_rejections_total{code="unknown_fence"} 0',
      'durable_timer_worker_sweep_actions_total{action="set_aside"} 0',
      'durable_timer_worker_sweeps_total{result="failed"} 0',
      'durable_timer_worker_admission_changes_total{to="closed"} 0',
    ]) expect(lines).toContain(series);
  });

  test("what the loops report is served in base units", async () => {
    const { metrics, value } = openWorker();
    metrics.taken("start", { count: 3, oldestAgeMs: ms(1_500) });
    metrics.settled("start", "accepted", 2);
    metrics.settled("start", "accepted", 1);
    metrics.rejected("start_conflict", 1);
    metrics.resumed(ms(4));
    metrics.resumed(ms(-1));
    metrics.batchFinished("wake", ms(20));
    metrics.wakesHeld(7);
    metrics.unreadableMet(1);
    expect(await value('durable_timer_worker_messages_taken_total{loop="start"}')).toBe(3);
    expect(await value('durable_timer_worker_oldest_message_age_seconds{loop="start"}')).toBe(1.5);
    expect(await value('durable_timer_worker_deliveries_total{loop="start",outcome="accepted"}')).toBe(3);
    expect(await value('durable_timer_worker_rejections_total{code="start_conflict"}')).toBe(1);
    expect(await value('durable_timer_worker_lateness_seconds_bucket{le="0.005"}')).toBe(2);
    expect(await value("durable_timer_worker_lateness_seconds_sum")).toBe(0.004);
    expect(await value('durable_timer_worker_batch_duration_seconds_sum{loop="wake"}')).toBe(0.02);
    expect(await value("durable_timer_worker_wakes_held")).toBe(7);
    expect(await value("durable_timer_worker_unreadable_met_total")).toBe(1);
  });

  test("admission counts changes, not decisions, and the first one is none", async () => {
    const { metrics, value } = openWorker();
    const closed = { isOpen: false, reason: "state_full" } as const;
    const open = { isOpen: true, reason: "open" } as const;
    for (const state of [open, open, closed, closed, open]) metrics.admission(state);
    expect(await value('durable_timer_worker_admission_changes_total{to="closed"}')).toBe(1);
    expect(await value('durable_timer_worker_admission_changes_total{to="open"}')).toBe(1);
    expect(await value("durable_timer_worker_admission_open")).toBe(1);
    expect(await value('durable_timer_worker_admission_reason{reason="open"}')).toBe(1);
    expect(await value('durable_timer_worker_admission_reason{reason="state_full"}')).toBe(0);
    metrics.usage(42);
    expect(await value("durable_timer_worker_capacity_used_ratio")).toBe(0.42);
    metrics.usage(undefined);
    expect(await value("durable_timer_worker_capacity_used_ratio")).toBeNaN();
  });

  test("a sweep's counts are served, and its duration only when it saw everything", async () => {
    const { metrics, value } = openWorker();
    metrics.swept("held_by_another", ms(0));
    metrics.swept("completed", ms(2_000));
    metrics.sweepActed("armed", 4);
    metrics.timers({ waiting: 10, elapsed: 3, unanswered: 3, overdue: 1, unreadable: 2, oldestOverdueMs: ms(5_000), oldestElapsedMs: ms(60_000) });
    expect(await value('durable_timer_worker_sweeps_total{result="held_by_another"}')).toBe(1);
    expect(await value("durable_timer_worker_sweep_duration_seconds_count")).toBe(1);
    expect(await value('durable_timer_worker_sweep_actions_total{action="armed"}')).toBe(4);
    expect(await value('durable_timer_worker_timers{phase="waiting"}')).toBe(10);
    expect(await value('durable_timer_worker_timers{phase="elapsed"}')).toBe(3);
    expect(await value("durable_timer_worker_timers_overdue")).toBe(1);
    expect(await value("durable_timer_worker_timers_unanswered")).toBe(3);
    expect(await value("durable_timer_worker_records_unreadable")).toBe(2);
    expect(await value("durable_timer_worker_oldest_overdue_age_seconds")).toBe(5);
    expect(await value("durable_timer_worker_oldest_elapsed_age_seconds")).toBe(60);
  });

  test("the connection is served", async () => {
    const { metrics, value } = openWorker();
    metrics.brokerConnected(true);
    metrics.brokerEpoch(3);
    expect(await value("durable_timer_worker_broker_connected")).toBe(1);
    expect(await value("durable_timer_worker_broker_epoch")).toBe(3);
  });
});

test("a worker's collections are served by result and action, with the age of what is behind", async () => {
  const { metrics, value } = openWorker();
  metrics.collectionActed("collected", 3);
  metrics.collectionEnded("completed", ms(1_500));
  metrics.collectionEnded("held_by_another", ms(5));
  metrics.collectionBehind(ms(90_000));
  expect(await value('durable_timer_worker_collection_actions_total{action="collected"}')).toBe(3);
  expect(await value('durable_timer_worker_collection_actions_total{action="orphan_collected"}')).toBe(0);
  expect(await value('durable_timer_worker_collections_total{result="held_by_another"}')).toBe(1);
  expect(await value("durable_timer_worker_collection_duration_seconds_sum")).toBe(1.5);
  expect(await value("durable_timer_worker_collection_overdue_age_seconds")).toBe(90);
});

describe("the operator's metrics", () => {
  test("passes, actions, queue, leadership and resources are served", async () => {
    const { metrics, value } = openOperator();
    metrics.reconciled("changed", ms(250));
    metrics.acted("CreateStream", "done");
    metrics.queueDepth(2);
    metrics.leading(true);
    metrics.resourcesReady({ ready: 4, notReady: 1 });
    expect(await value('durable_timer_operator_reconciles_total{result="changed"}')).toBe(1);
    expect(await value("durable_timer_operator_reconcile_duration_seconds_sum")).toBe(0.25);
    expect(await value('durable_timer_operator_actions_total{action="CreateStream",outcome="done"}')).toBe(1);
    expect(await value("durable_timer_operator_queue_depth")).toBe(2);
    expect(await value("durable_timer_operator_leading")).toBe(1);
    expect(await value('durable_timer_operator_resources{ready="false"}')).toBe(1);
  });

  test("a flood of action kinds becomes one series", async () => {
    const { metrics, value, text } = openOperator();
    for (let index = 0; index < actionKindCountMax + 10; index += 1) metrics.acted(`Kind${String(index)}`, "done");
    expect(await value('durable_timer_operator_actions_total{action="other",outcome="done"}')).toBe(10);
    const series = (await text()).split("\n").filter((line) => line.startsWith("durable_timer_operator_actions_total{"));
    expect(series).toHaveLength(actionKindCountMax + 1);
  });
});

test("a process serves Node's own metrics beside ours", async () => {
  const { text } = openWorker();
  expect(await text()).toMatch(/^nodejs_eventloop_lag_seconds /m);
});
