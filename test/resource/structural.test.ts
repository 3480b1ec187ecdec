import { describe, expect, it } from "vitest";
import { z } from "zod";
import { structuralProblems, toStructural, type SchemaNode } from "../../src/resource/structural.ts";

const translate = (schema: z.ZodType): SchemaNode =>
  toStructural(z.toJSONSchema(schema, { target: "openapi-3.0", io: "input", reused: "inline", unrepresentable: "throw" }));

const text = z.string().max(8).meta({ description: "Text." });

describe("toStructural", () => {
  it("writes a union of integer and string in the one way that Kubernetes has for it", () => {
    expect(translate(z.union([z.int(), z.string().max(3).regex(/^[0-9]+$/)]))).toEqual({
      pattern: "^[0-9]+$",
      maxLength: 3,
      anyOf: [{ type: "integer" }, { type: "string" }],
      "x-kubernetes-int-or-string": true,
    });
  });

  it("refuses every other union", () => {
    expect(() => translate(z.union([z.boolean(), z.string()]))).toThrow("the only union");
  });

  it("preserves unknown fields of open objects, and closes strict ones by pruning", () => {
    expect(translate(z.looseObject({}))).toEqual({ type: "object", "x-kubernetes-preserve-unknown-fields": true });
    expect(translate(z.looseObject({ name: text }))).toMatchObject({ "x-kubernetes-preserve-unknown-fields": true, properties: { name: { type: "string" } } });
    expect(translate(z.strictObject({ name: text }))).not.toHaveProperty("additionalProperties");
  });

  it("leaves out the bounds that zod adds to every integer", () => {
    expect(translate(z.int())).toEqual({ type: "integer", format: "int64" });
    expect(translate(z.int32())).toEqual({ type: "integer", format: "int32" });
    expect(translate(z.int().min(1).max(5))).toEqual({ type: "integer", format: "int32", minimum: 1, maximum: 5 });
  });

  it("fills a default with the defaults below it", () => {
    const inner = z.object({ a: z.int32().default(1), b: z.int32().default(2) });
    const schema = translate(z.object({ inner: inner.prefault({ a: 7 }) }).prefault({}));
    expect(schema["default"]).toEqual({ inner: { a: 7, b: 2 } });
  });
});

describe("structuralProblems", () => {
  const rows: readonly { readonly name: string; readonly node: SchemaNode; readonly want: readonly string[] }[] = [
    { name: "a node without a type", node: {}, want: ["x: has no type"] },
    { name: "a union with types inside", node: { type: "object", anyOf: [{ type: "object" }] }, want: ["x: has a union of more than an integer and a string"] },
    { name: "a word of JSON Schema that CRDs do not know", node: { type: "object", readOnly: true }, want: ["x: has a key that CRDs do not know"] },
    {
      name: "an object that is half map",
      node: { type: "object", properties: {}, additionalProperties: { type: "boolean" }, maxProperties: 1 },
      want: ["x: has properties beside additionalProperties"],
    },
    { name: "an unbounded string", node: { type: "string" }, want: ["x: is a string without maxLength"] },
    { name: "an unbounded list", node: { type: "array", items: { type: "boolean" } }, want: ["x: is a list without maxItems"] },
    { name: "an unbounded map", node: { type: "object", additionalProperties: { type: "boolean" } }, want: ["x: is a map without maxProperties"] },
    { name: "a pattern with look-ahead", node: { type: "string", maxLength: 1, pattern: "(?=a)" }, want: ["x: has a pattern that RE2 cannot compile"] },
    { name: "a format with another meaning", node: { type: "string", maxLength: 1, format: "duration" }, want: ["x: has a format that means something else to Kubernetes"] },
    {
      name: "a field without description, at any depth",
      node: { type: "object", properties: { a: { type: "object", description: "A.", properties: { b: { type: "boolean" } } } } },
      want: ["x.a: field b has no description"],
    },
    {
      name: "a required default",
      node: { type: "object", required: ["a"], properties: { a: { type: "boolean", description: "A.", default: true } } },
      want: ["x: requires a field that has a default"],
    },
    {
      name: "a default below an optional object",
      node: { type: "object", properties: { a: { type: "object", description: "A.", properties: { b: { type: "boolean", description: "B.", default: true } } } } },
      want: ["x: has no default, and a field below it has one"],
    },
    {
      name: "problems in items and map values",
      node: { type: "array", maxItems: 1, items: { type: "object", maxProperties: 1, additionalProperties: { type: "string" } } },
      want: ["x[items][additionalProperties]: is a string without maxLength"],
    },
  ];

  it.each(rows)("finds $name", ({ node, want }) => {
    expect(structuralProblems(node, "x")).toEqual(want);
  });
});
