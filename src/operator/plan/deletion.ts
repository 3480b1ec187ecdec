/**
 * Judges a resource that is being deleted.
 *
 * 1. Without the finalizer nothing is done: the streams stay, and the workers go by their owner. That is the policy Retain.
 * 2. With it, which is the policy Delete: while timers wait, the deletion is refused, as an incident. Until a person
 *    acknowledges it (or sets the policy to Retain) the timers go on, and only new starts are held.
 * 3. Then the workers are stopped, COMMANDS goes first, so that no start is acknowledged any more, and STATE goes last,
 *    because its stamp is the claim on the rest.
 * 4. Only streams with our own stamp are deleted.
 * 5. Nothing hangs: what cannot be reached stays, and so does everything in a namespace that is being deleted.
 */
import { deletionPatienceMs, lookAgainMs } from "../../base/limits.ts";
import type { DurationMs } from "../../base/units.ts";
import { streamsFinalizer } from "../../resource/names.ts";
import type { Action } from "./action.ts";
import { judgeBroker } from "./broker.ts";
import type { ReachedBroker } from "./broker.ts";
import { judgeClaims, ownOwnerId } from "./claims.ts";
import type { Claim } from "./claims.ts";
import { shortHash, streamEntry } from "./losses.ts";
import type { Incident } from "./losses.ts";
import { findMove } from "./moves.ts";
import type { Observed, StreamRole } from "./observed.ts";
import { behindBroker } from "./outage.ts";
import { judgeStartPause } from "./pauses.ts";
import type { JudgedParts } from "./status.ts";
import { topologyOf, unreadFailure } from "./topology.ts";
import { carriedOver, cause, want } from "./verdict.ts";
import type { Cause } from "./verdict.ts";
import { desiredWorkers } from "./workers.ts";

/** What the policy of a living resource asks for; undefined when it is held, or not, as it should be. */
export function finalizerChange({ resource }: Pick<Observed, "resource">): Action | undefined {
  const { finalizers, spec } = resource;
  if (finalizers === undefined) return undefined;
  const isWanted = spec.deletionPolicy === "Delete";
  if (finalizers.includes(streamsFinalizer) === isWanted) return undefined;
  return { kind: "SetFinalizer", isHeld: isWanted, because: `spec.deletionPolicy is ${spec.deletionPolicy}` };
}

/** Judges the deletion. */
export function judgeDeletion(observed: Observed): JudgedParts {
  const { finalizers, spec, isNamespaceEnding } = observed.resource;
  if (finalizers?.includes(streamsFinalizer) !== true) return deleting(observed, "Its streams and what they hold stay.");
  if (spec.deletionPolicy === "Retain") return letGo(observed, "spec.deletionPolicy is Retain");
  if (isNamespaceEnding === true) return letGo(observed, "the whole namespace is being deleted");
  const broker = judgeBroker(observed);
  if (broker.kind !== "usable") return outOfReach(observed, firstProblem(broker.wanted));
  if (unreadFailure(broker.broker) !== undefined) return outOfReach(observed, "not every stream could be looked at");
  const claims = judgeClaims(observed, broker.broker);
  if (claims.kind === "refused") return letGo(observed, `they are not ours to delete. ${claims.stall.message}`);
  return judgeStreams({ observed, broker: broker.broker, claims: claims.claims });
}

type Scene = { readonly observed: Observed; readonly broker: ReachedBroker; readonly claims: ReadonlyMap<StreamRole, Claim> };

function judgeStreams(scene: Scene): JudgedParts {
  const { observed, claims } = scene;
  const move = findMove({ ...scene, topology: topologyOf(scene) });
  if (move !== undefined) return letGo(observed, "the connection leads to another broker than the one that holds them");
  const own = order.flatMap((role) => ownClaim(claims.get(role)));
  if (own.length === 0) return finished(observed, "no stream of this resource is left");
  const waiting = waitingTimers(scene);
  const incident = refusal(scene, waiting);
  const isForced = observed.resource.spec.acknowledge.includes(incident.id);
  if (waiting.length > 0 && !isForced) return refused(scene, incident);
  return stopWorkers(observed) ?? deleteStreams(observed, own, isForced);
}

/** An adoption that was never carried out has made nothing ours. */
function ownClaim(claim: Claim | undefined): readonly Claim[] {
  return claim === undefined || claim.adoptedFrom !== undefined ? [] : [claim];
}

/** What would be lost, in words; empty when no timer waits. */
function waitingTimers({ broker }: Scene): readonly string[] {
  const held = (role: StreamRole, what: string): readonly string[] => {
    const looked = broker.streams[role];
    return looked.kind === "found" && looked.value.messages > 0 ? [`${String(looked.value.messages)} ${what}`] : [];
  };
  // The marker of a record that was removed hides whether there are others; it goes within minutes.
  const records = broker.stateRecord.kind === "found" ? ["records of timers"] : [];
  return [...records, ...held("commands", "starts"), ...held("feedback", "answers"), ...held("resumes", "resumes")];
}

