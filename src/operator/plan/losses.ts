/**
 * Finds streams that lost what they held. A loss is never repaired silently: a stream made anew would look healthy while
 * accepted timers are gone. It becomes an incident, and only `spec.acknowledge` with the incident's id lets us go on.
 *
 * 1. A stream that never held data may be created, as often as needed.
 * 2. SCHEDULES is derived from STATE and is never lost.
 * 3. An id is bound to what was lost. Acknowledging one loss does not allow the next.
 * 4. While a stream is lost its last status entry is kept, because it is the memory of what is missing.
 * 5. A stream whose last sequence went back lost what was acknowledged last. Only an operator that watched can tell.
 */
import type { DurableTimerStatus } from "../../resource/durable-timer.ts";
import type { Topology } from "../../topology/layout.ts";
import type { ReachedBroker } from "./broker.ts";
import type { Claim } from "./claims.ts";
import type { Observed, StreamRole } from "./observed.ts";

/** What a person reads and acknowledges. */
export type Incident = NonNullable<DurableTimerStatus["incidents"]>[number];

/** What the status remembers of a stream. */
export type StreamEntry = NonNullable<DurableTimerStatus["topology"]>["streams"][number];

/** A stream that lost what it held. */
export type Loss = { readonly role: StreamRole; readonly incident: Incident; readonly isAcknowledged: boolean };

type Scene = {
  readonly observed: Observed;
  readonly broker: ReachedBroker;
  readonly claims: ReadonlyMap<StreamRole, Claim>;
  readonly topology: Topology;
  /** A person accepted that the broker is another one: what the one before held is not here. */
  readonly isMoved: boolean;
};

/** Every loss, acknowledged or not, in the order of the streams. */
export function findLosses(scene: Scene): readonly Loss[] {
  return scene.topology.streams.flatMap(({ role, name }) => {
    const lost = role === "schedules" ? undefined : lossOf(scene, role, name);
    if (lost === undefined) return [];
    const incident = incidentOf(scene, { role, name, lost });
    const isAcknowledged = scene.isMoved || scene.observed.resource.spec.acknowledge.includes(incident.id);
    return [{ role, isAcknowledged, incident }];
  });
}

/** The last status of a stream. */
export function streamEntry(status: DurableTimerStatus | undefined, name: string): StreamEntry | undefined {
  return status?.topology?.streams.find((entry) => entry.name === name);
}

/**
 * Without a status to remember: nothing was ever accepted if the door, COMMANDS, was never there. COMMANDS is created
 * last, so that its absence proves that no start was acknowledged.
 */
export function isUntouched(broker: ReachedBroker): boolean {
  return broker.streams.commands.kind === "absent" && broker.stateRecord.kind === "absent";
}

/** `facts` is what makes this loss different from another one of the same stream; `mark` begins its id. */
type Lost = { readonly what: string; readonly effect: string; readonly facts: string; readonly mark: "lost" | "emptied" | "rewound" };

function lossOf(scene: Scene, role: StreamRole, name: string): Lost | Incident | undefined {
  const entry = streamEntry(scene.observed.resource.status, name);
  const claim = scene.claims.get(role);
  if (claim !== undefined) return changedIncarnation(claim, entry) ?? emptied(scene, claim, entry) ?? rewound(scene, claim, entry);
  if (scene.broker.streams[role].kind !== "absent") return undefined;
  const heldData = entry === undefined ? !isUntouched(scene.broker) : entry.everHeldData;
  if (!heldData) return undefined;
  const facts = entry === undefined ? unseen(scene) : lifeOf(entry);
  return { what: "held data and is gone", effect: "creates it anew, empty", facts, mark: "lost" };
}

function changedIncarnation(claim: Claim, entry: StreamEntry | undefined): Lost | undefined {
  if (entry === undefined || !entry.everHeldData || claim.stamp?.incarnation === entry.incarnation) return undefined;
  // The same facts as a missing stream: acknowledged, re-created and then not yet in the status is the same loss.
  return { what: "held data and was replaced by another one of that name", effect: "accepts the stream that is there", facts: lifeOf(entry), mark: "lost" };
}

