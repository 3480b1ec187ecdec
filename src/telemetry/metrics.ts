/**
 * Every metric of the product: its name, its help text, and the closed list of values of each label. It implements the
 * metrics ports of the worker and of the operator; docs/metrics.md explains the same names to people.
 *
 * 1. No label ever holds a timer, a subject, a flow or a text, so the number of series is known beforehand.
 * 2. Counters begin at zero for every label value: a rate over the first failure is a rate, not a gap.
 * 3. Base units only: seconds and ratios.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import { actionKindCountMax } from "../base/limits.ts";
import type { DurationMs } from "../base/units.ts";
import type { OperatorMetrics, ReconcileResult } from "../operator/ports.ts";
import type { AdmissionReason, CollectionAction, CollectionResult, DeliveryOutcome, RejectedCode, SweepAction, SweepResult, WorkerMetrics } from "../worker/metrics.ts";
import type { DataStream, SourceName } from "../worker/ports.ts";

/** What a process shows of itself. */
export type Exposition = { readonly contentType: string; text(): Promise<string> };

/** A registry of its own per process, with Node's own metrics in it. */
export function openRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** The registry in the form that the health endpoint serves. */
export function exposition(registry: Registry): Exposition {
  return { contentType: registry.contentType, text: () => registry.metrics() };
}

/** The worker's metrics, registered in `registry`; to be called once per registry. */
export function workerMetrics(registry: Registry): WorkerMetrics {
  return { ...loopMetrics(registry), ...admissionMetrics(registry), ...sweepMetrics(registry), ...collectionMetrics(registry), ...connectionMetrics(registry) };
}

/** The operator's metrics, registered in `registry`; to be called once per registry. */
export function operatorMetrics(registry: Registry): OperatorMetrics {
  const registers = [registry];
  const reconciles = new Counter({ name: "durable_timer_operator_reconciles_total", help: "Passes over one resource, by how they ended.", labelNames: ["result"], registers });
  const reconcileSeconds = new Histogram({ name: "durable_timer_operator_reconcile_duration_seconds", help: "Time of one pass over one resource.", buckets: passBuckets, registers });
  const actions = new Counter({ name: "durable_timer_operator_actions_total", help: "Actions of plans that were carried out, by kind and outcome.", labelNames: ["action", "outcome"], registers });
  const queue = new Gauge({ name: "durable_timer_operator_queue_depth", help: "Resources that wait for a pass.", registers });
  const leading = new Gauge({ name: "durable_timer_operator_leading", help: "1 while this process is the leader, else 0.", registers });
  const resources = new Gauge({ name: "durable_timer_operator_resources", help: "Resources by whether their Ready condition is true.", labelNames: ["ready"], registers });
  for (const result of keysOf(reconcileResults)) reconciles.inc({ result }, 0);
  const kinds = new Set<string>();
  return {
    reconciled: (result, durationMs) => {
      reconciles.inc({ result });
      reconcileSeconds.observe(seconds(durationMs));
    },
    acted: (action, outcome) => { actions.inc({ action: boundedKind(kinds, action), outcome }); },
    queueDepth: (count) => { queue.set(count); },
    leading: (isLeader) => { leading.set(Number(isLeader)); },
    resourcesReady: ({ ready, notReady }) => {
      resources.set({ ready: "true" }, ready);
      resources.set({ ready: "false" }, notReady);
    },
  };
}

type LoopMetrics = Pick<WorkerMetrics, "taken" | "settled" | "rejected" | "batchFinished" | "resumed" | "wakesHeld" | "unreadableMet">;

