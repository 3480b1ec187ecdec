/**
 * How an object at the API server differs from the one that is wanted.
 *
 * D1 Only what is ours counts: fields that are wanted, and fields that we applied once and no longer want. Defaults of the
 *    server, and what others added, are neither reported nor touched.
 * D2 Applying what is wanted removes exactly what is reported here, so a difference is never reported for ever.
 * D3 The answer is sorted and holds no values: it goes into conditions, and a value may be long or change.
 */
import { isJsonObject, type JsonObject } from "./json.ts";
import { itemLike, itemName, listKeys } from "./list-keys.ts";
import { abandonedFields } from "./owned-fields.ts";
import { isSameQuantity } from "./quantities.ts";

/** Paths that differ, such as `Deployment.spec.replicas`; the kind alone when the object does not exist. */
export function driftOf(wanted: JsonObject, actual: JsonObject | undefined, manager: string): readonly string[] {
  const root = String(wanted["kind"]);
  if (actual === undefined) return [root];
  const fields = Object.entries(wanted).filter(([name]) => name !== "apiVersion" && name !== "kind");
  const changed = fields.flatMap(([name, value]) => differences(value, actual[name], { name, path: `${root}.${name}`, parent: "" }));
  return [...new Set([...changed, ...abandonedFields(wanted, actual, manager)])].sort();
}

type Place = { readonly name: string; readonly path: string; readonly parent: string };

function differences(wanted: unknown, actual: unknown, place: Place): readonly string[] {
  if (isZero(wanted) && isZero(actual)) return [];
  if (isJsonObject(wanted) && isJsonObject(actual)) {
    return Object.entries(wanted).flatMap(([name, value]) => differences(value, actual[name], { name, path: `${place.path}.${name}`, parent: place.name }));
  }
  if (Array.isArray(wanted) && Array.isArray(actual)) return listDifferences(wanted, actual, place);
  return isSameScalar(wanted, actual, place) ? [] : [place.path];
}

function listDifferences(wanted: readonly unknown[], actual: readonly unknown[], place: Place): readonly string[] {
  const keys = listKeys(place.name);
  if (keys !== undefined) {
    return wanted.filter(isJsonObject).flatMap((item) => {
      const path = `${place.path}[${itemName(item, keys)}]`;
      const found = itemLike(actual, item, keys);
      return found === undefined ? [path] : differences(item, found, { ...place, path });
    });
  }
  const isSame = wanted.length === actual.length && wanted.every((item, index) => differences(item, actual[index], { ...place, name: "" }).length === 0);
  return isSame ? [] : [place.path];
}

/** The API server leaves empty values out of most objects. */
function isZero(value: unknown): boolean {
  if (value === undefined || value === null || value === "" || value === false || value === 0) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isJsonObject(value) && Object.values(value).every(isZero);
}

function isSameScalar(wanted: unknown, actual: unknown, place: Place): boolean {
  if (wanted === actual) return true;
  return holdsQuantity(place) && isSameQuantity(wanted, actual);
}

function holdsQuantity({ name, parent }: Place): boolean {
  return parent === "requests" || parent === "limits" || name === "sizeLimit" || name === "divisor";
}
