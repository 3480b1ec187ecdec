/**
 * Finds out that the connection leads to another broker or account than before, and that the streams are not there: somebody
 * edited `spec.nats.servers`, or the credentials. Each stream would look lost; what happened is one thing, and so it is one
 * incident.
 *
 * 1. The streams prove themselves: where all that held data are found in their life, it is the same broker under another name.
 * 2. Until a person acknowledges the move nothing is touched there, and the workers stay where they are.
 * 3. The broker of before stays in the status until the streams there are those of the status; it is the memory of the move.
 */
import type { DurableTimerStatus } from "../../resource/durable-timer.ts";
import type { Topology } from "../../topology/layout.ts";
import type { ReachedBroker } from "./broker.ts";
import type { Claim } from "./claims.ts";
import { shortHash, streamEntry } from "./losses.ts";
import type { Incident } from "./losses.ts";
import type { Observed, StreamRole } from "./observed.ts";

/** A move to another broker, which a person has to accept. */
export type Move = { readonly incident: Incident; readonly isAcknowledged: boolean };

/** The move since the last status; undefined when the broker is the one of before, or its streams came along. */
export function findMove({ observed, broker, claims, topology }: Scene): Move | undefined {
  const { status, spec } = observed.resource;
  const [before, after] = [identityOf(status?.broker), identityOf(broker.facts)];
  if (before === undefined || after === undefined || before === after || cameAlong(status, { claims, topology })) return undefined;
  const id = `moved-broker-${shortHash(`${before} ${after} ${lifeOfDoor(status, topology)}`)}`;
  const text = `The streams were in ${before}, and the connection now leads to ${after}, which does not hold them. Nothing was touched there.`;
  const message = `${text} Correct spec.nats; or acknowledge ${id} to go on there and to leave behind what the other one holds.`;
  return { incident: { id, kind: "BrokerChanged", message }, isAcknowledged: spec.acknowledge.includes(id) };
}

type Scene = {
  readonly observed: Observed;
  readonly broker: ReachedBroker;
  readonly claims: ReadonlyMap<StreamRole, Claim>;
  readonly topology: Topology;
};

type Identity = Pick<NonNullable<DurableTimerStatus["broker"]>, "accountName" | "clusterName">;

/** Unknown when the broker does not tell the account: everything else may change without a move. */
function identityOf(broker: Identity | undefined): string | undefined {
  if (broker?.accountName === undefined) return undefined;
  const where = broker.clusterName === undefined ? "a single server" : `cluster ${broker.clusterName}`;
  return `account ${broker.accountName} of ${where}`;
}

function cameAlong(status: DurableTimerStatus | undefined, { claims, topology }: Pick<Scene, "claims" | "topology">): boolean {
  return topology.streams.every(({ role, name }) => {
    const entry = streamEntry(status, name);
    return role === "schedules" || entry?.everHeldData !== true || claims.get(role)?.stamp?.incarnation === entry.incarnation;
  });
}

/** COMMANDS is made last, so that its life stays the one of before until everything is there. */
function lifeOfDoor(status: DurableTimerStatus | undefined, { streams }: Topology): string {
  const entry = streamEntry(status, streams.find(({ role }) => role === "commands")?.name ?? "");
  return entry === undefined ? "" : `${entry.incarnation} ${entry.created}`;
}
