/** Replies of the JetStream API about streams, consumers and the account, as values of the narrow interface. */
import type { DurationMs, EpochMs } from "../../base/units.ts";
import { malformedFailure } from "./classify.ts";
import type { AccountState, ConsumerState, StreamState, Told, UserState } from "./jetstream.ts";

type Json = Readonly<Record<string, unknown>>;

/** Reads a stream's INFO, or the answer to its creation or update, which looks the same. */
export function streamStateFrom(attempt: string, reply: Json): Told<StreamState> {
  const { config, created, state, cluster, ts } = reply;
  if (!isJson(config) || !isJson(state) || typeof created !== "string") return { kind: "failed", failure: malformedFailure(attempt) };
  const leadership = isJson(cluster) ? cluster : {};
  const serverTimeMs = typeof ts === "string" ? Date.parse(ts) : Number.NaN;
  return {
    kind: "told",
    value: {
      name: String(config["name"]),
      config,
      createdAt: created,
      messages: count(state["messages"]),
      bytes: count(state["bytes"]),
      firstSequence: count(state["first_seq"]),
      lastSequence: count(state["last_seq"]),
      replicas: list(leadership["replicas"]).map(replicaFrom),
      ...(typeof leadership["leader"] === "string" && leadership["leader"] !== "" ? { leader: leadership["leader"] } : {}),
      // Rounded down by Date.parse, as a lower bound must be.
      ...(Number.isNaN(serverTimeMs) ? {} : { serverTimeMs: serverTimeMs as EpochMs }),
    },
  };
}

/** Reads a consumer's INFO, or the answer to its creation or update. */
export function consumerStateFrom(attempt: string, reply: Json): Told<ConsumerState> {
  const { config, created, name, delivered } = reply;
  if (!isJson(config) || typeof created !== "string" || typeof name !== "string") return { kind: "failed", failure: malformedFailure(attempt) };
  const pauseRemainingNs = count(reply["pause_remaining"]);
  return {
    kind: "told",
    value: {
      name,
      config,
      createdAt: created,
      pending: count(reply["num_pending"]),
      ackPending: count(reply["num_ack_pending"]),
      redelivered: count(reply["num_redelivered"]),
      waitingPulls: count(reply["num_waiting"]),
      ...(isJson(delivered) ? { deliveredCount: count(delivered["consumer_seq"]) } : {}),
      paused: reply["paused"] === true,
      ...(isClustered(reply["cluster"]) ? { replicaCount: 1 + list(reply["cluster"]["replicas"]).length } : {}),
      ...(pauseRemainingNs === 0 ? {} : { pauseRemainingMs: Math.ceil(pauseRemainingNs / 1_000_000) as DurationMs }),
    },
  };
}

/** Reads the account's INFO. With tiered limits, the tier that is fullest speaks for the account. */
export function accountStateFrom(attempt: string, reply: Json): Told<AccountState> {
  const { api, tiers } = reply;
  const level = isJson(api) ? api["level"] : undefined;
  const usages = (isJson(tiers) ? Object.values(tiers).filter(isJson) : [reply]).map(usageFrom);
  const fullest = usages.reduce((worst, usage) => (share(usage) > share(worst) ? usage : worst), usages[0] ?? usageFrom({}));
  if (!isJson(api)) return { kind: "failed", failure: malformedFailure(attempt) };
  return {
    kind: "told",
    value: {
      ...fullest,
      apiLevel: count(level),
      streams: count(reply["streams"]),
      ...(typeof reply["domain"] === "string" && reply["domain"] !== "" ? { domain: reply["domain"] } : {}),
    },
  };
}

type StorageUsage = Pick<AccountState, "storageBytes" | "storageBytesMax" | "storageBytesReserved">;

function usageFrom(usage: Json): StorageUsage {
  const limits = isJson(usage["limits"]) ? usage["limits"] : {};
  const max = limits["max_storage"];
  const used = { storageBytes: count(usage["storage"]), storageBytesReserved: count(usage["reserved_storage"]) };
  return { ...used, ...(typeof max === "number" && max > 0 ? { storageBytesMax: max } : {}) };
}

function share({ storageBytes, storageBytesMax }: StorageUsage): number {
  return storageBytesMax === undefined ? 0 : storageBytes / storageBytesMax;
}

/** Reads the answer to a user's question who it is. */
export function userStateFrom(attempt: string, reply: Json): Told<UserState> {
  const { data, server } = reply;
  if (!isJson(data) || !isJson(server)) return { kind: "failed", failure: malformedFailure(attempt) };
  const accountName = data["account_name"] ?? data["account"];
  const serverTimeMs = Date.parse(String(server["time"]));
  if (typeof accountName !== "string" || Number.isNaN(serverTimeMs)) return { kind: "failed", failure: malformedFailure(attempt) };
  return { kind: "told", value: { accountName, serverTimeMs: serverTimeMs as EpochMs } };
}

function replicaFrom(replica: Json): StreamState["replicas"][number] {
  return { name: String(replica["name"]), current: replica["current"] === true, offline: replica["offline"] === true, lag: count(replica["lag"]) };
}

/** A single server names itself as the leader, and no cluster. */
function isClustered(cluster: unknown): cluster is Json {
  return isJson(cluster) && typeof cluster["name"] === "string";
}

function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function list(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isJson) : [];
}

function count(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
