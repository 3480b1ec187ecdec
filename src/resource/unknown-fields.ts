/** Finds fields that a schema does not know: in a file that a person wrote they are mistakes, often of spelling. */
import { z } from "zod";
import { fieldName, type Problem } from "./problems.ts";

type Schema = z.core.JSONSchema.BaseSchema;

/** Unknown fields of `value`, in document order. Values of the wrong kind are not looked into: the schema reports them. */
export function unknownFields(value: unknown, schema: z.ZodType, prefix: readonly string[]): readonly Problem[] {
  return walk(value, z.toJSONSchema(schema, { target: "openapi-3.0", io: "input", reused: "inline", unrepresentable: "any" }), prefix);
}

function walk(value: unknown, schema: Schema, path: readonly PropertyKey[]): readonly Problem[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => walk(item, nested(schema.items), [...path, index]));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => {
    const known = schema.properties?.[key] ?? schema.additionalProperties;
    if (known !== undefined && known !== false) return walk(child, nested(known), [...path, key]);
    return schema.properties === undefined ? [] : [{ field: fieldName([...path, key]), problem: "is not a field of this resource" }];
  });
}

function nested(schema: unknown): Schema {
  return typeof schema === "object" && schema !== null && !Array.isArray(schema) ? (schema as Schema) : {};
}
