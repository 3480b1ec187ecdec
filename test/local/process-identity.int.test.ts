import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { processIdentity } from "../../src/local/process-identity.ts";

describe("processIdentity", () => {
  it("is the same each time for a running process, and differs between processes", async () => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    await once(child, "spawn");
    const pid = child.pid ?? 0;
    try {
      expect(processIdentity(pid)).toBeTypeOf("string");
      expect(processIdentity(pid)).toBe(processIdentity(pid));
      expect(processIdentity(pid)).not.toBe(processIdentity(process.pid));
    } finally {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    expect(processIdentity(pid)).toBeUndefined();
  });

  it("is undefined for a pid that nobody has", () => {
    expect(processIdentity(2 ** 30)).toBeUndefined();
  });
});
