import { describe, expect, it } from "vitest";
import { customResourceDefinition, resourceSchema } from "../../src/resource/crd.ts";
import { changeRules, specRules } from "../../src/resource/rules.ts";
import { structuralProblems, type SchemaNode } from "../../src/resource/structural.ts";
import { specSchema } from "../../src/resource/spec.ts";
import { fullSpec } from "./examples.ts";

const properties = (node: SchemaNode): Readonly<Record<string, SchemaNode>> => (node["properties"] ?? {}) as Readonly<Record<string, SchemaNode>>;
const field = (node: SchemaNode, path: string): SchemaNode => path.split(".").reduce((at, name) => properties(at)[name] ?? {}, node);
const spec = field(resourceSchema(), "spec");

function rulesIn(node: SchemaNode): readonly string[] {
  const own = (node["x-kubernetes-validations"] ?? []) as readonly { readonly rule: string }[];
  return [...own.map(({ rule }) => rule), ...Object.values(properties(node)).flatMap(rulesIn)];
}

/** Paths of every field, through lists of objects too. */
function pathsIn(node: SchemaNode, prefix: string): readonly string[] {
  return Object.entries(properties(node)).flatMap(([name, child]) => [`${prefix}${name}`, ...pathsIn(child, `${prefix}${name}.`)]);
}

describe("the generated schema", () => {
  it("is structural", () => {
    expect(structuralProblems(spec, "spec")).toEqual([]);
    expect(structuralProblems(field(resourceSchema(), "status"), "status")).toEqual([]);
  });

  it("carries every rule once, and one size rule per stream", () => {
    const rules = rulesIn(spec);
    const listed = [...specRules, ...changeRules].map(({ cel }) => cel);
    expect(listed.filter((cel) => !rules.includes(cel))).toEqual([]);
    expect(rules).toHaveLength(listed.length + 6);
  });

  it("is exercised by the full example in every field", () => {
    const given = (path: string): boolean => path.split(".").reduce<unknown>((at, name) => (at as Readonly<Record<string, unknown>> | undefined)?.[name], fullSpec) !== undefined;
    const otherIdentities = /auth\.(?:nkey|token|userPassword|credentials)SecretRef/;
    expect(pathsIn(spec, "").filter((path) => !given(path) && !otherIdentities.test(path))).toEqual([]);
  });

  it("has defaults that the schema itself accepts, whole", () => {
    const defaults = { limits: field(spec, "limits")["default"], workers: field(spec, "workers")["default"], sweep: field(spec, "sweep")["default"] };
    const read = specSchema.parse({ ...fullSpec, ...defaults });
    expect({ limits: read.limits, workers: read.workers, sweep: read.sweep }).toEqual(defaults);
  });

  it("shows a status that was never written as not observed", () => {
    expect(field(resourceSchema(), "status")["default"]).toEqual({ observedGeneration: -1 });
  });

  it("stays far below the size at which kubectl apply refuses a CRD", () => {
    expect(JSON.stringify(customResourceDefinition()).length).toBeLessThan(100_000);
  });
});
