/**
 * The ownership stamp: who owns a stream or consumer, written in its metadata, where it outlives the resource, the
 * operator and the cluster.
 */
import type { Owner, ServerConfig, Stamp } from "./layout.ts";
import { layoutVersion } from "./layout.ts";

/** The owner id of a resource. The cluster id never changes; the uid does, when the resource is created again. */
export function ownerId(at: { readonly clusterId: string; readonly namespace: string; readonly name: string }): string {
  return `${at.clusterId}/${at.namespace}/${at.name}`;
}

/** Metadata of a stream of this owner. */
export function streamStamp(owner: Owner, incarnation: string): Readonly<Record<string, string>> {
  return { ...consumerStamp(owner), [stampKeys.incarnation]: incarnation };
}

/** Metadata of a consumer of this owner; a consumer holds no data, so that it has no incarnation of its own. */
export function consumerStamp(owner: Owner): Readonly<Record<string, string>> {
  return {
    [stampKeys.ownerId]: owner.id,
    [stampKeys.ownerUid]: owner.uid,
    [stampKeys.layoutVersion]: String(layoutVersion),
  };
}

/** The stamp in a reported configuration; undefined when nobody claimed it. What a claim leaves out reads as empty or 0. */
export function readStamp(config: ServerConfig): Stamp | undefined {
  const metadata = config["metadata"] as Readonly<Record<string, string>> | null | undefined;
  const claimed = metadata?.[stampKeys.ownerId];
  if (metadata === null || metadata === undefined || claimed === undefined || claimed === "") return undefined;
  const version = metadata[stampKeys.layoutVersion] ?? "";
  return {
    ownerId: claimed,
    ownerUid: metadata[stampKeys.ownerUid] ?? "",
    incarnation: metadata[stampKeys.incarnation] ?? "",
    layoutVersion: /^[0-9]{1,9}$/.test(version) ? Number(version) : 0,
  };
}

/** Keys of the stamp in metadata. The server's own keys begin with `_nats.`. */
export const stampKeys = {
  ownerId: "durable_timer.owner",
  ownerUid: "durable_timer.owner_uid",
  incarnation: "durable_timer.incarnation",
  layoutVersion: "durable_timer.layout_version",
} as const;
