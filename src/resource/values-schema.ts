/**
 * The JSON Schema of the values of the chart that makes one DurableTimer: the schema of spec.ts, closed, so that a misspelt
 * field is refused before anything reaches a cluster.
 *
 * Rules between fields are not in it; the API server judges them when the resource is applied.
 */
import { z } from "zod";
import { resourceBounds as bounds } from "./bounds.ts";
import { specSchema } from "./spec.ts";
import type { SchemaNode } from "./structural.ts";

/** The schema, in the draft that every Helm 3 and 4 understands. */
export function resourceValuesSchema(): SchemaNode {
  const spec = z.toJSONSchema(specSchema, { target: "draft-7", io: "input", reused: "inline", unrepresentable: "throw" });
  const { $schema, ...specNode } = closed(spec) as { readonly $schema?: unknown };
  return {
    $schema,
    title: "Values of the chart durable-timer",
    type: "object",
    additionalProperties: false,
    required: ["spec"],
    properties: {
      global: { description: "Belongs to a chart that has this one as a part; not read here.", type: "object" },
      name: {
        description: "Name of the DurableTimer. Empty: the release's name.",
        type: "string",
        maxLength: bounds.resourceNameCharsMax,
        pattern: "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$",
      },
      labels: { description: "Labels added to the DurableTimer.", ...texts },
      annotations: { description: "Annotations added to the DurableTimer.", ...texts },
      spec: { description: "The spec of the DurableTimer, as in a manifest.", ...specNode },
    },
  };
}

/** Objects that list their fields take no others; what is meant for the API server alone goes. */
function closed(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(closed);
  if (typeof node !== "object" || node === null) return node;
  const { "x-kubernetes-list-type": listType, ...rest } = node as SchemaNode;
  const entries = Object.entries(rest).map(([key, value]): readonly [string, unknown] => [key, closed(value)]);
  const isListing = rest["type"] === "object" && Object.keys((rest["properties"] ?? {})).length > 0;
  return {
    ...Object.fromEntries(entries),
    ...(listType === "set" ? { uniqueItems: true } : {}),
    ...(isListing && rest["additionalProperties"] === undefined ? { additionalProperties: false } : {}),
  };
}

const texts = { type: "object", additionalProperties: { type: "string" } } as const;
