/**
 * Judges streams and consumers: what is missing, what differs, what must not be touched (gate TopologyReady).
 *
 * 1. Creation follows one order: STATE first, which is the claim; COMMANDS last, which is the door for publishers.
 * 2. Only what is missing is created, and only what differs on fields of ours is updated. No difference, no action.
 * 3. Nothing is deleted or made anew to change it (I14). What a server cannot change in place is reported.
 * 4. The gate is open when a look at the broker found everything in place; having sent a write proves nothing.
 */
import { brokerLossGraceMs, lookAgainMs } from "../../base/limits.ts";
import type { DurationMs } from "../../base/units.ts";
import type { WantedCondition } from "../../resource/conditions.ts";
import type { DurableTimerStatus } from "../../resource/durable-timer.ts";
import { creationOrder, desiredTopology } from "../../topology/desired.ts";
import type { StreamSpec, Topology } from "../../topology/layout.ts";
import type { Action } from "./action.ts";
import type { ReachedBroker } from "./broker.ts";
import { judgeClaims, ownOwnerId } from "./claims.ts";
import type { Claim } from "./claims.ts";
import { compareConsumer, compareStream } from "./differences.ts";
import type { Compared } from "./differences.ts";
import { streamEntries } from "./entries.ts";
import { failureMessage, isPassing, shownFailure } from "./failures.ts";
import { findLosses } from "./losses.ts";
import type { Incident, Loss, StreamEntry } from "./losses.ts";
import { migrationOf } from "./migration.ts";
import type { Migration, MigrationStatus } from "./migration.ts";
import { findMove } from "./moves.ts";
import type { Move } from "./moves.ts";
import type { FailureFact, Looked, Observed, StreamRole } from "./observed.ts";
import { creationPause } from "./pauses.ts";
import { carriedOver, cause, want, wasTrue } from "./verdict.ts";
import type { Cause, Verdict } from "./verdict.ts";

/** The gate TopologyReady, and what the status remembers of the streams. */
export type TopologyVerdict = Verdict & {
  /** Whether the streams are ours to act on; `unread` when that could not be looked at. */
  readonly standing: "ours" | "foreign" | "unread";
  readonly entries: readonly StreamEntry[];
  readonly incidents: readonly Incident[];
  /** The step of a migration that is under way. */
  readonly migration?: MigrationStatus;
  /** Something was lost and nobody has accepted it yet. */
  readonly isIncidentOpen: boolean;
  /** The connection leads elsewhere than the status says, and the streams of the status are not there. */
  readonly isMoved: boolean;
  /** Streams of the same life with another creation time: a native restore. */
  readonly restored: readonly string[];
};

/** Judges what a usable broker holds for this resource. */
export function judgeTopology(observed: Observed, broker: ReachedBroker): TopologyVerdict {
  const { status } = observed.resource;
  const kept = { entries: status?.topology?.streams ?? [], incidents: status?.incidents ?? [], isIncidentOpen: false, isMoved: false, restored: [] };
  const unread = unreadFailure(broker);
  if (unread !== undefined) return { ...kept, standing: "unread", ...unreadable(observed, unread) };
  const claims = judgeClaims(observed, broker);
  if (claims.kind === "refused") return { ...kept, standing: "foreign", ...stalled(claims.stall) };
  return judgeClaimed({ observed, broker, claims: claims.claims });
}

type Scene = { readonly observed: Observed; readonly broker: ReachedBroker; readonly claims: ReadonlyMap<StreamRole, Claim> };

function judgeClaimed(scene: Scene): TopologyVerdict {
  const topology = topologyOf(scene);
  const move = findMove({ ...scene, topology });
  if (move?.isAcknowledged === false) return judgeMove(scene, move);
  const isMoved = move !== undefined;
  const losses = findLosses({ ...scene, topology, isMoved });
  const open = losses.filter(({ isAcknowledged }) => !isAcknowledged);
  const facts = {
    standing: "ours" as const, ...streamEntries({ ...scene, topology, losses }), incidents: shownIncidents(losses), isIncidentOpen: open.length > 0, isMoved,
  };
  if (open.length > 0) return { ...facts, ...stalled(cause("TopologyLost", open.map(({ incident }) => incident.message).join(" "))) };
  const migration = migrationOf({ ...scene, topology });
  const compared = compareAll(scene, topology, migration);
  return { ...facts, ...concluded(scene, compared), ...(migration === undefined ? {} : { migration: migration.status }) };
}

