/**
 * How full things are, coarsely: AdmissionOpen, CapacityOK, ReplicasHealthy and the numbers beside them. None of these
 * closes a gate: a full disk must not fail every deployment tool.
 *
 * 1. Numbers move in steps and stay while they are near the last one, so that an idle system writes no status.
 * 2. Both limits have hysteresis: closed at one percentage, open again only below the lower one.
 * 3. Whether a start is really taken is decided by each worker, from fresher numbers; this is the view from outside.
 */
import { findCondition } from "../../resource/conditions.ts";
import type { ConditionReason, ConditionType, WantedCondition } from "../../resource/conditions.ts";
import type { DurableTimerSpec, DurableTimerStatus } from "../../resource/durable-timer.ts";
import type { ReachedBroker } from "./broker.ts";
import type { Observed, StreamFacts, StreamRole } from "./observed.ts";
import { cause, want } from "./verdict.ts";
import type { Cause } from "./verdict.ts";

/** The part of the status that says how full things are. */
export type CapacityStatus = NonNullable<DurableTimerStatus["capacity"]>;

/** What is judged about space and replicas. */
export type CapacityVerdict = { readonly wanted: readonly WantedCondition[]; readonly capacity: CapacityStatus };

/** `held` is why starts are held back whatever the space. */
export function judgeCapacity(observed: Observed, broker: ReachedBroker, held: Cause | undefined): CapacityVerdict {
  const { spec, status } = observed.resource;
  const account = accountUse(broker);
  const live = fullest(streamUses(broker, liveRoles), account);
  const any = fullest(streamUses(broker, limitedRoles), account);
  const isComplete = Object.values(broker.streams).every((looked) => looked.kind === "found");
  const admission = held === undefined ? judgeAdmission(live, spec, status) : want("AdmissionOpen", "False", held);
  return {
    wanted: [...(isComplete || held !== undefined ? [admission] : []), ...(isComplete ? [judgeSpace(any, spec, status)] : []), judgeReplicas(broker)],
    capacity: capacityStatus(status?.capacity, streamUses(broker, limitedRoles), account),
  };
}

/** `percent` in steps; `had` stays while it is within a step of the truth. */
export function coarsePercent(percent: number, had: number | undefined): number {
  const isNear = had !== undefined && percent > had - 1 && percent < had + percentStep + 1;
  return isNear ? had : Math.floor(percent / percentStep) * percentStep;
}

const percentStep = 5;

/** How full one stream, or the account, is. */
type Use = { readonly name: string; readonly percent: number };

/** Streams in which a live timer takes space until it ends. */
const liveRoles: readonly StreamRole[] = ["state", "snapshots", "terminals"];
const limitedRoles: readonly StreamRole[] = [...liveRoles, "resumes", "feedback", "commands"];

function streamUses(broker: ReachedBroker, roles: readonly StreamRole[]): readonly Use[] {
  return roles.flatMap((role) => {
    const looked = broker.streams[role];
    const limitBytes = looked.kind === "found" ? Number(looked.value.config["max_bytes"] ?? -1) : -1;
    return looked.kind === "found" && limitBytes > 0 ? [{ name: looked.value.name, percent: (100 * looked.value.bytes) / limitBytes }] : [];
  });
}

function accountUse({ facts }: ReachedBroker): Use | undefined {
  if (facts.storageBytesMax === undefined || facts.storageBytesMax <= 0) return undefined;
  return { name: "the account", percent: (100 * facts.storageBytes) / facts.storageBytesMax };
}

function fullest(uses: readonly Use[], account: Use | undefined): Use | undefined {
  const all = account === undefined ? uses : [...uses, account];
  return all.reduce<Use | undefined>((worst, use) => (worst === undefined || use.percent > worst.percent ? use : worst), undefined);
}

