/**
 * The plan: from one Observed value to an ordered list of actions, the status that describes what was observed, and when
 * to look again. Pure: the same value gives the same plan, here, in the CLI and in a test.
 *
 * 1. As desired means no actions. A plan never contains a write that would change nothing.
 * 2. The actions of a plan may be carried out up to any point; the next plan continues from what is then observed.
 * 3. No action deletes anything, unless the resource is being deleted and its policy is Delete (I14).
 * 4. The status describes what was observed, before the actions: a gate opens only when a look has proved it.
 * 5. A stop that the spec asks for comes first, then the workers' updates: a repair that fails holds up neither.
 */
import type { DurationMs } from "../../base/units.ts";
import { annotationNames } from "../../resource/names.ts";
import type { ConditionType, WantedCondition } from "../../resource/conditions.ts";
import type { Action } from "./action.ts";
import { judgeBroker } from "./broker.ts";
import type { BrokerVerdict, ReachedBroker } from "./broker.ts";
import { judgeCapacity, judgeReplicas } from "./capacity.ts";
import { finalizerChange, judgeDeletion } from "./deletion.ts";
import { failureMessage, isPassing, shownFailure } from "./failures.ts";
import type { FailureFact, Observed } from "./observed.ts";
import { judgeHeld, judgeWithoutBroker } from "./outage.ts";
import { judgeResume, judgeStartPause } from "./pauses.ts";
import { brokerStatus, nextStatus } from "./status.ts";
import type { JudgedParts, StatusParts } from "./status.ts";
import { timerCounts } from "./timer-counts.ts";
import { isHeldUnread, judgeTopology } from "./topology.ts";
import type { TopologyVerdict } from "./topology.ts";
import { restoredEvents, transitionEvents } from "./transitions.ts";
import type { PlannedEvent } from "./transitions.ts";
import type { DurableTimerStatus } from "../../resource/durable-timer.ts";
import { carriedOver, cause, firstCauses, want } from "./verdict.ts";
import type { Cause, Verdict } from "./verdict.ts";
import { judgeWorkers, standingFrom } from "./workers.ts";

/** What is to be done, and what is to be shown. */
export type Plan = {
  readonly actions: readonly Action[];
  /** What the resource shows if every action succeeds. */
  readonly status: DurableTimerStatus;
  /** For what turned since the last status; actions have events of their own, once they are done. */
  readonly events: readonly PlannedEvent[];
  /** Look again after this time even if nothing tells of a change. */
  readonly requeueAfterMs?: DurationMs;
};

/** What is to be done about what was observed. */
export function plan(observed: Observed): Plan {
  const judged = judge(observed);
  const status = nextStatus(observed, judged);
  const { requeueAfterMs } = judged;
  return {
    actions: actionsOf(observed, judged),
    status,
    events: [...transitionEvents(observed.resource.status, status), ...restoredEvents(judged.restored), ...(judged.told ?? [])],
    ...(requeueAfterMs === undefined ? {} : { requeueAfterMs }),
  };
}

/** A pause stops everything but a deletion: a paused resource that could not be deleted would hold up its whole namespace. */
function actionsOf(observed: Observed, { actions, isPaused }: Judged): readonly Action[] {
  if (observed.resource.isDeletionRequested) return actions;
  if (isPaused) return [];
  const hold = finalizerChange(observed);
  return hold === undefined ? actions : [hold];
}

/** An action that failed, as data. */
export type FailedAction = { readonly action: Action; readonly failure: FailureFact };

/** The plan's status and events when some of its actions failed. */
export function planAfterFailures(observed: Observed, failed: readonly FailedAction[]): Pick<Plan, "status" | "events"> {
  const judged = judge(observed);
  const { migration, ...rest } = judged;
  // A step that was not done is begun again.
  const isStuck = failed.some(({ action }) => action.kind === "PurgeStream");
  const status = nextStatus(observed, { ...rest, ...(migration === undefined || isStuck ? {} : { migration }), ...failuresVerdict(judged, failed) });
  return { status, events: [...transitionEvents(observed.resource.status, status), ...restoredEvents(judged.restored), ...(judged.told ?? [])] };
}

type Judged = JudgedParts & { readonly isPaused: boolean };

function judge(observed: Observed): Judged {
  const isPaused = observed.resource.annotations[annotationNames.paused] === "true";
  if (observed.resource.isDeletionRequested) return { ...judgeDeletion(observed), isPaused };
  return { ...judgeLiving(observed), isPaused };
}

function judgeLiving(observed: Observed): JudgedParts {
  const broker = judgeBroker(observed);
  switch (broker.kind) {
    case "usable":
      return judgeUsable(observed, broker, broker.broker);
    case "held":
      return judgeHeld(observed, broker);
    case "refused":
      return judgeWithoutBroker(observed, broker, cause("WaitingForBroker"));
    case "lost":
      return judgeWithoutBroker(observed, broker, broker.because);
  }
}