/** What is there is not ours to use until a person says so, whosever it is. */
function judgeMove({ observed }: Scene, { incident }: Move): TopologyVerdict {
  const entries = observed.resource.status?.topology?.streams ?? [];
  const kept = { entries, incidents: [incident], isIncidentOpen: true, isMoved: true, restored: [] };
  return { ...kept, standing: "foreign", ...stalled(cause("BrokerChanged", incident.message)) };
}

/** An emptied stream stays empty for a while after the acknowledgement, and its incident is the memory of its id. */
function shownIncidents(losses: readonly Loss[]): readonly Incident[] {
  return losses.filter(({ isAcknowledged, incident }) => !isAcknowledged || incident.id.startsWith("emptied-")).map(({ incident }) => incident);
}

/** The streams and consumers that are wanted, each in the life that it has. */
export function topologyOf({ observed, claims }: Pick<Scene, "observed" | "claims">): Topology {
  const { resource, freshIncarnation } = observed;
  const of = (role: StreamRole): string => claims.get(role)?.stamp?.incarnation || freshIncarnation;
  const incarnations = {
    state: of("state"), snapshots: of("snapshots"), terminals: of("terminals"), schedules: of("schedules"),
    resumes: of("resumes"), feedback: of("feedback"), commands: of("commands"),
  };
  return desiredTopology({ spec: resource.spec, owner: { id: ownOwnerId(observed), uid: resource.uid }, incarnations });
}

/** A stream that migrates is not compared: it is to become another one, after everything else is as it should be. */
function compareAll(scene: Scene, topology: Topology, migration: Migration | undefined): readonly Compared[] {
  const { observed, broker, claims } = scene;
  const order = creationOrder(topology).filter((wanted) => migration === undefined || (wanted.kind === "stream" ? wanted.role : wanted.streamRole) !== "schedules");
  const compared = order.flatMap((wanted): readonly Compared[] => {
    if (wanted.kind === "stream") return [compareStream(observed, wanted, claims.get(wanted.role)), ...ownerKey(scene, wanted)];
    const pausedUntilMs = creationPause(wanted.role, observed, broker.brokerTimeMs);
    return [compareConsumer(observed, wanted, { looked: broker.consumers[wanted.role], pausedUntilMs })];
  });
  return migration === undefined ? compared : [...compared, migration.compared];
}

/** The owner's key is what tells an emptied STATE from one that never held a timer. */
function ownerKey({ observed, broker, claims }: Scene, { role, name }: StreamSpec): readonly Compared[] {
  if (role !== "state") return [];
  const isThere = claims.has("state") && broker.ownerKey.kind === "found";
  if (isThere) return [];
  const action: Action = { kind: "WriteOwnerKey", text: ownOwnerId(observed), because: `it tells whether ${name} was emptied` };
  return [{ actions: [action], differences: [], isMissing: true }];
}

function concluded(scene: Scene, compared: readonly Compared[]): Verdict {
  const { status } = scene.observed.resource;
  const actions = compared.flatMap((one) => one.actions);
  const isDoubted = Object.values(scene.observed.rewinds ?? {}).some(({ isConfirmed }) => !isConfirmed);
  const again = isDoubted ? { requeueAfterMs: lookAgainMs } : {};
  const stall = immutableStall(compared);
  const inSync = want("InSync", ...syncOf(compared, stall));
  if (stall !== undefined) return { wanted: [want("TopologyReady", "False", stall), inSync], actions, stall, ...again };
  const under = compared.find((one) => one.progress !== undefined)?.progress;
  if (under !== undefined) return underWay(status, { actions, inSync, ...under });
  if (actions.length === 0) return { wanted: [want("TopologyReady", "True", cause("Provisioned")), inSync], actions, ...again };
  const progress = cause("Provisioning", "Streams and consumers are being brought to what the spec says.");
  // A repair in place takes one pass; the timers go on meanwhile, so that nothing flips for it.
  const isRepair = wasTrue(status, "TopologyReady") && compared.every(({ isMissing }) => !isMissing);
  const gate = want("TopologyReady", isRepair ? "True" : "False", isRepair ? cause("Provisioned") : progress);
  return { wanted: [gate, inSync], actions, progress };
}

