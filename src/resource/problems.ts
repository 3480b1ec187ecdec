/** What is wrong with a document, field by field, in words for the person who wrote it. */
import type { z } from "zod";
import { unreachable } from "../base/assert.ts";

/** `field` is dotted from the top of the document, such as `spec.nats.servers[0]`; `problem` continues the sentence. */
export type Problem = { readonly field: string; readonly problem: string };

/** One line for logs and conditions. */
export function describeProblem({ field, problem }: Problem): string {
  return field === "" ? problem : `${field} ${problem}`;
}

/** The problems in a zod error of a parse with `reportInput`, with `prefix` put before each path. */
export function problemsOf(error: z.ZodError, prefix: readonly string[]): readonly Problem[] {
  return error.issues.map((issue) => ({ field: fieldName([...prefix, ...issue.path]), problem: problemText(issue) }));
}

/** A path as people write it. */
export function fieldName(path: readonly PropertyKey[]): string {
  return path.map((part) => (typeof part === "number" ? `[${String(part)}]` : `.${String(part)}`)).join("").replace(/^\./, "");
}

function problemText(issue: z.core.$ZodIssue): string {
  if (issue.input === undefined) return "is required";
  switch (issue.code) {
    case "invalid_type":
      return `must be ${kindName(issue.expected)}`;
    case "too_small":
      return `must ${amount(issue.origin, `at least ${String(issue.minimum)}`)}`;
    case "too_big":
      return `must ${amount(issue.origin, `at most ${String(issue.maximum)}`)}`;
    case "invalid_value":
      return `must be one of ${issue.values.map(String).join(", ")}`;
    case "invalid_format":
      // A schema that says in words what it wants says it better than its pattern.
      return issue.message.startsWith("must ") ? issue.message : `must match ${issue.format === "regex" ? (issue.pattern ?? "its pattern") : issue.format}`;
    case "unrecognized_keys":
    case "invalid_union":
    case "invalid_key":
    case "invalid_element":
    case "not_multiple_of":
    case "custom":
      return issue.message;
    default:
      return unreachable(issue);
  }
}

function kindName(expected: string): string {
  const names: Readonly<Record<string, string>> = { int: "a whole number", number: "a whole number", string: "text", boolean: "true or false", array: "a list", object: "an object", record: "a map" };
  return names[expected] ?? expected;
}

function amount(origin: string, bound: string): string {
  if (origin === "string") return `have ${bound} characters`;
  return origin === "array" ? `have ${bound} items` : `be ${bound}`;
}