function emptied(scene: Scene, claim: Claim, entry: StreamEntry | undefined): Lost | undefined {
  const what = claim.role === "state" ? emptiedState(scene, claim, entry) : emptiedSnapshots(scene, claim);
  if (what === undefined) return undefined;
  return { what, effect: "accepts it as it is", facts: `${claimedLife(claim)} emptied at ${String(claim.facts.lastSequence)}`, mark: "emptied" };
}

function emptiedState({ broker }: Scene, { adoptedFrom }: Claim, entry: StreamEntry | undefined): string | undefined {
  if (adoptedFrom !== undefined || broker.ownerKey.kind !== "absent") return undefined;
  const heldData = entry === undefined ? !isUntouched(broker) : entry.everHeldData;
  return heldData ? "lost its content: even the owner's key is gone" : undefined;
}

/** A snapshot is written before its record and the record was looked at first, so that no memory of the stream is needed. */
function emptiedSnapshots({ broker }: Scene, { role, facts }: Claim): string | undefined {
  const hasLiveRecord = broker.stateRecord.kind === "found" && broker.stateRecord.value.isLive;
  return role === "snapshots" && facts.messages === 0 && hasLiveRecord ? "is empty while timers are waiting for their snapshots" : undefined;
}

/** After a restart of the operator the incident in the status is all that is known of it. */
function rewound({ observed }: Scene, claim: Claim, entry: StreamEntry | undefined): Lost | Incident | undefined {
  const seen = observed.rewinds?.[claim.role];
  if (seen?.isConfirmed === true) {
    const numbers = `from ${String(seen.fromSequence)} to ${String(seen.toSequence)}`;
    return { what: `lost its end: its last sequence went back ${numbers}`, effect: "accepts it as it is", facts: `${claimedLife(claim)} back ${numbers}`, mark: "rewound" };
  }
  const isSameLife = entry !== undefined && claimedLife(claim) === lifeOf(entry);
  return isSameLife ? observed.resource.status?.incidents?.find(({ id }) => id.startsWith(`rewound-${claim.role}-`)) : undefined;
}

function incidentOf({ observed }: Scene, { role, name, lost }: { readonly role: StreamRole; readonly name: string; readonly lost: Lost | Incident }): Incident {
  if ("id" in lost) return lost;
  const id = incidentId(observed, role, lost);
  return { id, kind: "TopologyLost", message: `Stream ${name} ${lost.what}. Acknowledging ${id} ${lost.effect}; what was lost stays lost.` };
}

/**
 * The numbers of an emptied stream go on changing, so that the id of its incident is the one that was shown first.
 */
function incidentId({ resource }: Observed, role: StreamRole, { mark, facts }: Lost): string {
  const prefix = `${mark}-${role}-`;
  const shown = mark === "emptied" ? resource.status?.incidents?.find(({ id }) => id.startsWith(prefix)) : undefined;
  return shown?.id ?? `${prefix}${shortHash(`${role} ${facts}`)}`;
}

function lifeOf(entry: StreamEntry): string {
  return `${entry.incarnation} ${entry.created}`;
}

function claimedLife({ stamp, facts }: Claim): string {
  return `${stamp?.incarnation ?? ""} ${facts.createdAt}`;
}

/**
 * A stream that no status remembers is known by what is left beside it, and by the resource that misses it. The last one that
 * would be made anew comes first, so that the id stays while the lost streams are made anew one after the other.
 */
function unseen({ observed, claims }: Scene): string {
  const beside = claims.get("commands") ?? claims.get("state");
  return `never seen by ${observed.resource.uid} beside ${beside === undefined ? "nothing" : claimedLife(beside)}`;
}

/** FNV-1a: tells facts apart; nobody gains anything by making two that collide. */
export function shortHash(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  }
  return hash.toString(16).padStart(8, "0");
}
