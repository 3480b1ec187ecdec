/**
 * Judges whose streams those are that exist already. The stamp in a stream's metadata decides, never its name.
 *
 * 1. One foreign stream refuses the whole topology: half of a topology is of no use to anyone.
 * 2. Our own earlier life (same owner id, other uid) is ourselves: a re-created resource finds its data.
 * 3. Only a policy that names the old owner, or nobody, allows to put our stamp on a stream.
 */
import { layoutVersion } from "../../topology/layout.ts";
import type { Stamp } from "../../topology/layout.ts";
import { ownerId, readStamp } from "../../topology/stamp.ts";
import type { ReachedBroker } from "./broker.ts";
import type { Observed, ObservedResource, StreamFacts, StreamRole } from "./observed.ts";
import { cause } from "./verdict.ts";
import type { Cause } from "./verdict.ts";

/** A stream that is ours or may become ours. */
export type Claim = {
  readonly role: StreamRole;
  readonly facts: StreamFacts;
  readonly stamp: Stamp | undefined;
  /** The owner whose stamp ours replaces; absent when the stamp is ours. */
  readonly adoptedFrom?: string;
};

/** Every stream that was found, by role; or why none of them may be touched. */
export type Claims =
  | { readonly kind: "clear"; readonly claims: ReadonlyMap<StreamRole, Claim> }
  | { readonly kind: "refused"; readonly stall: Cause };

/** Stands for the owner of a stream that nobody owns; an owner id has slashes. */
export const nobody = "nobody";

/** The owner id of a resource. */
export function ownOwnerId({ clusterId, resource }: { readonly clusterId: string; readonly resource: Pick<ObservedResource, "key"> }): string {
  return ownerId({ clusterId, ...resource.key });
}

/** Judges every stream that was found. */
export function judgeClaims(observed: Observed, broker: ReachedBroker): Claims {
  const claims = new Map<StreamRole, Claim>();
  for (const role of streamRoles) {
    const looked = broker.streams[role];
    if (looked.kind !== "found") continue;
    const judged = judgeClaim(observed, role, looked.value);
    if (judged.kind === "refused") return judged;
    claims.set(role, judged.claim);
  }
  return { kind: "clear", claims };
}

/** STATE first: its stamp is the claim on the whole account, so its answer is the one to show. */
const streamRoles: readonly StreamRole[] = ["state", "snapshots", "terminals", "schedules", "resumes", "feedback", "commands"];

type JudgedClaim = { readonly kind: "allowed"; readonly claim: Claim } | { readonly kind: "refused"; readonly stall: Cause };

function judgeClaim(observed: Observed, role: StreamRole, facts: StreamFacts): JudgedClaim {
  const stamp = readStamp(facts.config);
  if (stamp !== undefined) return judgeStamped(observed, { role, facts, stamp });
  if (observed.resource.spec.topology.adoption.policy === "IfUnowned") return { kind: "allowed", claim: { role, facts, stamp, adoptedFrom: nobody } };
  return { kind: "refused", stall: refusal(facts.name, stamp) };
}

function judgeStamped(observed: Observed, claim: Claim & { readonly stamp: Stamp }): JudgedClaim {
  const { facts, stamp } = claim;
  const { policy, fromOwner } = observed.resource.spec.topology.adoption;
  const isOwn = stamp.ownerId === ownOwnerId(observed);
  const mayAdopt = policy === "FromOwner" && stamp.ownerId === fromOwner;
  if (!isOwn && !mayAdopt) return { kind: "refused", stall: refusal(facts.name, stamp) };
  if (stamp.layoutVersion > layoutVersion) return { kind: "refused", stall: tooNew(facts.name, stamp) };
  return { kind: "allowed", claim: isOwn ? claim : { ...claim, adoptedFrom: stamp.ownerId } };
}

/** What a newer operator laid out is read by nobody who does not know how. */
function tooNew(stream: string, stamp: Stamp): Cause {
  const text = `Stream ${stream} has layout version ${String(stamp.layoutVersion)}, and this operator knows ${String(layoutVersion)}.`;
  return cause("StreamIncompatible", `${text} Upgrade the operator.`);
}

function refusal(stream: string, stamp: Stamp | undefined): Cause {
  if (stamp === undefined) {
    const remedy = "To take it over, set spec.topology.adoption.policy to IfUnowned; else give this resource an account of its own.";
    return cause("AdoptionRefused", `Stream ${stream} exists and carries nobody's stamp. Nothing was touched. ${remedy}`);
  }
  const remedy = `To take it over, set spec.topology.adoption to policy FromOwner with fromOwner ${stamp.ownerId}, after that owner has let go of it.`;
  return cause("OwnedByAnother", `Stream ${stream} belongs to ${stamp.ownerId}. Nothing was touched. ${remedy}`);
}
