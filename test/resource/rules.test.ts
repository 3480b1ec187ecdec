import { describe, expect, it } from "vitest";
import { present } from "../../src/base/assert.ts";
import { resourceBounds } from "../../src/resource/bounds.ts";
import type { DurableTimerSpec } from "../../src/resource/durable-timer.ts";
import { brokenRules, changeRules, immutableChanges, immutablePaths, nameRule, sizeRule, specRules } from "../../src/resource/rules.ts";
import { specSchema } from "../../src/resource/spec.ts";
import { parseSpec } from "../../src/resource/validate.ts";
import { changeExamples, patched, specExamples, type Patch } from "./examples.ts";

function spec(patch: Patch): DurableTimerSpec {
  const parsed = parseSpec(patched(patch));
  return present(parsed.ok ? parsed.spec : undefined, "a valid example");
}

describe("immutableChanges", () => {
  it.each(changeExamples)("judges $name", ({ from, patch, field, because }) => {
    const fields = immutableChanges(spec(from), spec(patch)).map((problem) => problem.field);
    expect(fields, because).toEqual(field === undefined ? [] : [field]);
  });

  it("has an example that breaks each rule about changes", () => {
    const broken = new Set(changeExamples.map(({ field }) => field));
    const named = changeRules.map(({ at, field }) => `spec.${at}${field === undefined ? "" : `.${field}`}`);
    expect(named.filter((field) => !broken.has(field))).toEqual([]);
  });

  it("covers every path of the list", () => {
    expect(immutablePaths.every((path) => changeRules.some(({ at, field }) => `${at}.${String(field)}` === path))).toBe(true);
  });
});

describe("brokenRules", () => {
  it("has an example that breaks each rule about specs", () => {
    const broken = specExamples.flatMap(({ patch }) => {
      const read = specSchema.safeParse(patched(patch));
      return read.success ? brokenRules(read.data).map(({ field }) => field) : [];
    });
    const named = specRules.map(({ at, field }) => `spec.${at}${field === undefined ? "" : `.${field}`}`);
    expect(named.filter((field) => !broken.includes(field))).toEqual([]);
  });
});

describe("rules without a spec", () => {
  it("count the characters of a name", () => {
    expect([46, 47].map((length) => nameRule.holds("n".repeat(length)))).toEqual([true, false]);
  });

  it("state the bounds that parsing applies", () => {
    expect(sizeRule.cel).toContain(String(resourceBounds.streamBytesMin));
    expect(sizeRule.cel).toContain(String(Number.MAX_SAFE_INTEGER));
  });
});