function judgeAdmission(live: Use | undefined, spec: DurableTimerSpec, status: DurableTimerStatus | undefined): WantedCondition {
  const isClosed = isAboveWithHysteresis(live, spec, hadReason(status, "AdmissionOpen") === "ClosedByCapacity");
  if (!isClosed) return want("AdmissionOpen", "True", cause("Open"));
  const message = `${capitalised(live?.name ?? "a stream")} is above ${String(spec.admission.closePercent)} %: starts wait in their stream.`;
  return want("AdmissionOpen", "False", cause("ClosedByCapacity", `${message} Raise its size, or remove what it keeps.`));
}

function judgeSpace(worst: Use | undefined, spec: DurableTimerSpec, status: DurableTimerStatus | undefined): WantedCondition {
  const isAbove = isAboveWithHysteresis(worst, spec, hadReason(status, "CapacityOK") === "AboveSoftLimit");
  if (!isAbove) return want("CapacityOK", "True", cause("BelowSoftLimit"));
  const message = `${capitalised(worst?.name ?? "a stream")} is above ${String(spec.admission.closePercent)} % of its limit.`;
  return want("CapacityOK", "False", cause("AboveSoftLimit", message));
}

function isAboveWithHysteresis(use: Use | undefined, { admission }: DurableTimerSpec, wasAbove: boolean): boolean {
  return use !== undefined && use.percent >= (wasAbove ? admission.reopenPercent : admission.closePercent);
}

function hadReason(status: DurableTimerStatus | undefined, type: ConditionType): string | undefined {
  return findCondition(status?.conditions ?? [], type)?.reason;
}

function capitalised(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function capacityStatus(had: CapacityStatus | undefined, streams: readonly Use[], account: Use | undefined): CapacityStatus {
  const worst = worstStream(streams, had?.worstStream);
  return {
    ...(worst === undefined ? {} : { worstStream: worst.name, worstPercent: coarsePercent(worst.percent, had?.worstStream === worst.name ? had.worstPercent : undefined) }),
    ...(account === undefined ? {} : { accountPercent: coarsePercent(account.percent, had?.accountPercent) }),
  };
}

/** The last worst one stays until another is clearly worse, so that two equally full streams do not take turns. */
function worstStream(streams: readonly Use[], had: string | undefined): Use | undefined {
  const worst = fullest(streams, undefined);
  const last = streams.find(({ name }) => name === had);
  return worst !== undefined && last !== undefined && worst.percent < last.percent + percentStep ? last : worst;
}

/** Whether every replica that was told of is well. */
export function judgeReplicas(broker: ReachedBroker): WantedCondition {
  const streams = Object.values(broker.streams).flatMap((looked) => (looked.kind === "found" ? [looked.value] : []));
  const silent = Object.values(broker.streams).some((looked) => looked.kind === "failed");
  const unhealthy = streams.filter((stream) => replicaFault(stream) !== undefined);
  const [worst] = faultOrder.filter((reason) => unhealthy.some((stream) => replicaFault(stream) === reason));
  if (worst !== undefined) {
    const names = unhealthy.filter((stream) => replicaFault(stream) === worst).map(({ name }) => name);
    return want("ReplicasHealthy", "False", cause(worst, `${names.sort().join(", ")}.`));
  }
  if (silent || streams.length === 0) return want("ReplicasHealthy", "Unknown", cause("NotObserved"));
  const isSingle = streams.every(({ config }) => Number(config["num_replicas"] ?? 1) === 1);
  return want("ReplicasHealthy", "True", cause(isSingle ? "SingleReplica" : "AllCurrent"));
}

const faultOrder: readonly ConditionReason[] = ["NoLeader", "ReplicaOffline", "ReplicasBehind"];

function replicaFault({ config, leader, replicas }: StreamFacts): ConditionReason | undefined {
  if (Number(config["num_replicas"] ?? 1) <= 1) return undefined;
  if (leader === undefined) return "NoLeader";
  if (replicas.some(({ isOffline }) => isOffline)) return "ReplicaOffline";
  return replicas.some(({ isCurrent }) => !isCurrent) ? "ReplicasBehind" : undefined;
}
