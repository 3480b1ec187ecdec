import { describe, expect, it } from "vitest";
import { up } from "../../src/cli/up.ts";
import { ScriptedTools } from "./scripted-tools.ts";

describe("up", () => {
  it.each([0, 1] as const)("ends with the code of the run: %s", async (code) => {
    const tools = new ScriptedTools();
    tools.runResult = code;
    await up(tools.asTools(), { filePath: "a.yaml" });
    expect(tools.exitCode).toBe(code);
  });
});
