/**
 * What a worker needs of streams and consumers before it takes anything from them.
 *
 * This is less than what the operator wants: sizes, replicas and placement do not concern a worker, and a worker of the
 * previous or the next release must be able to run beside this one on the same streams.
 */
import type { ConsumerRole, StreamRole } from "../protocol/names.ts";
import { consumerNames, streamNames } from "../protocol/names.ts";
import { fixedConsumerConfig, fixedStreamConfig } from "./desired.ts";
import { isSameValue } from "./diff.ts";
import { layoutVersion, type ServerConfig } from "./layout.ts";
import { readStamp } from "./stamp.ts";

/** Reported configurations by role; undefined for what does not exist. */
export type ReportedStreams = Readonly<Record<StreamRole, ServerConfig | undefined>>;
export type ReportedConsumers = Readonly<Partial<Record<ConsumerRole, ServerConfig>>>;

/** What keeps a worker from working, one sentence each, in a fixed order; empty when everything is as it must be. */
export function unmetRequirements(streams: ReportedStreams, consumers: ReportedConsumers): readonly string[] {
  return [
    ...streamsOfWorker.flatMap((role) => unmetByStream(role, streams[role])),
    ...consumersOfWorker.flatMap((role) => unmetByConsumer(role, consumers[role])),
  ];
}

/** What a worker's look at the broker has to know of this room. */
export const topologyRules = { unmetRequirements, readStamp } as const;

function unmetByStream(role: StreamRole, config: ServerConfig | undefined): readonly string[] {
  const name = streamNames[role];
  if (config === undefined) return [`stream ${name} does not exist`];
  const version = readStamp(config)?.layoutVersion ?? 0;
  const layout = version === layoutVersion ? [] : [`stream ${name} has layout version ${String(version)}; this worker needs ${String(layoutVersion)}`];
  const fixed = fixedStreamConfig(role);
  // A feature that is there without being used does not keep a worker from its work: closing it is the operator's.
  const used = neededStreamFeatures.filter((feature) => fixed[feature] === true);
  return [...layout, ...unmetFields(`stream ${name}`, pick(fixed, [...neededStreamFields, ...used]), config)];
}

function unmetByConsumer(role: ConsumerRole, config: ServerConfig | undefined): readonly string[] {
  const name = consumerNames[role];
  if (config === undefined) return [`consumer ${name} does not exist`];
  const needed = { filter_subject: "", ...pick(fixedConsumerConfig(role), neededConsumerFields) };
  return unmetFields(`consumer ${name}`, needed, config);
}

function unmetFields(what: string, needed: ServerConfig, config: ServerConfig): readonly string[] {
  return Object.entries(needed)
    .filter(([field, value]) => !isSameValue(field, value, config[field]))
    .map(([field, value]) => `${what} has ${field} ${JSON.stringify(config[field]) ?? "unset"}; this worker needs ${JSON.stringify(value)}`);
}

function pick(config: ServerConfig, fields: readonly string[]): ServerConfig {
  return Object.fromEntries(fields.filter((field) => field in config).map((field) => [field, config[field]]));
}

const streamsOfWorker: readonly StreamRole[] = ["state", "snapshots", "terminals", "schedules", "resumes", "feedback", "commands"];
const consumersOfWorker: readonly ConsumerRole[] = ["wake", "feedback", "start"];

const neededStreamFields: readonly string[] = [
  "subjects", "retention", "discard", "max_age", "max_msgs_per_subject", "deny_delete", "deny_purge", "sealed",
];
const neededStreamFeatures: readonly string[] = ["allow_direct", "allow_rollup_hdrs", "allow_msg_ttl", "allow_msg_schedules"];
const neededConsumerFields: readonly string[] = ["filter_subject", "ack_policy", "max_deliver"];
