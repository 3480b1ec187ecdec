/** Objects as JSON, which is how they travel and how they are compared. */

export type JsonObject = { readonly [key: string]: unknown };

/** True for a map of fields; false for lists and null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** JSON text with sorted keys: equal values give equal text. Undefined fields are absent. */
export function stableJson(value: unknown): string {
  return JSON.stringify(value, (_key, child: unknown) => (isJsonObject(child) ? sorted(child) : child));
}

function sorted(object: JsonObject): JsonObject {
  const entries = Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries);
}
