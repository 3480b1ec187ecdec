/**
 * The difference between what is wanted and what a server reports, and the configuration that repairs it.
 *
 * Only fields that this product owns are compared, so that settings which somebody else chose on purpose (compression, a
 * description) stay, and defaults that a newer server fills in are no drift.
 *
 * D1 No difference means that no update is sent.
 * D2 An update carries everything that the server reported, with the owned fields laid over it: an update replaces the
 *    whole configuration, and what it left out would be reset.
 */
import type { ConsumerSpec, Difference, ServerConfig, StreamSpec } from "./layout.ts";

/** Owned fields of a stream that differ, in a fixed order. */
export function diffStream(desired: StreamSpec, actual: ServerConfig): readonly Difference[] {
  return [...ownedDifferences(desired.config, actual, isImmutableOfStream), ...strayDifferences(actual, strayStreamFields)];
}

/** Owned fields of a consumer that differ, in a fixed order. A pause is not one of them. */
export function diffConsumer(desired: ConsumerSpec, actual: ServerConfig): readonly Difference[] {
  const strays = "filter_subject" in desired.config ? strayConsumerFields : [...strayConsumerFields, "filter_subject"];
  return [...ownedDifferences(desired.config, actual, isImmutableOfConsumer), ...strayDifferences(actual, strays)];
}

/**
 * The updates that bring a stream to what is wanted, to be sent one after the other; none when nothing differs. A change
 * of placement and of replicas are two, because servers refuse both in one (10123).
 */
export function streamUpdates(desired: StreamSpec, actual: ServerConfig): readonly ServerConfig[] {
  const fields = new Set(diffStream(desired, actual).map(({ field }) => field));
  if (fields.size === 0) return [];
  const whole = merged(desired.config, actual, strayStreamFields);
  if (!fields.has("num_replicas") || !fields.has("placement")) return [whole];
  return [{ ...whole, num_replicas: actual["num_replicas"] }, whole];
}

/** The update that brings a consumer to what is wanted; none when nothing differs. */
export function consumerUpdates(desired: ConsumerSpec, actual: ServerConfig): readonly ServerConfig[] {
  if (diffConsumer(desired, actual).length === 0) return [];
  const strays = "filter_subject" in desired.config ? strayConsumerFields : [...strayConsumerFields, "filter_subject"];
  return [merged(desired.config, actual, strays)];
}

/** True when the server's value means the same as the wanted one: it leaves out what is empty, and spells "none" as -1 or 0. */
export function isSameValue(field: string, desired: unknown, actual: unknown): boolean {
  if (field === "metadata") return Object.entries(asRecord(desired)).every(([key, value]) => asRecord(actual)[key] === value);
  if (field === "placement") return isSamePlacement(desired, actual);
  if (Array.isArray(desired)) return sortedText(desired) === sortedText(actual);
  return canonical(field, desired) === canonical(field, actual);
}

type Judge = (field: string, desired: unknown, actual: unknown) => boolean;

function ownedDifferences(desired: ServerConfig, actual: ServerConfig, isImmutable: Judge): readonly Difference[] {
  const owned = { placement: undefined, ...desired };
  const differing = Object.entries(owned).filter(([field, value]) => !isSameValue(field, value, actual[field]));
  return differing.map(([field, value]) => {
    const remedy = isImmutable(field, value, actual[field]) ? "immutable" : "update";
    return { field, desired: value, actual: actual[field], remedy } as const;
  });
}

/** Fields that must not be set at all, because they would change what a stream stores or a consumer delivers. */
function strayDifferences(actual: ServerConfig, fields: readonly string[]): readonly Difference[] {
  return fields
    .filter((field) => !isEmpty(actual[field]))
    .map((field) => ({ field, desired: undefined, actual: actual[field], remedy: immutableStrays.has(field) ? "immutable" : "update" }));
}

function merged(desired: ServerConfig, actual: ServerConfig, strays: readonly string[]): ServerConfig {
  const foreignMetadata = Object.entries(asRecord(actual["metadata"])).filter(([key]) => !key.startsWith("_nats."));
  const kept = Object.entries(actual).filter(([field]) => !strays.includes(field) && field !== "placement" && field !== "pause_until");
  return { ...Object.fromEntries(kept), ...desired, metadata: { ...Object.fromEntries(foreignMetadata), ...asRecord(desired["metadata"]) } };
}

function isImmutableOfStream(field: string, desired: unknown, actual: unknown): boolean {
  if (field === "retention") return desired === "workqueue" || actual === "workqueue";
  if (field === "sealed" || field === "deny_delete" || field === "deny_purge") return actual === true;
  return immutableStreamFields.has(field);
}

function isImmutableOfConsumer(field: string): boolean {
  return immutableConsumerFields.has(field);
}

function isSamePlacement(desired: unknown, actual: unknown): boolean {
  const [a, b] = [asRecord(desired), asRecord(actual)];
  return (a["cluster"] ?? "") === (b["cluster"] ?? "") && sortedText(a["tags"]) === sortedText(b["tags"]);
}

function canonical(field: string, value: unknown): unknown {
  if (field === "persist_mode") return value ?? "default";
  if (unlimitedFields.has(field)) return value === undefined || value === 0 ? -1 : value;
  return isEmpty(value) ? undefined : value;
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === 0 || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

function sortedText(list: unknown): string {
  return JSON.stringify(Array.isArray(list) ? [...(list as readonly string[])].sort() : []);
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

const unlimitedFields: ReadonlySet<string> = new Set(["max_msgs", "max_bytes", "max_msg_size", "max_msgs_per_subject", "max_deliver"]);
const immutableStreamFields: ReadonlySet<string> = new Set(["name", "storage", "persist_mode"]);
const immutableConsumerFields: ReadonlySet<string> = new Set([
  "durable_name", "deliver_policy", "ack_policy", "replay_policy", "max_waiting", "filter_subject",
]);
/**
 * Servers do change a filter (seen on 2.14.9 and 2.15.2), but never go back to what the old one passed over: those messages
 * would stay and be delivered to nobody. A consumer made anew delivers all that was not acknowledged.
 */
const immutableStrays: ReadonlySet<string> = new Set(["mirror", "deliver_subject", "filter_subject", "filter_subjects"]);
const strayStreamFields: readonly string[] = ["mirror", "sources", "subject_transform"];
const strayConsumerFields: readonly string[] = ["filter_subjects", "backoff", "headers_only", "deliver_subject", "priority_policy"];
