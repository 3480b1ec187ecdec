/** Compares one wanted stream or consumer with what is there, and says which writes bring it there. */
import { isoFromEpochMs } from "../../base/units.ts";
import type { DurationMs, EpochMs } from "../../base/units.ts";
import { consumerUpdates, diffConsumer, diffStream, streamUpdates } from "../../topology/diff.ts";
import type { ConsumerSpec, Difference, ServerConfig, StreamSpec } from "../../topology/layout.ts";
import type { Action } from "./action.ts";
import type { Claim } from "./claims.ts";
import type { ConsumerFacts, Looked, Observed, StreamFacts } from "./observed.ts";
import { cause } from "./verdict.ts";
import type { Cause } from "./verdict.ts";

/** The result for one stream, consumer or key. */
export type Compared = {
  readonly actions: readonly Action[];
  /** Differing fields as `<name>.<field>`, without what is missing altogether. */
  readonly differences: readonly string[];
  readonly isMissing: boolean;
  /** What the server cannot change in place, or must not. */
  readonly stall?: Cause;
  /** What goes on in several steps. */
  readonly progress?: { readonly because: Cause; readonly requeueAfterMs: DurationMs };
};

/** `claim` is the stream that is there; undefined when none is. */
export function compareStream(observed: Observed, wanted: StreamSpec, claim: Claim | undefined): Compared {
  const { role, name } = wanted;
  if (claim === undefined) {
    return { actions: [{ kind: "CreateStream", role, config: wanted.config, because: "it is missing" }], differences: [], isMissing: true };
  }
  const actual = claim.facts.config;
  const tolerated = toleratingPersistence(wanted, actual);
  const found = diffStream(tolerated, actual);
  const changes = found.map(({ field }) => field);
  const differences = changes.map((field) => `${name}.${field}`);
  const immutable = found.filter(({ remedy }) => remedy === "immutable");
  if (immutable.length > 0) return { actions: [], differences, isMissing: false, stall: streamStall(wanted, immutable) };
  const tooSmall = sizeStall(wanted, claim.facts);
  if (tooSmall !== undefined) return { actions: [], differences, isMissing: false, stall: tooSmall };
  const updates = streamUpdates(tolerated, actual);
  const actions = updates.map((config): Action => {
    if (claim.adoptedFrom !== undefined) return { kind: "AdoptStream", role, config, from: claim.adoptedFrom, because: "the adoption policy allows it" };
    return { kind: "UpdateStream", role, config, changes, ...updateReason(observed) };
  });
  return { actions, differences, isMissing: false };
}

/** `pausedUntilMs` is the pause with which a missing consumer is created. */
export function compareConsumer(
  observed: Observed,
  wanted: ConsumerSpec,
  at: { readonly looked: Looked<ConsumerFacts>; readonly pausedUntilMs: EpochMs | undefined },
): Compared {
  const { role, stream, name } = wanted;
  if (at.looked.kind !== "found") {
    const config = { ...wanted.config, ...(at.pausedUntilMs === undefined ? {} : { pause_until: isoFromEpochMs(at.pausedUntilMs) }) };
    return { actions: [{ kind: "CreateConsumer", role, stream, config, because: "it is missing" }], differences: [], isMissing: true };
  }
  const actual = at.looked.value.config;
  const found = diffConsumer(wanted, actual);
  const changes = found.map(({ field }) => field);
  const differences = changes.map((field) => `${name}.${field}`);
  const immutable = found.filter(({ remedy }) => remedy === "immutable");
  if (immutable.length > 0) {
    const text = `Consumer ${name} differs in ${fieldList(immutable)}, which a server cannot change, and is never deleted to change it.`;
    return { actions: [], differences, isMissing: false, stall: cause("ConsumerIncompatible", `${text} Remove it by hand to have it made anew.`) };
  }
  const actions = consumerUpdates(wanted, actual).map(
    (config): Action => ({ kind: "UpdateConsumer", role, stream, config, changes, ...updateReason(observed) }),
  );
  return { actions, differences, isMissing: false };
}

/**
 * `persist_mode` cannot change on an existing stream. With one replica a SCHEDULES stream that is not asynchronous is only
 * slower, so it stays as it is. The other way round servers refuse the replicas, and the difference is reported.
 */
function toleratingPersistence(wanted: StreamSpec, actual: ServerConfig): StreamSpec {
  const isSlowerOnly = wanted.config["persist_mode"] === "async" && actual["persist_mode"] !== "async";
  if (!isSlowerOnly) return wanted;
  const { persist_mode: _persistence, ...rest } = wanted.config;
  return { ...wanted, config: { ...rest, allow_atomic: true } };
}

function streamStall({ name }: StreamSpec, immutable: readonly Difference[]): Cause {
  const text = `Stream ${name} differs in ${fieldList(immutable)}, which a server cannot change, and is never deleted to change it.`;
  return cause("ImmutableFieldChanged", `${text} Undo the change in the spec.`);
}

/** A server that is given a smaller size than a stream has evicts from it at once, whatever the stream says of a full one. */
function sizeStall({ name, config }: StreamSpec, { bytes, config: actual }: StreamFacts): Cause | undefined {
  const [wanted, has] = [Number(config["max_bytes"]), Number(actual["max_bytes"] ?? -1)];
  const isLowered = wanted > 0 && (has <= 0 || wanted < has);
  if (!isLowered || bytes <= wanted * sizeShareMax) return undefined;
  const text = `Stream ${name} holds more than ${String(100 * sizeShareMax)} % of the size that the spec now gives it. A server would evict what does not fit.`;
  return cause("SizeBelowUse", `${text} Give it more, or wait until it has become smaller.`);
}

/** Something may be stored between the look and the change. */
const sizeShareMax = 0.8;

function fieldList(differences: readonly Difference[]): string {
  return differences.map(({ field }) => field).sort().join(", ");
}

function updateReason({ resource }: Observed): { readonly isRepair: boolean; readonly because: string } {
  const isRepair = resource.status?.observedGeneration === resource.generation;
  return { isRepair, because: isRepair ? "somebody else changed it" : "the spec wants it to be different" };
}
