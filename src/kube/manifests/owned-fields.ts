/**
 * Reads which fields of an object a manager has applied, from the record that the API server keeps (metadata.managedFields,
 * format FieldsV1: `f:<field>`, `k:<key fields of a list item>`, `.` for the item itself).
 */
import { isJsonObject, type JsonObject } from "./json.ts";
import { itemLike, itemName } from "./list-keys.ts";

/** Paths that `manager` has applied and that `wanted` does not have: applying `wanted` removes them. */
export function abandonedFields(wanted: JsonObject, actual: JsonObject, manager: string): readonly string[] {
  return abandonedBelow(appliedFields(actual, manager), wanted, String(wanted["kind"]));
}

function appliedFields(actual: JsonObject, manager: string): unknown {
  const metadata = isJsonObject(actual["metadata"]) ? actual["metadata"] : {};
  const entries: readonly unknown[] = Array.isArray(metadata["managedFields"]) ? metadata["managedFields"] : [];
  return entries.filter(isJsonObject).find((entry) => isApplyOf(entry, manager))?.["fieldsV1"];
}

function isApplyOf(entry: JsonObject, manager: string): boolean {
  return entry["manager"] === manager && entry["operation"] === "Apply" && (entry["subresource"] ?? "") === "";
}

function abandonedBelow(fields: unknown, wanted: unknown, path: string): readonly string[] {
  if (!isJsonObject(fields)) return [];
  return Object.entries(fields).flatMap(([step, below]) => {
    if (step.startsWith("f:")) return abandonedField(step.slice(2), below, { wanted, path });
    if (step.startsWith("k:")) return abandonedItem(step.slice(2), below, { wanted, path });
    return [];
  });
}

type Place = { readonly wanted: unknown; readonly path: string };

function abandonedField(name: string, below: unknown, { wanted, path }: Place): readonly string[] {
  const value = isJsonObject(wanted) ? wanted[name] : undefined;
  return value === undefined ? [`${path}.${name}`] : abandonedBelow(below, value, `${path}.${name}`);
}

function abandonedItem(keyText: string, below: unknown, { wanted, path }: Place): readonly string[] {
  const key: unknown = JSON.parse(keyText);
  if (!isJsonObject(key)) return [];
  const keys = Object.keys(key);
  const item = Array.isArray(wanted) ? itemLike(wanted, key, keys) : undefined;
  const itemPath = `${path}[${itemName(key, keys)}]`;
  return item === undefined ? [itemPath] : abandonedBelow(below, item, itemPath);
}
