import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";

/** Asks in a process of its own, whose PATH leads nowhere. */
function toolsMissingWithoutPath(tier: string): readonly { readonly tool: string; readonly remedy: string }[] {
  const program = `import { toolsMissing } from "./tools.ts"; console.log(JSON.stringify(toolsMissing("${tier}")))`;
  const output = execFileSync(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: import.meta.dirname,
    env: { PATH: "/nonexistent" },
    encoding: "utf8",
  });
  return JSON.parse(output) as ReturnType<typeof toolsMissingWithoutPath>;
}

it("names each tool that a machine lacks, with what to do about it", () => {
  const missing = toolsMissingWithoutPath("api");
  expect(missing).toContainEqual({ tool: "OpenSSL 3", remedy: expect.stringContaining("apt-get install openssl") as string });
});

it("asks at least as much for a node as for a control plane", () => {
  expect(toolsMissingWithoutPath("node")).toEqual(expect.arrayContaining([...toolsMissingWithoutPath("api")]));
});
