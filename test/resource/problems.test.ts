import { describe, expect, it } from "vitest";
import { present } from "../../src/base/assert.ts";
import { z } from "zod";
import { describeProblem, fieldName, problemsOf } from "../../src/resource/problems.ts";

const rows = [
  { name: "a missing field", schema: z.object({ a: z.string() }), value: {}, want: "a is required" },
  { name: "text for a number", schema: z.object({ a: z.int() }), value: { a: "1" }, want: "a must be a whole number" },
  { name: "a list for an object", schema: z.object({ a: z.object({}) }), value: { a: [] }, want: "a must be an object" },
  { name: "a number below its least", schema: z.object({ a: z.int().min(3) }), value: { a: 2 }, want: "a must be at least 3" },
  { name: "long text", schema: z.object({ a: z.string().max(2) }), value: { a: "abc" }, want: "a must have at most 2 characters" },
  { name: "a word off the list", schema: z.object({ a: z.enum(["Open", "Closed"]) }), value: { a: "open" }, want: "a must be one of Open, Closed" },
  { name: "text of another form", schema: z.object({ a: z.string().regex(/^x+$/) }), value: { a: "y" }, want: "a must match /^x+$/" },
  { name: "text of a form that is said in words", schema: z.object({ a: z.string().regex(/^x+$/, "must be all x") }), value: { a: "y" }, want: "a must be all x" },
  { name: "an item", schema: z.object({ a: z.array(z.boolean()) }), value: { a: [true, 1] }, want: "a[1] must be true or false" },
  { name: "the whole document", schema: z.object({}), value: null, want: "must be an object" },
  { name: "a check with words of its own", schema: z.object({ a: z.string().refine(() => false, { error: "must rhyme" }) }), value: { a: "b" }, want: "a must rhyme" },
];

describe("problemsOf", () => {
  it.each(rows)("says what is wrong with $name", ({ schema, value, want }) => {
    const { error } = schema.safeParse(value, { reportInput: true });
    expect(problemsOf(present(error, "an error"), []).map(describeProblem)).toEqual([want]);
  });
});

describe("fieldName", () => {
  it("writes a path as people do", () => {
    expect(fieldName(["spec", "nats", "servers", 0])).toBe("spec.nats.servers[0]");
  });
});
