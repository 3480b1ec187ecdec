/**
 * Composes the status: conditions from the verdicts, and the parts that were seen. A part that was not seen this time
 * stays as it was; the status is a memory, and some of it (lives of streams, what was ever open) is needed.
 */
import type { EpochMs } from "../../base/units.ts";
import { nextConditions, unobservedConditions } from "../../resource/conditions.ts";
import type { WantedCondition } from "../../resource/conditions.ts";
import type { DurableTimerStatus } from "../../resource/durable-timer.ts";
import { layoutVersion } from "../../topology/layout.ts";
import { appliedValues } from "../../resource/rules.ts";
import type { ReachedBroker } from "./broker.ts";
import type { CapacityStatus } from "./capacity.ts";
import { ownOwnerId } from "./claims.ts";
import { concludedConditions } from "./conclude.ts";
import type { Incident, StreamEntry } from "./losses.ts";
import type { Observed, ObservedResource } from "./observed.ts";
import type { PlannedEvent } from "./transitions.ts";
import type { TimerCounts } from "./timer-counts.ts";
import { cause, want } from "./verdict.ts";
import type { Verdict } from "./verdict.ts";
import type { WorkersStatus } from "./workers.ts";

/** What was seen of each part; absent keeps what the status had. */
export type StatusParts = {
  readonly broker?: DurableTimerStatus["broker"];
  /** The streams carry our stamp, or will. */
  readonly isOwned?: boolean;
  readonly entries?: readonly StreamEntry[];
  readonly incidents?: readonly Incident[];
  readonly capacity?: CapacityStatus;
  readonly timers?: TimerCounts;
  readonly workers?: WorkersStatus | undefined;
  readonly resume?: DurableTimerStatus["resume"];
  /** The step that is under way, or that there is none. */
  readonly migration?: NonNullable<DurableTimerStatus["migration"]> | "none";
};

/** Everything that one look leads to. */
export type JudgedParts = Verdict &
  StatusParts & {
    /** Names of streams that a native backup brought back. */
    readonly restored: readonly string[];
    /** News that no condition tells. */
    readonly told?: readonly PlannedEvent[];
  };

/** The next status of an observed resource. */
export function nextStatus(observed: Observed, judged: Verdict & StatusParts & { readonly isPaused: boolean }): DurableTimerStatus {
  const { resource, nowMs } = observed;
  const { generation } = resource;
  const had = resource.status;
  const conditions = nextConditions(had?.conditions ?? [], concludedConditions(judged), { generation, nowMs });
  // A pause does nothing of what a step stands for.
  const isKept = judged.migration === undefined || judged.isPaused;
  const { migration: hadMigration, ...rest } = had ?? {};
  const migration = isKept ? hadMigration : judged.migration;
  const shown = migration === undefined || migration === "none" ? {} : { migration };
  return { ...rest, observedGeneration: generation, conditions, ...shown, ...seenParts(observed, judged) };
}

function seenParts(observed: Observed, judged: StatusParts): Partial<DurableTimerStatus> {
  const { broker, capacity, timers, workers, resume, entries = [], incidents } = judged;
  const { uid, spec, status } = observed.resource;
  const seen = {
    owner: judged.isOwned === true ? { id: ownOwnerId(observed), uid } : undefined,
    applied: judged.isOwned === true && status?.applied === undefined ? appliedValues(spec) : undefined,
    broker,
    topology: entries.length === 0 ? undefined : { layoutVersion, streams: entries },
    capacity,
    timers,
    workers,
    resume,
    incidents,
  };
  return Object.fromEntries(Object.entries(seen).filter(([, part]) => part !== undefined));
}

/** What a resource shows before anything was looked at: everything Unknown, and that its observation is under way. */
export function firstStatus(resource: Pick<ObservedResource, "generation" | "status">, nowMs: EpochMs): DurableTimerStatus {
  const wanted: readonly WantedCondition[] = [...unobservedConditions, want("Reconciling", "True", cause("NotObserved"))];
  const conditions = nextConditions([], wanted, { generation: resource.generation, nowMs });
  return { ...resource.status, observedGeneration: resource.generation, conditions };
}

/** What a resource shows whose spec cannot be read. What runs for it goes on. */
export function invalidStatus(resource: Pick<ObservedResource, "generation" | "status">, problems: readonly string[], nowMs: EpochMs): DurableTimerStatus {
  const because = cause("SpecInvalid", [...problems].sort().join(" "));
  const had = resource.status?.conditions ?? [];
  const kept = had.filter(({ type }) => type !== "Reconciling") as readonly WantedCondition[];
  const wanted = [...unobservedConditions, ...kept, want("Ready", "False", because), want("Stalled", "True", because)];
  return { ...resource.status, observedGeneration: resource.generation, conditions: nextConditions(had, wanted, { generation: resource.generation, nowMs }) };
}

/** What the status says of the broker. */
export function brokerStatus({ facts }: ReachedBroker): NonNullable<DurableTimerStatus["broker"]> {
  const { accountName, clusterName, version, apiLevel } = facts;
  return { ...(accountName === undefined ? {} : { accountName }), ...(clusterName === undefined ? {} : { clusterName }), version, apiLevel };
}

/** True when writing `next` over `had` would change nothing. */
export function isSameStatus(had: DurableTimerStatus | undefined, next: DurableTimerStatus): boolean {
  return had !== undefined && isSame(had, next);
}

function isSame(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  const [a, b] = [left as Readonly<Record<string, unknown>>, right as Readonly<Record<string, unknown>>];
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return Array.isArray(left) === Array.isArray(right) && [...keys].every((key) => isSame(a[key], b[key]));
}
