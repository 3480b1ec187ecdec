import { expect, it } from "vitest";
import { version } from "../../src/cli/version.ts";
import { ScriptedTools } from "./scripted-tools.ts";

it("version prints name and version", () => {
  const tools = new ScriptedTools();
  version(tools.asTools());
  expect([tools.out, tools.exitCode]).toEqual([["durable-timer 1.2.3"], 0]);
});
