import { describe, expect, test } from "vitest";
import { specSchema } from "../../src/resource/spec.ts";
import type { SchemaNode } from "../../src/resource/structural.ts";
import { resourceValuesSchema } from "../../src/resource/values-schema.ts";

type Placed = { readonly path: string; readonly node: SchemaNode };

const schema = resourceValuesSchema();
const nodes = nodesBelow({ path: "values", node: schema });

function nodesBelow({ path, node }: Placed): readonly Placed[] {
  const properties = Object.entries((node["properties"] ?? {}) as Readonly<Record<string, SchemaNode>>);
  const nested = [
    ...properties.map(([name, child]): Placed => ({ path: `${path}.${name}`, node: child })),
    ...(["items", "additionalProperties"] as const).flatMap((key) => (typeof node[key] === "object" ? [{ path: `${path}[${key}]`, node: node[key] as SchemaNode }] : [])),
  ];
  return [{ path, node }, ...nested.flatMap(nodesBelow)];
}

const at = (path: string): SchemaNode | undefined => nodes.find((placed) => placed.path === path)?.node;

describe("the schema of the chart's values", () => {
  test("knows every field of the spec, and demands no more of a person than the resource does", () => {
    expect(Object.keys((at("values.spec")?.["properties"] ?? {}))).toEqual(Object.keys(specSchema.shape));
    expect(at("values.spec")?.["required"]).toEqual(["nats", "topology"]);
    expect(schema["required"]).toEqual(["spec"]);
  });

  test("refuses a field that the resource does not have, wherever the resource lists its fields", () => {
    const open = nodes.filter(({ node }) => Object.keys((node["properties"] ?? {})).length > 0 && node["additionalProperties"] !== false);
    // In Kubernetes' own shapes only the name is ours to check.
    const own = "values.spec.workers.podTemplate.spec";
    expect(open.map(({ path }) => path)).toEqual([`${own}.env[items]`, `${own}.volumes[items]`, `${own}.volumeMounts[items]`]);
  });

  test("says nothing that only an API server understands", () => {
    expect(nodes.flatMap(({ path, node }) => Object.keys(node).filter((key) => key.startsWith("x-")).map((key) => `${path}: ${key}`))).toEqual([]);
    expect(at("values.spec.acknowledge")).toMatchObject({ type: "array", uniqueItems: true });
  });

  test("takes sizes as text and as numbers, since YAML makes numbers of some", () => {
    expect(at("values.spec.topology.streams.state.maxBytes")?.["anyOf"]).toMatchObject([{ type: "integer" }, { type: "string" }]);
  });
});
