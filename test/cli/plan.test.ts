import { describe, expect, it } from "vitest";
import { plan } from "../../src/cli/plan.ts";
import type { GatheredLocal } from "../../src/cli/tools.ts";
import { empty, settled } from "../operator/plan/scenes.ts";
import { ScriptedTools } from "./scripted-tools.ts";

const planned = async (gathered: GatheredLocal) => {
  const tools = new ScriptedTools();
  tools.gathered = gathered;
  await plan(tools.asTools(), { filePath: "a.yaml" });
  return tools;
};

describe("plan", () => {
  it("prints what would be done in an empty account, in order, with the gates as they would show", async () => {
    const { out, exitCode } = await planned({ kind: "observed", observed: empty() });
    const text = out.join("\n");
    expect(text).toMatch(/^1\. Create stream KV_DURABLE_TIMER_STATE/);
    expect(text).toMatch(/Create stream DURABLE_TIMER_COMMANDS/);
    expect(text).toContain("BrokerReachable  True    Connected");
    expect(exitCode).toBe(0);
  });

  it("says that there is nothing to do when everything is as desired", async () => {
    const { out } = await planned({ kind: "observed", observed: settled() });
    expect(out.join("\n")).toMatch(/^Nothing to do\./);
  });

  it("ends with 2 for a file that cannot be used", async () => {
    const { err, exitCode } = await planned({ kind: "refused", problems: ["spec.x is required"] });
    expect([err, exitCode]).toEqual([["a.yaml cannot be used:", "  - spec.x is required"], 2]);
  });
});
