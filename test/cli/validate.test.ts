import { describe, expect, it } from "vitest";
import { complainOfFile, validate } from "../../src/cli/validate.ts";
import { ScriptedTools } from "./scripted-tools.ts";

describe("validate", () => {
  it("says that a file is valid and which broker it runs on", () => {
    const tools = new ScriptedTools();
    validate(tools.asTools(), "a.yaml");
    tools.checked = { kind: "valid", name: "orders", usesEmbeddedServer: false };
    validate(tools.asTools(), "a.yaml");
    expect(tools.out).toEqual([
      "a.yaml: DurableTimer orders is valid and runs with an embedded NATS server",
      "a.yaml: DurableTimer orders is valid and runs on the servers that it names",
    ]);
    expect(tools.exitCode).toBe(0);
  });

  it("lists every problem of a bad file on standard error and ends with 2", () => {
    const tools = new ScriptedTools();
    tools.checked = { kind: "refused", problems: ["spec.a is required", "spec.b is not a field of this resource"] };
    validate(tools.asTools(), "a.yaml");
    expect(tools.err).toEqual(["a.yaml cannot be used:", "  - spec.a is required", "  - spec.b is not a field of this resource"]);
    expect([tools.out, tools.exitCode]).toEqual([[], 2]);
  });

  it("complains of a file in the same way for every verb", () => {
    const tools = new ScriptedTools();
    complainOfFile(tools.asTools(), "b.yaml", ["x"]);
    expect([tools.err, tools.exitCode]).toEqual([["b.yaml cannot be used:", "  - x"], 2]);
  });
});