function loopMetrics(registry: Registry): LoopMetrics {
  const registers = [registry];
  const taken = new Counter({ name: "durable_timer_worker_messages_taken_total", help: "Messages taken from a stream, redeliveries included.", labelNames: ["loop"], registers });
  const oldestAge = new Gauge({ name: "durable_timer_worker_oldest_message_age_seconds", help: "Age of the oldest message when the last batch was taken.", labelNames: ["loop"], registers });
  const deliveries = new Counter({ name: "durable_timer_worker_deliveries_total", help: "Messages in hand, by how they ended.", labelNames: ["loop", "outcome"], registers });
  const rejections = new Counter({ name: "durable_timer_worker_rejections_total", help: "Commands rejected for good, by code.", labelNames: ["code"], registers });
  const batchSeconds = new Histogram({ name: "durable_timer_worker_batch_duration_seconds", help: "Time from beginning a batch until everything in it was decided and written.", labelNames: ["loop"], buckets: passBuckets, registers });
  const lateness = new Histogram({ name: "durable_timer_worker_lateness_seconds", help: "Time from a timer's due time until its resume was stored, on the broker's clock.", buckets: latenessBuckets, registers });
  const held = new Gauge({ name: "durable_timer_worker_wakes_held", help: "Wakes in hand that are not due yet.", registers });
  const unreadable = new Counter({ name: "durable_timer_worker_unreadable_met_total", help: "Times that a loop met a record which contradicts itself or cannot be read.", registers });
  for (const loop of keysOf(loops)) {
    taken.inc({ loop }, 0);
    for (const outcome of keysOf(deliveryOutcomes)) deliveries.inc({ loop, outcome }, 0);
  }
  for (const code of keysOf(rejectedCodes)) rejections.inc({ code }, 0);
  return {
    taken: (loop, { count, oldestAgeMs }) => {
      taken.inc({ loop }, count);
      if (oldestAgeMs !== undefined) oldestAge.set({ loop }, Math.max(0, seconds(oldestAgeMs)));
    },
    settled: (loop, outcome, count) => { deliveries.inc({ loop, outcome }, count); },
    rejected: (code, count) => { rejections.inc({ code }, count); },
    batchFinished: (loop, durationMs) => { batchSeconds.observe({ loop }, seconds(durationMs)); },
    resumed: (latenessMs) => { lateness.observe(Math.max(0, seconds(latenessMs))); },
    wakesHeld: (count) => { held.set(count); },
    unreadableMet: (count) => { unreadable.inc(count); },
  };
}

function admissionMetrics(registry: Registry): Pick<WorkerMetrics, "admission" | "usage" | "dataLost"> {
  const registers = [registry];
  const open = new Gauge({ name: "durable_timer_worker_admission_open", help: "1 while starts are taken, else 0.", registers });
  const reasons = new Gauge({ name: "durable_timer_worker_admission_reason", help: "1 for the present reason, 0 for all others.", labelNames: ["reason"], registers });
  const changes = new Counter({ name: "durable_timer_worker_admission_changes_total", help: "Times that admission closed or reopened.", labelNames: ["to"], registers });
  const used = new Gauge({ name: "durable_timer_worker_capacity_used_ratio", help: "Usage of the fullest stream or of the account, with head-room for live timers, as a share of its limit; NaN while unknown.", registers });
  const lost = new Gauge({ name: "durable_timer_worker_data_lost", help: "1 for a stream that has lost what it held, as this worker finds it, else 0.", labelNames: ["stream"], registers });
  for (const to of ["open", "closed"]) changes.inc({ to }, 0);
  for (const stream of keysOf(dataStreams)) lost.set({ stream }, 0);
  let wasOpen: boolean | undefined;
  return {
    admission: ({ isOpen, reason }) => {
      open.set(Number(isOpen));
      for (const one of keysOf(admissionReasons)) reasons.set({ reason: one }, Number(one === reason));
      if (wasOpen !== undefined && wasOpen !== isOpen) changes.inc({ to: isOpen ? "open" : "closed" });
      wasOpen = isOpen;
    },
    dataLost: (streams) => { for (const stream of keysOf(dataStreams)) lost.set({ stream }, Number(streams.includes(stream))); },
    usage: (percent) => { used.set(percent === undefined ? Number.NaN : percent / 100); },
  };
}

