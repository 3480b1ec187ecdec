import { describe, expect, it } from "vitest";
import { contextBytesMax, delayMsMaxDefault, payloadBytesMax } from "../../src/base/limits.ts";
import { resourceBounds } from "../../src/resource/bounds.ts";

describe("resourceBounds", () => {
  it("let the smallest stream hold a largest start with its context", () => {
    expect(resourceBounds.streamBytesMin).toBeGreaterThan(payloadBytesMax + contextBytesMax);
  });

  it("let nobody ask for a longer delay than the default allows, which is as far as is tested", () => {
    expect(resourceBounds.delaySecondsMax * 1_000).toBe(delayMsMaxDefault);
  });

  it("leave a pod's name its two suffixes within 63 characters", () => {
    const replicaSetHash = "-0123456789";
    const podSuffix = "-01234";
    expect(resourceBounds.resourceNameCharsMax + replicaSetHash.length + podSuffix.length).toBeLessThanOrEqual(63);
  });
});