/** The timers go on meanwhile: nothing flips for it. */
function underWay(
  status: DurableTimerStatus | undefined,
  { actions, inSync, because, requeueAfterMs }: { readonly actions: readonly Action[]; readonly inSync: WantedCondition; readonly because: Cause; readonly requeueAfterMs: DurationMs },
): Verdict {
  const gate = wasTrue(status, "TopologyReady") ? want("TopologyReady", "True", cause("Provisioned")) : want("TopologyReady", "False", because);
  return { wanted: [gate, inSync], actions, progress: because, requeueAfterMs };
}

function syncOf(compared: readonly Compared[], stall: Cause | undefined): [status: "True" | "False", because: Cause] {
  const differences = compared.flatMap((one) => one.differences);
  if (stall !== undefined) return ["False", cause("DriftIgnored", differences.join(", "))];
  if (differences.length > 0) return ["False", cause("Drifted", differences.join(", "))];
  return compared.some(({ isMissing }) => isMissing) ? ["False", cause("Provisioning")] : ["True", cause("InSync")];
}

function immutableStall(compared: readonly Compared[]): Cause | undefined {
  const causes = compared.flatMap(({ stall }) => (stall === undefined ? [] : [stall]));
  const [first] = causes;
  return first === undefined ? undefined : cause(first.reason, causes.map(({ message }) => message).join(" "));
}

/** A stream or consumer that could not be looked at; a question that was denied comes before one without an answer. */
export function unreadFailure(broker: ReachedBroker): FailureFact | undefined {
  const looks: readonly Looked<unknown>[] = [...Object.values(broker.streams), ...Object.values(broker.consumers), broker.ownerKey, broker.stateRecord];
  const failures = looks.flatMap((looked) => (looked.kind === "failed" ? [looked.failure] : []));
  return failures.find((failure) => !isPassing(failure)) ?? failures[0];
}

/** Without the whole picture nothing is created: what did not answer may well be there. */
function unreadable(observed: Observed, failure: FailureFact): Verdict {
  if (isPassing(failure)) {
    const text = failureMessage(failure, "");
    const rest = { actions: [], progress: cause("ProgressingWithRetry", text), requeueAfterMs: lookAgainMs };
    if (isHeldUnread(observed)) return { wanted: carriedOver(observed.resource.status, ["TopologyReady", "InSync"]), ...rest };
    return { wanted: [want("TopologyReady", "Unknown", cause("NotObserved", text)), want("InSync", "Unknown", cause("NotObserved"))], ...rest };
  }
  const { type, reason, remedy } = shownFailure(failure.code, "TopologyReady");
  const stall = cause(reason, failureMessage(failure, remedy));
  if (type === "TopologyReady") return stalled(stall);
  // The same failure is shown where a write would have met it.
  const behind = (["TopologyReady", "InSync"] as const).map((each) => want(each, "Unknown", cause("WaitingForBroker")));
  return { wanted: [want(type, "False", stall), ...behind], actions: [], stall };
}

/** True while what was not told this time still stands as it was. */
export function isHeldUnread({ unreadForMs = 0 as DurationMs }: Observed): boolean {
  return unreadForMs < brokerLossGraceMs;
}

function stalled(stall: Cause): Verdict {
  return { wanted: [want("TopologyReady", "False", stall), want("InSync", "Unknown", cause("NotObserved"))], actions: [], stall };
}