function judgeUsable(observed: Observed, verdict: BrokerVerdict, broker: ReachedBroker): JudgedParts {
  const topology = judgeTopology(observed, broker);
  const workers = judgeWorkers(observed, topology.standing === "foreign" ? "foreign" : standingFrom(topology.wanted));
  const before = [...verdict.wanted, ...syncedWith(topology.wanted, workers), ...workers.wanted];
  const delivery = judgeDelivery(observed, { broker, topology, before });
  return {
    wanted: [...before, ...delivery.wanted],
    actions: [...delivery.stops, ...workers.actions, ...topology.actions, ...delivery.openings],
    ...firstCauses([topology, workers]),
    restored: topology.restored,
    broker: topology.isMoved ? observed.resource.status?.broker : brokerStatus(broker),
    isOwned: topology.standing === "ours",
    ...(topology.standing === "ours" ? { migration: topology.migration ?? "none" } : {}),
    entries: topology.entries,
    incidents: topology.incidents,
    workers: workers.workers,
    ...delivery.parts,
  };
}

/** What differs at the workers belongs to the same picture as what differs at the streams. */
function syncedWith(wanted: readonly WantedCondition[], { actions }: Pick<Verdict, "actions">): readonly WantedCondition[] {
  const fields = actions.flatMap((action) => (action.kind === "ApplyWorkers" ? action.changes : []));
  const sync = wanted.findLast(({ type }) => type === "InSync");
  if (fields.length === 0 || sync === undefined || sync.status === "Unknown") return wanted;
  const text = fields.map((field) => `workers.${field}`).join(", ");
  const reason = sync.status === "True" ? "Drifted" : sync.reason;
  return [...wanted, want("InSync", "False", cause(reason, sync.message === "" ? text : `${sync.message}, ${text}`))];
}

type Delivery = {
  readonly wanted: readonly WantedCondition[];
  readonly stops: readonly Action[];
  readonly openings: readonly Action[];
  readonly parts: StatusParts;
};

/** What flows: admission, resumes, and how full it gets. Only on streams that are ours. */
function judgeDelivery(observed: Observed, at: { readonly broker: ReachedBroker; readonly topology: TopologyVerdict; readonly before: readonly WantedCondition[] }): Delivery {
  const { status } = observed.resource;
  if (at.topology.standing === "unread") {
    const replicas = judgeReplicas(at.broker);
    const isHeld = isHeldUnread(observed);
    const isKept = isHeld && replicas.status === "Unknown";
    const unseen = deliveryTypes.map((type) => want(type, "Unknown", cause("BrokerUnreachable")));
    const shown = [...(isHeld ? carriedOver(status, deliveryTypes) : unseen), ...(isKept ? carriedOver(status, ["ReplicasHealthy"]) : [replicas])];
    return { wanted: shown, stops: [], openings: [], parts: {} };
  }
  if (at.topology.standing === "foreign") {
    return { wanted: [want("ResumeOpen", "False", cause("WaitingForTopology"))], stops: [], openings: [], parts: {} };
  }
  const start = judgeStartPause(observed, at.broker, at.topology.isIncidentOpen);
  const resume = judgeResume(observed, at.broker, at.before);
  const space = judgeCapacity(observed, at.broker, start.held);
  const pauses = [...start.actions, ...resume.actions];
  return {
    wanted: [...resume.wanted, ...space.wanted],
    stops: pauses.filter(({ kind }) => kind === "PauseConsumer"),
    openings: pauses.filter(({ kind }) => kind !== "PauseConsumer"),
    parts: { capacity: space.capacity, timers: timerCounts(at.broker, status?.timers), resume: resume.resume },
  };
}

const deliveryTypes = ["ResumeOpen", "AdmissionOpen", "CapacityOK"] as const;

/** Every failure is told; one that needs a person gives the reason. */
function failuresVerdict(judged: Judged, failed: readonly FailedAction[]): Partial<Verdict> {
  // A lost race is looked at again at once and is nobody's business.
  const told = failed.filter(({ failure }) => failure.kind !== "conflict").map(shownAction);
  const first = told.find(({ isStalled }) => isStalled) ?? told[0];
  if (first === undefined) return {};
  const because = cause(first.because.reason, told.map((one) => one.because.message).join(" "));
  if (!first.isStalled) return { progress: because };
  const gates = told.filter(({ isStalled }) => isStalled).map(({ type, because: own }) => want(type, "False", own));
  return { wanted: [...judged.wanted, ...gates], stall: because };
}

function shownAction({ action, failure }: FailedAction): { readonly type: ConditionType; readonly because: Cause; readonly isStalled: boolean } {
  const { type, reason, remedy } = shownFailure(failure.code, gateOf(action));
  // Too few servers may be a matter of waiting or of the spec; only a person can tell, so that the remedy is said.
  const isTold = type === "TopologyReady" && remedy !== "";
  if (isPassing(failure) && !isTold) return { type, because: cause("ProgressingWithRetry", failureMessage(failure, "")), isStalled: false };
  if (isPassing(failure)) return { type, because: cause(reason, failureMessage(failure, remedy)), isStalled: false };
  return { type, because: cause(reason, failureMessage(failure, remedy)), isStalled: true };
}

function gateOf({ kind }: Action): ConditionType {
  switch (kind) {
    case "ApplyWorkers":
      return "WorkersReady";
    case "PauseConsumer":
    case "UnpauseConsumer":
      return "ResumeOpen";
    case "CreateStream":
    case "UpdateStream":
    case "AdoptStream":
    case "WriteOwnerKey":
    case "CreateConsumer":
    case "UpdateConsumer":
    case "DeleteStream":
    case "PurgeStream":
    case "SetFinalizer":
      return "TopologyReady";
  }
}
