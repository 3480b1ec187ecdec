import { describe, expect, it } from "vitest";
import { cliProgram } from "../../src/cli/program.ts";
import { ScriptedTools } from "./scripted-tools.ts";

async function run(tools: ScriptedTools, ...words: string[]): Promise<void> {
  await cliProgram(tools.asTools()).parseAsync(words, { from: "user" });
}

describe("the command line", () => {
  const verbs = [
    { words: ["up"], asked: "run durabletimer.yaml" },
    { words: ["up", "-f", "a.yaml", "--state", "s"], asked: "run a.yaml s" },
    { words: ["plan", "--file", "a.yaml"], asked: "gather a.yaml" },
    { words: ["status", "--state", "s"], asked: "look durabletimer.yaml s" },
    { words: ["validate", "-f", "a.yaml"], asked: "check a.yaml" },
  ];
  it.each(verbs)("$words asks for: $asked", async ({ words, asked }) => {
    const tools = new ScriptedTools();
    await run(tools, ...words);
    expect(tools.asked).toEqual([asked]);
  });

  const mistakes = [
    { words: ["upp"], says: "unknown command 'upp'" },
    { words: ["up", "--bogus"], says: "unknown option '--bogus'" },
    { words: ["up", "-f"], says: "argument missing" },
    { words: ["validate", "--state", "s"], says: "unknown option '--state'" },
    { words: ["up", "extra"], says: "too many arguments" },
  ];
  it.each(mistakes)("$words is refused on standard error: $says", async ({ words, says }) => {
    const tools = new ScriptedTools();
    await expect(run(tools, ...words)).rejects.toMatchObject({ name: "CommanderError" });
    expect(tools.err.join("\n")).toContain(says);
    expect([tools.asked, tools.out]).toEqual([[], []]);
  });

  it("lists every verb in its help", async () => {
    const tools = new ScriptedTools();
    await expect(run(tools, "--help")).rejects.toMatchObject({ exitCode: 0 });
    for (const verb of ["up", "plan", "status", "validate", "version"]) expect(tools.out.join("\n")).toContain(`\n  ${verb}`);
  });
});
