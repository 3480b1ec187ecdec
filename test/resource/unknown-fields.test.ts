import { describe, expect, it } from "vitest";
import { z } from "zod";
import { unknownFields } from "../../src/resource/unknown-fields.ts";

const schema = z.object({
  size: z.string(),
  inner: z.object({ flag: z.boolean() }).optional(),
  list: z.array(z.object({ name: z.string() })).optional(),
  map: z.record(z.string(), z.object({ value: z.string() })).optional(),
  open: z.looseObject({ name: z.string() }).optional(),
});

const rows = [
  { name: "nothing in a document that fits", value: { size: "1", inner: { flag: true } }, want: [] },
  { name: "a field at the top", value: { sise: "1" }, want: ["doc.sise"] },
  { name: "a field below", value: { inner: { flag: true, flags: [] } }, want: ["doc.inner.flags"] },
  { name: "a field of an item", value: { list: [{ name: "a" }, { nam: "b" }] }, want: ["doc.list[1].nam"] },
  { name: "a field of a map's value, whatever its key", value: { map: { anything: { value: "1", valu: "2" } } }, want: ["doc.map.anything.valu"] },
  { name: "nothing in what is open", value: { open: { name: "a", more: { deep: 1 } } }, want: [] },
  { name: "nothing in values of the wrong kind", value: { size: { deep: 1 }, inner: "text", list: 5 }, want: [] },
];

describe("unknownFields", () => {
  it.each(rows)("finds $name", ({ value, want }) => {
    expect(unknownFields(value, schema, ["doc"]).map(({ field }) => field)).toEqual(want);
  });

  it.each([null, undefined, 1, "text", []])("finds nothing in %j", (value) => {
    expect(unknownFields(value, schema, [])).toEqual([]);
  });
});
