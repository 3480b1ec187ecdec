/** What the status remembers of each stream: its life, whether it ever held data, how full it is. */
import { bytesText } from "../../resource/quantity.ts";
import type { Topology } from "../../topology/layout.ts";
import type { ReachedBroker } from "./broker.ts";
import { coarsePercent } from "./capacity.ts";
import type { Claim } from "./claims.ts";
import { streamEntry } from "./losses.ts";
import type { Loss, StreamEntry } from "./losses.ts";
import type { Observed, StreamFacts, StreamRole } from "./observed.ts";

type Scene = {
  readonly observed: Observed;
  readonly broker: ReachedBroker;
  readonly claims: ReadonlyMap<StreamRole, Claim>;
  readonly topology: Topology;
  readonly losses: readonly Loss[];
};

/** The next entries, and the names of streams that a native backup brought back. */
export function streamEntries(scene: Scene): { readonly entries: readonly StreamEntry[]; readonly restored: readonly string[] } {
  const pairs = scene.topology.streams.map(({ role, name }) => {
    const had = streamEntry(scene.observed.resource.status, name);
    return { had, has: nextEntry(scene, role, had) ?? had };
  });
  const entries = pairs.flatMap(({ has }) => (has === undefined ? [] : [has]));
  const restored = pairs.flatMap(({ had, has }) => (had !== undefined && has !== undefined && isRestored(had, has) ? [has.name] : []));
  return { entries, restored };
}

/** Undefined keeps the last one: the entry of a lost stream is the only memory of what was lost. */
function nextEntry(scene: Scene, role: StreamRole, had: StreamEntry | undefined): StreamEntry | undefined {
  const claim = scene.claims.get(role);
  const isLost = scene.losses.some((loss) => loss.role === role && !loss.isAcknowledged);
  if (claim === undefined || isLost) return undefined;
  const { facts, stamp } = claim;
  // A stream that is not stamped yet has no life to remember.
  if (stamp === undefined || stamp.incarnation === "") return undefined;
  const { incarnation } = stamp;
  return {
    name: facts.name,
    incarnation,
    created: facts.createdAt,
    replicas: Number(facts.config["num_replicas"] ?? 1),
    everHeldData: holdsData(scene, claim) || (had?.incarnation === incarnation && had.everHeldData),
    ...usage(facts, had),
  };
}

/** STATE holds notes of ours from its first second; timers reach it only through COMMANDS. */
function holdsData({ broker, claims }: Scene, { role, facts }: Claim): boolean {
  if (role !== "state") return facts.lastSequence > 0;
  return broker.stateRecord.kind === "found" || (claims.get("commands")?.facts.lastSequence ?? 0) > 0;
}

function usage({ config, bytes }: StreamFacts, had: StreamEntry | undefined): Pick<StreamEntry, "limitBytes" | "usedPercent"> {
  const limitBytes = Number(config["max_bytes"] ?? -1);
  if (limitBytes <= 0) return {};
  return { limitBytes: bytesText(limitBytes), usedPercent: coarsePercent((100 * bytes) / limitBytes, had?.usedPercent) };
}

function isRestored(had: StreamEntry, has: StreamEntry): boolean {
  return had.incarnation === has.incarnation && had.created !== has.created;
}
