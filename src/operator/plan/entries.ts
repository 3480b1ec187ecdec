/** What the status remembers of each stream: its life, whether it ever held data, how full it is. */
import { bytesText } from "../../resource/quantity.ts";
import type { Topology } from "../../topology/layout.ts";
import type { ReachedBroker } from "./broker.ts";
import { coarsePercent } from "./capacity.ts";
import type { Claim } from "./claims.ts";
import { streamEntry } from "./losses.ts";
import type { Loss, StreamEntry } from "./losses.ts";
import type { Observed, StreamRole } from "./observed.ts";

type Scene = {
  readonly observed: Observed;
  readonly broker: ReachedBroker;
  readonly claims: ReadonlyMap<StreamRole, Claim>;
  readonly topology: Topology;
  readonly losses: readonly Loss[];
};

/** The next entries, and the names of streams that a native backup brought back. */
export function streamEntries(scene: Scene): { readonly entries: readonly StreamEntry[]; readonly restored: readonly string[] } {
  const restored: string[] = [];
  const entries = scene.topology.streams.flatMap(({ role, name }) => {
    const had = streamEntry(scene.observed.resource.status, name);
    const claim = scene.claims.get(role);
    const isLost = scene.losses.some((loss) => loss.role === role && !loss.isAcknowledged);
    // The entry of a lost stream is the only memory of what was lost; a stream without a mark has no life to remember yet.
    const incarnation = claim?.stamp?.incarnation ?? "";
    if (claim === undefined || isLost || incarnation === "") return had === undefined ? [] : [had];
    const entry = entryOf(scene, { ...claim, incarnation }, had);
    if (had !== undefined && had.incarnation === entry.incarnation && had.created !== entry.created) restored.push(name);
    return [entry];
  });
  return { entries, restored };
}

type LivingClaim = Claim & { readonly incarnation: string };

function entryOf({ broker, claims }: Scene, { role, facts, incarnation }: LivingClaim, had: StreamEntry | undefined): StreamEntry {
  const isSameLife = had?.incarnation === incarnation;
  const limitBytes = Number(facts.config["max_bytes"] ?? -1);
  // STATE holds notes of ours from its first second; timers reach it only through COMMANDS.
  const source = role === "state" ? claims.get("commands")?.facts : facts;
  const holdsData = (source?.lastSequence ?? 0) > 0 || (role === "state" && broker.hasStateRecords);
  return {
    name: facts.name,
    incarnation,
    created: facts.createdAt,
    replicas: Number(facts.config["num_replicas"] ?? 1),
    everHeldData: holdsData || (isSameLife && had.everHeldData),
    ...(limitBytes > 0 ? { limitBytes: bytesText(limitBytes), usedPercent: coarsePercent((100 * facts.bytes) / limitBytes, had?.usedPercent) } : {}),
  };
}
