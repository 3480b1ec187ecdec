import { expect, test } from "vitest";
import { isJsonObject, stableJson } from "../../../src/kube/manifests/json.ts";

test("the order of keys does not matter, at any depth, and that of lists does", () => {
  expect(stableJson({ b: [{ d: 1, c: 2 }], a: "x" })).toBe(stableJson({ a: "x", b: [{ c: 2, d: 1 }] }));
  expect(stableJson([1, 2])).not.toBe(stableJson([2, 1]));
});

test("a field that is undefined is absent", () => {
  expect(stableJson({ a: undefined, b: 1 })).toBe('{"b":1}');
});

test("lists and null are no objects", () => {
  expect([{}, [], null, "x", undefined].map(isJsonObject)).toEqual([true, false, false, false, false]);
});
