import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { GENERATED_FILES, staleFiles, yamlText } from "../../scripts/generate.ts";

describe("generated files", () => {
  it("are those that their sources give", () => {
    expect(staleFiles(GENERATED_FILES)).toEqual([]);
  });

  it("are named when they are missing or differ by a byte", () => {
    const [first] = GENERATED_FILES;
    const changed = { path: String(first?.path), render: () => `${String(first?.render())}\n` };
    expect(staleFiles([...GENERATED_FILES, changed, { path: "crds/no-such-file.yaml", render: () => "" }])).toEqual([changed.path, "crds/no-such-file.yaml"]);
  });

  it("say in their beginning that they are generated", () => {
    expect(GENERATED_FILES.filter(({ render }) => !/generated/i.test(render().slice(0, 300))).map(({ path }) => path)).toEqual([]);
  });
});

describe("yamlText", () => {
  const rows = [
    { name: "a rule with quotes and colons", value: { rule: "type(self) == int ? self : 'a: b'" } },
    { name: "text that looks like another kind", value: ["true", "Unknown", "1e3", "0x1", "null", "2026-11-30", "~", ""] },
    { name: "long text on one line", value: { message: "word ".repeat(100).trim() } },
    { name: "one list in two places", value: { a: shared(), b: shared() } },
  ];

  it.each(rows)("reads back: $name", ({ value }) => {
    expect(parse(yamlText(value))).toEqual(value);
  });
});

function shared(): readonly string[] {
  return ["nats.auth", "workers.auth"];
}