function sweepMetrics(registry: Registry): Pick<WorkerMetrics, "swept" | "sweepActed" | "timers"> {
  const registers = [registry];
  const sweeps = new Counter({ name: "durable_timer_worker_sweeps_total", help: "Sweeps that were wanted, by how they ended.", labelNames: ["result"], registers });
  const sweepSeconds = new Histogram({ name: "durable_timer_worker_sweep_duration_seconds", help: "Time of a sweep that saw all records.", buckets: sweepBuckets, registers });
  const actions = new Counter({ name: "durable_timer_worker_sweep_actions_total", help: "Records that a sweep found in need of something, by what it did.", labelNames: ["action"], registers });
  const timers = new Gauge({ name: "durable_timer_worker_timers", help: "Live timers as the last sweep counted them; the same on every worker, so take the maximum.", labelNames: ["phase"], registers });
  const overdue = new Gauge({ name: "durable_timer_worker_timers_overdue", help: "Timers that wait beyond due time and grace, as the last sweep counted them.", registers });
  const overdueAge = new Gauge({ name: "durable_timer_worker_oldest_overdue_age_seconds", help: "How long the most overdue timer has been due, at the last sweep; 0 without one.", registers });
  const elapsedAge = new Gauge({ name: "durable_timer_worker_oldest_elapsed_age_seconds", help: "How long the oldest elapsed timer has waited for feedback, at the last sweep; 0 without one.", registers });
  const unanswered = new Gauge({ name: "durable_timer_worker_timers_unanswered", help: "Elapsed timers without feedback for longer than spec.feedback has it, as the last sweep counted them.", registers });
  const unreadable = new Gauge({ name: "durable_timer_worker_records_unreadable", help: "Records that this version cannot read, as the last sweep counted them.", registers });
  for (const result of keysOf(sweepResults)) sweeps.inc({ result }, 0);
  for (const action of keysOf(sweepActions)) actions.inc({ action }, 0);
  return {
    swept: (result, durationMs) => {
      sweeps.inc({ result });
      if (result === "completed" || result === "incomplete") sweepSeconds.observe(seconds(durationMs));
    },
    sweepActed: (action, count) => { actions.inc({ action }, count); },
    timers: (counts) => {
      timers.set({ phase: "waiting" }, counts.waiting);
      timers.set({ phase: "elapsed" }, counts.elapsed);
      overdue.set(counts.overdue);
      overdueAge.set(seconds(counts.oldestOverdueMs));
      elapsedAge.set(seconds(counts.oldestElapsedMs));
      unanswered.set(counts.unanswered);
      unreadable.set(counts.unreadable);
    },
  };
}

function collectionMetrics(registry: Registry): Pick<WorkerMetrics, "collectionActed" | "collectionEnded" | "collectionBehind"> {
  const registers = [registry];
  const passes = new Counter({ name: "durable_timer_worker_collections_total", help: "Looks for ended timers to collect, by how they ended.", labelNames: ["result"], registers });
  const passSeconds = new Histogram({ name: "durable_timer_worker_collection_duration_seconds", help: "Time of a collection that came to its end.", buckets: sweepBuckets, registers });
  const actions = new Counter({ name: "durable_timer_worker_collection_actions_total", help: "Ended timers and leftover snapshots that were old enough, by what was done about them.", labelNames: ["action"], registers });
  const behind = new Gauge({ name: "durable_timer_worker_collection_overdue_age_seconds", help: "How long the oldest ended timer that is still kept should have been collected; 0 when none.", registers });
  for (const result of keysOf(collectionResults)) passes.inc({ result }, 0);
  for (const action of keysOf(collectionActions)) actions.inc({ action }, 0);
  return {
    collectionActed: (action, count) => { actions.inc({ action }, count); },
    collectionEnded: (result, durationMs) => {
      passes.inc({ result });
      if (result === "completed" || result === "incomplete") passSeconds.observe(seconds(durationMs));
    },
    collectionBehind: (overdueMs) => { behind.set(seconds(overdueMs)); },
  };
}