/** Bound to this life of the resource and of its STATE. */
function refusal(scene: Scene, waiting: readonly string[]): Incident {
  const { resource } = scene.observed;
  const state = streamEntry(resource.status, topologyOf(scene).streams.find(({ role }) => role === "state")?.name ?? "");
  const id = `delete-data-${shortHash(`${resource.uid} ${state?.incarnation ?? ""} ${state?.created ?? ""}`)}`;
  const kinds = waiting.map((text) => text.replace(/^\d+ /, "")).join(", ");
  const message = `The streams still hold ${kinds}. Acknowledging ${id} deletes them with everything in them; setting spec.deletionPolicy to Retain keeps them and lets the resource go.`;
  return { id, kind: "DeletionRefused", message };
}

function refused(scene: Scene, incident: Incident): JudgedParts {
  const { observed, broker } = scene;
  const stall = cause("TimersWaiting", incident.message);
  const start = judgeStartPause(observed, broker, true);
  const { progress: _progress, ...rest } = deleting(observed, incident.message);
  const admission = start.held === undefined ? [] : [want("AdmissionOpen", "False", start.held)];
  return { ...rest, wanted: [...rest.wanted, ...admission], actions: start.actions, stall, incidents: [incident], requeueAfterMs: lookAgainMs };
}

/** Undefined when none is left. */
function stopWorkers(observed: Observed): JudgedParts | undefined {
  const { workers } = observed;
  if (workers.kind === "failed") return deleting(observed, "The workers could not be looked at.");
  if (workers.kind === "absent" || !workers.value.exists) return undefined;
  const { wantedReplicas, replicas } = workers.value;
  if (wantedReplicas === 0 && replicas === 0) return undefined;
  const desired = desiredWorkers(observed);
  const none = { ...desired, spec: { ...desired.spec, workers: { ...desired.spec.workers, replicas: 0 } } };
  const action: Action = { kind: "ApplyWorkers", desired: none, changes: ["replicas"], because: "the resource is being deleted" };
  return { ...deleting(observed, "Its workers are being stopped."), actions: wantedReplicas === 0 ? [] : [action] };
}

function deleteStreams(observed: Observed, own: readonly Claim[], isForced: boolean): JudgedParts {
  const [door] = own;
  // Alone, so that the next look tells whether a start slipped in before the door was closed.
  const now = door?.role === "commands" ? [door] : own;
  const actions = now.map(({ role, facts, stamp }): Action => ({ kind: "DeleteStream", role, stream: facts.name, ownerId: ownOwnerId(observed), incarnation: stamp?.incarnation ?? "", isForced, because: "spec.deletionPolicy is Delete" }));
  return { ...deleting(observed, "Its streams are being deleted."), actions, incidents: [] };
}

function outOfReach(observed: Observed, problem: string): JudgedParts {
  const { deletionRequestedAtMs } = observed.resource;
  const isPatient = deletionRequestedAtMs !== undefined && observed.nowMs - deletionRequestedAtMs < deletionPatienceMs;
  if (!isPatient) return letGo(observed, `they could not be reached: ${problem}`);
  return deleting(observed, `Its streams cannot be reached; they stay if that lasts for ${String(deletionPatienceMs / 60_000)} minutes.`);
}

/** The streams stay although the resource was held for them: that is worth an event. */
function letGo(observed: Observed, because: string): JudgedParts {
  const message = `The streams and what they hold stay: ${because.replace(/\.$/, "")}.`;
  return { ...finished(observed, because), told: [{ severity: "Normal", reason: "DataRetained", message }] };
}

function finished(observed: Observed, because: string): JudgedParts {
  return { ...deleting(observed, "It is let go."), actions: [{ kind: "SetFinalizer", isHeld: false, because: because.replace(/\.$/, "") }] };
}

function deleting({ resource }: Observed, text: string): JudgedParts {
  const because = cause("Deleting", `The resource is being deleted. ${text}`);
  const kept = carriedOver(resource.status, ["BrokerReachable", "BrokerCompatible", "TopologyReady", "WorkersReady", ...behindBroker.slice(1), "CredentialsValid"]);
  const isHeld = resource.finalizers?.includes(streamsFinalizer) === true;
  const again: { readonly requeueAfterMs?: DurationMs } = isHeld ? { requeueAfterMs: lookAgainMs } : {};
  return { wanted: [...kept, want("Ready", "False", because)], actions: [], progress: because, restored: [], ...again };
}

function firstProblem(wanted: readonly (Cause & { readonly status: string })[]): string {
  const bad = wanted.find(({ status }) => status !== "True");
  return bad === undefined ? "the broker is out of sight" : `${bad.reason} ${bad.message}`.trim();
}

/** Of deletion: the door first, the claim last. */
const order: readonly StreamRole[] = ["commands", "feedback", "resumes", "schedules", "terminals", "snapshots", "state"];
