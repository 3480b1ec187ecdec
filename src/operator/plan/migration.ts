/**
 * Moves SCHEDULES from one replica, where it is written asynchronously, to several, where no server allows that: the stream
 * has to be made anew. It is derived from STATE, and the workers' sweep arms again what slipped in between.
 *
 * 1. It begins once every other stream has the wanted replicas and all of them are well: a server that is missing shows on
 *    a stream that stays, and SCHEDULES is away only for as long as two requests take.
 * 2. Purging: nothing new fires. Draining: the wakes that have fired are waited for, but not for ever. Recreating: purge,
 *    delete and create in one go.
 * 3. Each step may be done twice, and may be the first one that a new operator sees: what the status says of it only makes
 *    it shorter. A stream that is missing already is made by the ordinary comparison, in its new form.
 */
import { lookAgainMs, migrationDrainMsMax } from "../../base/limits.ts";
import { kubernetesTime } from "../../resource/conditions.ts";
import type { DurableTimerStatus } from "../../resource/durable-timer.ts";
import { scheduleFilter } from "../../topology/desired.ts";
import type { StreamSpec, Topology } from "../../topology/layout.ts";
import { stampKeys } from "../../topology/stamp.ts";
import type { Action } from "./action.ts";
import type { ReachedBroker } from "./broker.ts";
import { judgeReplicas } from "./capacity.ts";
import { ownOwnerId } from "./claims.ts";
import type { Claim } from "./claims.ts";
import type { Compared } from "./differences.ts";
import type { Observed, StreamRole } from "./observed.ts";
import { cause } from "./verdict.ts";

/** What the status says of a migration that is under way. */
export type MigrationStatus = NonNullable<DurableTimerStatus["migration"]>;

/** The next step of a migration. */
export type Migration = { readonly status: MigrationStatus; readonly compared: Compared };

type Scene = {
  readonly observed: Observed;
  readonly broker: ReachedBroker;
  readonly claims: ReadonlyMap<StreamRole, Claim>;
  readonly topology: Topology;
};

/** The step that is due; undefined when SCHEDULES can be brought in place to what is wanted, or is not there. */
export function migrationOf(scene: Scene): Migration | undefined {
  const wanted = scene.topology.streams.find(({ role }) => role === "schedules");
  const claim = scene.claims.get("schedules");
  if (wanted === undefined || claim === undefined || !mustMove(wanted, claim)) return undefined;
  const status = nextStep(scene, { from: replicasOf(claim.facts.config), to: replicasOf(wanted.config) });
  const actions = actionsOf(scene, { step: status.step, wanted, claim });
  const progress = { because: progressOf(status), requeueAfterMs: lookAgainMs };
  return { status, compared: { actions, differences: [`${wanted.name}.num_replicas`], isMissing: false, progress } };
}

function nextStep(scene: Scene, { from, to }: { readonly from: number; readonly to: number }): MigrationStatus {
  const had = scene.observed.resource.status?.migration;
  const before = had?.kind === "SchedulesReplicas" && had.to === to ? had : undefined;
  const step = stepOf(scene, before);
  const since = before?.step === step ? before.since : kubernetesTime(scene.observed.nowMs);
  return { kind: "SchedulesReplicas", from, to, step, since };
}

type Step = "Waiting" | "Purging" | "Draining" | "Recreating";

/** What is only being adopted is first made ours. */
function mustMove(wanted: StreamSpec, { adoptedFrom, facts }: Claim): boolean {
  return adoptedFrom === undefined && replicasOf(wanted.config) > 1 && facts.config["persist_mode"] === "async";
}

function stepOf(scene: Scene, before: MigrationStatus | undefined): Step {
  if (!areOthersReady(scene)) return "Waiting";
  if (before === undefined || before.step === "Waiting") return "Purging";
  if (before.step === "Purging") return "Draining";
  return before.step === "Recreating" || isDrained(scene, before) ? "Recreating" : "Draining";
}

function areOthersReady({ broker, claims, topology }: Scene): boolean {
  const others = topology.streams.filter(({ role }) => role !== "schedules");
  const haveThem = others.every(({ role, config }) => replicasOf(claims.get(role)?.facts.config ?? {}) === replicasOf(config));
  return haveThem && judgeReplicas(broker).status === "True";
}

/** Wakes that nobody acknowledges must not hold the migration up: the sweep knows what they owe. */
function isDrained({ observed, broker }: Scene, { since }: MigrationStatus): boolean {
  const { wake } = broker.consumers;
  const isEmpty = wake.kind === "absent" || (wake.kind === "found" && wake.value.pending + wake.value.ackPending === 0);
  return isEmpty || observed.nowMs - Date.parse(since) >= migrationDrainMsMax;
}

function actionsOf({ observed, topology }: Scene, { step, wanted, claim }: { readonly step: Step; readonly wanted: StreamSpec; readonly claim: Claim }): readonly Action[] {
  const { name, role } = wanted;
  const because = "SCHEDULES has to be made anew to be replicated";
  const ownerId = ownOwnerId(observed);
  const purge: Action = { kind: "PurgeStream", role, stream: name, subject: scheduleFilter, ownerId, because };
  if (step === "Purging") return [purge];
  if (step !== "Recreating") return [];
  const incarnation = claim.stamp?.incarnation ?? "";
  const metadata = { ...(wanted.config["metadata"] as Readonly<Record<string, string>>), [stampKeys.incarnation]: observed.freshIncarnation };
  const consumers = topology.consumers.filter(({ streamRole }) => streamRole === role);
  return [
    purge,
    { kind: "DeleteStream", role, stream: name, ownerId, incarnation, isForced: true, because },
    { kind: "CreateStream", role, config: { ...wanted.config, metadata }, because },
    ...consumers.map((one): Action => ({ kind: "CreateConsumer", role: one.role, stream: one.stream, config: one.config, because })),
  ];
}

function progressOf({ from, to, step }: MigrationStatus): ReturnType<typeof cause> {
  const text = `Schedules are moving from ${String(from)} replica to ${String(to)}`;
  return cause("Migrating", step === "Waiting" ? `${text}, once every other stream has them.` : `${text}; timers go on.`);
}

function replicasOf(config: Readonly<Record<string, unknown>>): number {
  return Number(config["num_replicas"] ?? 1);
}
