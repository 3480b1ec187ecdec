/**
 * Which fields identify an item of a list, for the lists that the API server merges item by item on apply. Other lists
 * are replaced as a whole. From the API's own schema (x-kubernetes-list-map-keys).
 */
import { isJsonObject, type JsonObject } from "./json.ts";

/** Key fields of the list that is the field `name`; undefined when it is replaced as a whole. */
export function listKeys(name: string): readonly string[] | undefined {
  return keysByList[name];
}

/** The item of `items` with the same key fields as `wanted`. */
export function itemLike(items: readonly unknown[], wanted: JsonObject, keys: readonly string[]): JsonObject | undefined {
  return items.filter(isJsonObject).find((item) => keys.every((key) => item[key] === wanted[key]));
}

/** A short name of an item for people: its key values. */
export function itemName(item: JsonObject, keys: readonly string[]): string {
  return keys.map((key) => String(item[key])).join(",");
}

const keysByList: Readonly<Record<string, readonly string[]>> = {
  ownerReferences: ["uid"],
  containers: ["name"],
  env: ["name"],
  ports: ["containerPort", "protocol"],
  volumes: ["name"],
  volumeMounts: ["mountPath"],
  imagePullSecrets: ["name"],
  topologySpreadConstraints: ["topologyKey", "whenUnsatisfiable"],
};