function connectionMetrics(registry: Registry): Pick<WorkerMetrics, "brokerConnected" | "brokerEpoch" | "sourceStalled" | "clockSkew"> {
  const registers = [registry];
  const stalls = new Counter({ name: "durable_timer_worker_source_stalls_total", help: "Times that a consumer held messages, delivered none although it was asked, and was asked anew.", labelNames: ["loop"], registers });
  const skew = new Gauge({ name: "durable_timer_worker_clock_skew_seconds", help: "How far the brokers' clocks are certainly apart from this machine's, positive when ahead; nothing is decided by this machine's clock.", registers });
  const leaderSkew = new Gauge({ name: "durable_timer_worker_leader_clock_skew_seconds", help: "How far the clocks of two servers that lead streams are certainly apart.", registers });
  for (const loop of keysOf(loops)) stalls.inc({ loop }, 0);
  const connected = new Gauge({ name: "durable_timer_worker_broker_connected", help: "1 while connected to the broker, else 0.", registers });
  const epoch = new Gauge({ name: "durable_timer_worker_broker_epoch", help: "Grows at each disconnect.", registers });
  return {
    brokerConnected: (isConnected) => { connected.set(Number(isConnected)); },
    brokerEpoch: (count) => { epoch.set(count); },
    sourceStalled: (loop) => { stalls.inc({ loop }); },
    clockSkew: ({ workerMs, leadersMs }) => {
      skew.set(seconds(workerMs));
      leaderSkew.set(seconds(leadersMs));
    },
  };
}

/** A kind of action under its own name while there are few, as the code's are; a flood of names becomes one. */
function boundedKind(known: Set<string>, kind: string): string {
  if (known.has(kind)) return kind;
  if (known.size >= actionKindCountMax) return "other";
  known.add(kind);
  return kind;
}

function seconds(duration: DurationMs): number {
  return duration / 1_000;
}

function keysOf<K extends string>(all: Readonly<Record<K, true>>): readonly K[] {
  return Object.keys(all) as K[];
}

// Label values as records, so that a new one which is missing here does not compile.

const loops: Readonly<Record<SourceName, true>> = { start: true, feedback: true, wake: true };

const deliveryOutcomes: Readonly<Record<DeliveryOutcome, true>> = {
  accepted: true, duplicate: true, rejected: true, malformed: true, ignored: true, held: true, handed_back: true,
};

const rejectedCodes: Readonly<Record<RejectedCode, true>> = {
  start_conflict: true, unknown_timer: true, not_elapsed: true, stale: true, unknown_fence: true, lineage_mismatch: true,
  timer_unreadable: true, context_missing: true, context_invalid: true, payload_hash_mismatch: true, payload_too_large: true, delay_too_long: true,
  retries_too_many: true, verb_unknown: true,
};

const admissionReasons: Readonly<Record<AdmissionReason, true>> = {
  open: true, usage_unknown: true, data_lost: true, state_full: true, snapshots_full: true, terminals_full: true, account_full: true,
};

const dataStreams: Readonly<Record<DataStream, true>> = { state: true, snapshots: true, terminals: true, resumes: true, feedback: true, commands: true };

const sweepResults: Readonly<Record<SweepResult, true>> = { completed: true, incomplete: true, interrupted: true, held_by_another: true, failed: true };

const sweepActions: Readonly<Record<SweepAction, true>> = {
  armed: true, rearmed: true, republished: true, resumed: true, timed_out: true, resumed_again: true, finished: true, removed: true, superseded: true, failed: true, set_aside: true,
};

const collectionResults: Readonly<Record<CollectionResult, true>> = { completed: true, incomplete: true, interrupted: true, held_by_another: true, failed: true };

const collectionActions: Readonly<Record<CollectionAction, true>> = {
  collected: true, orphan_collected: true, tombstone_finished: true, kept_live: true, kept_unreadable: true, superseded: true, failed: true,
};

const reconcileResults: Readonly<Record<ReconcileResult, true>> = { unchanged: true, changed: true, failed: true, gone: true };

const passBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** Milliseconds in normal running, hours after an outage. */
const latenessBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3_600, 36_000];
const sweepBuckets = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];
