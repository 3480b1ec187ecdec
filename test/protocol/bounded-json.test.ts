import { fc } from "./property.ts";
import { describe, expect, test } from "vitest";
import { readBoundedJson, writeAsciiJson, type JsonValue } from "../../src/protocol/bounded-json.ts";

const limits = { depthMax: 4, keyCountMax: 64 };

describe("reading", () => {
  test.each([
    ["a duplicate key", '{"a":1,"b":{"c":1,"c":2}}', "b.c", "occurs twice"],
    ["a duplicate key in another spelling", '{"a":1,"\\u0061":2}', "a", "occurs twice"],
    ["a fraction", '{"a":1.5}', "a", "integer"],
    ["an exponent", '{"a":1e3}', "a", "integer"],
    ["a number beyond 2^53", '{"a":9007199254740993}', "a", "integer"],
    ["minus zero", '{"a":-0}', "a", "integer"],
    ["a leading zero", '{"a":01}', "a", "integer"],
    ["too deep nesting", '{"a":{"b":{"c":{"d":{"e":1}}}}}', "a.b.c.d.e", "nests deeper"],
    ["too many keys", `{${Array.from({ length: 65 }, (_, i) => `"k${String(i)}":1`).join(",")}}`, "k64", "more than 64 keys"],
    ["half a surrogate pair", '{"a":"\\ud800"}', "a", "surrogate"],
    ["text after the end", '{"a":1} x', "", "after its end"],
    ["a trailing comma", '{"a":1,}', "", "quoted key"],
    ["an unterminated string", '{"a":"b', "a", "malformed string"],
    ["a bad escape", '{"a":"\\x41"}', "a", "malformed string"],
    ["a character outside ASCII", '{"a":"ü"}', "", "printable ASCII"],
    ["a line break", '{"a":\n1}', "", "printable ASCII"],
    ["nothing", "", "", "not JSON"],
  ])("refuses %s and says where", (_name, text, path, problem) => {
    const result = readBoundedJson(text, limits);
    expect(result).toMatchObject({ ok: false, path });
    expect(result.ok ? "" : result.problem).toContain(problem);
  });

  test("keeps a key named __proto__ as a plain key", () => {
    const result = readBoundedJson('{"__proto__":{"polluted":1}}', limits);
    expect(result.ok && Object.keys(result.value as object)).toEqual(["__proto__"]);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  test("never throws, whatever the text", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => {
      const result = readBoundedJson(text, limits);
      expect(result.ok || result.problem.length > 0).toBe(true);
    }));
  });

  test("reads back what was written", () => {
    const text = fc.string({ unit: "grapheme" });
    const leaf = fc.oneof(text, fc.maxSafeInteger().filter((value) => !Object.is(value, -0)), fc.boolean(), fc.constant(null));
    const value: fc.Arbitrary<JsonValue> = fc.oneof(leaf, fc.array(leaf, { maxLength: 4 }), fc.dictionary(text.filter((key) => key !== "__proto__"), leaf, { maxKeys: 6 }));
    fc.assert(fc.property(value, (written) => {
      const result = readBoundedJson(writeAsciiJson(written), limits);
      expect(result.ok && JSON.parse(JSON.stringify(result.value))).toEqual(JSON.parse(JSON.stringify(written)));
    }));
  });
});
