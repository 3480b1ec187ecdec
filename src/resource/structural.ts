/**
 * From the JSON Schema that zod gives to a structural schema, which is what the API server accepts; and a check of the
 * rules of structural schemas, so that a mistake is found before a server refuses the CRD.
 */
import { assert } from "../base/assert.ts";

/** A node of an OpenAPI v3 schema as CRDs have it. */
export type SchemaNode = { readonly [key: string]: unknown };

/** Translates a node and everything below it. The order of keys is fixed. */
export function toStructural(node: SchemaNode): SchemaNode {
  const union = node["anyOf"];
  if (Array.isArray(union)) return ordered(intOrString(node, union as readonly SchemaNode[]));
  const translated = { ...node, ...integerFormat(node), ...properties(node), ...items(node), ...openness(node) };
  return ordered({ ...translated, ...wholeDefault(translated) });
}

/** Breaches of the rules of structural schemas and of our own (bounds, descriptions), as sentences; empty when there is none. */
export function structuralProblems(node: SchemaNode, path: string): readonly string[] {
  const at = (problem: string): string => `${path}: ${problem}`;
  const own = nodeChecks.filter(({ isBroken }) => isBroken(node)).map(({ problem }) => at(problem));
  const children = Object.entries((node["properties"] ?? {}) as Readonly<Record<string, SchemaNode>>);
  const undescribed = children.filter(([, child]) => typeof child["description"] !== "string").map(([name]) => at(`field ${name} has no description`));
  const nested = [
    ...children.map(([name, child]) => [`${path}.${name}`, child] as const),
    ...(["items", "additionalProperties"] as const).flatMap((key) => (isNode(node[key]) ? [[`${path}[${key}]`, node[key]] as const] : [])),
  ];
  return [...own, ...undescribed, ...nested.flatMap(([name, child]) => structuralProblems(child, name))];
}

function intOrString(node: SchemaNode, variants: readonly SchemaNode[]): SchemaNode {
  const text = variants.find(({ type }) => type === "string");
  assert(variants.length === 2 && text !== undefined && variants.some(({ type }) => type === "integer"), "the only union is of an integer and a string");
  const { anyOf: _union, ...rest } = node;
  return {
    ...rest,
    ...(text["pattern"] === undefined ? {} : { pattern: text["pattern"] }),
    ...(text["maxLength"] === undefined ? {} : { maxLength: text["maxLength"] }),
    anyOf: [{ type: "integer" }, { type: "string" }],
    "x-kubernetes-int-or-string": true,
  };
}

/** zod bounds every integer by 2^53; that is left out where nobody asked for a bound. */
function integerFormat(node: SchemaNode): SchemaNode {
  if (node["type"] !== "integer") return {};
  const { minimum, maximum } = node as { readonly minimum?: number; readonly maximum?: number };
  const isShort = (minimum ?? -Infinity) >= -(2 ** 31) && (maximum ?? Infinity) < 2 ** 31;
  return {
    format: isShort ? "int32" : "int64",
    minimum: minimum === -Number.MAX_SAFE_INTEGER || minimum === -(2 ** 31) ? undefined : minimum,
    maximum: maximum === Number.MAX_SAFE_INTEGER || maximum === 2 ** 31 - 1 ? undefined : maximum,
  };
}

/** The API server checks a default against the rules before it fills in what lies below, so a default must be whole. */
function wholeDefault(node: SchemaNode): SchemaNode {
  const given = node["default"];
  if (!isNode(given)) return {};
  const below = childrenOf(node).filter(([, child]) => "default" in child);
  return { default: { ...Object.fromEntries(below.map(([name, child]) => [name, child["default"]])), ...given } };
}

function properties(node: SchemaNode): SchemaNode {
  if (!isNode(node["properties"])) return {};
  return { properties: Object.fromEntries(Object.entries(node["properties"]).map(([name, child]) => [name, toStructural(child as SchemaNode)])) };
}

function items(node: SchemaNode): SchemaNode {
  return isNode(node["items"]) ? { items: toStructural(node["items"]) } : {};
}

/** Closed objects need no word, since the API server prunes; open ones must say so; maps keep their values' schema. */
function openness(node: SchemaNode): SchemaNode {
  const values = node["additionalProperties"];
  if (values === undefined || values === false) return { additionalProperties: undefined };
  if (isNode(values) && Object.keys(values).length > 0) return { additionalProperties: toStructural(values) };
  const isBare = isNode(node["properties"]) && Object.keys(node["properties"]).length === 0;
  return { additionalProperties: undefined, ...(isBare ? { properties: undefined } : {}), "x-kubernetes-preserve-unknown-fields": true };
}

function ordered(node: SchemaNode): SchemaNode {
  const rank = (key: string): number => (keyOrder.includes(key) ? keyOrder.indexOf(key) : keyOrder.length);
  const entries = Object.entries(node).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries.sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1)));
}

function isNode(value: unknown): value is SchemaNode {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const keyOrder: readonly string[] = [
  "description", "type", "format", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "maxProperties",
  "default", "anyOf", "x-kubernetes-int-or-string", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-validations", "required", "properties", "additionalProperties", "items",
];

const isIntOrString = (node: SchemaNode): boolean => node["x-kubernetes-int-or-string"] === true;

const nodeChecks: readonly { readonly problem: string; readonly isBroken: (node: SchemaNode) => boolean }[] = [
  { problem: "has no type", isBroken: (node) => typeof node["type"] !== "string" && !isIntOrString(node) },
  { problem: "has a key that CRDs do not know", isBroken: (node) => Object.keys(node).some((key) => !keyOrder.includes(key)) },
  { problem: "has properties beside additionalProperties", isBroken: (node) => "properties" in node && "additionalProperties" in node },
  { problem: "is a string without maxLength", isBroken: (node) => node["type"] === "string" && !("maxLength" in node) && !("enum" in node) },
  { problem: "is a list without maxItems", isBroken: (node) => node["type"] === "array" && !("maxItems" in node) },
  { problem: "is a map without maxProperties", isBroken: (node) => "additionalProperties" in node && !("maxProperties" in node) },
  { problem: "has a pattern that RE2 cannot compile", isBroken: ({ pattern }) => typeof pattern === "string" && /\(\?[=!<]|\\[1-9]/.test(pattern) },
  { problem: "has a format that means something else to Kubernetes", isBroken: ({ format }) => typeof format === "string" && !["int32", "int64", "date-time"].includes(format) },
  { problem: "has a union of more than an integer and a string", isBroken: (node) => "anyOf" in node && !isIntOrString(node) },
  { problem: "requires a field that has a default", isBroken: hasRequiredDefault },
  { problem: "has no default, and a field below it has one", isBroken: hasLostDefault },
];

function childrenOf(node: SchemaNode): readonly (readonly [string, SchemaNode])[] {
  return Object.entries((node["properties"] ?? {}) as Readonly<Record<string, SchemaNode>>);
}

function hasRequiredDefault(node: SchemaNode): boolean {
  const required = (node["required"] ?? []) as readonly string[];
  return childrenOf(node).some(([name, child]) => required.includes(name) && "default" in child);
}

/** A default below an optional object without one would apply to some resources and not to others. */
function hasLostDefault(node: SchemaNode): boolean {
  const required = (node["required"] ?? []) as readonly string[];
  return childrenOf(node).some(
    ([name, child]) => !required.includes(name) && !("default" in child) && childrenOf(child).some(([, grandchild]) => "default" in grandchild),
  );
}
