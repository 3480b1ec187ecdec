import { describe, expect, it } from "vitest";
import { carriedOver, cause, statusOf, want, wasTrue } from "../../../src/operator/plan/verdict.ts";
import { settled } from "./scenes.ts";

describe("carriedOver", () => {
  it("repeats what the status has, and knows nothing of the rest", () => {
    const { status } = settled().resource;
    expect(carriedOver(status, ["TopologyReady", "DurableOnAck"])).toEqual([
      { type: "TopologyReady", status: "True", reason: "Provisioned", message: "" },
      { type: "DurableOnAck", status: "Unknown", reason: "NotObserved", message: "" },
    ]);
    expect(carriedOver(undefined, ["Ready"])).toEqual([want("Ready", "Unknown", cause("NotObserved"))]);
  });
});

describe("wasTrue", () => {
  it("is false for what was never looked at", () => {
    expect([wasTrue(undefined, "Ready"), wasTrue(settled().resource.status, "Ready"), wasTrue(settled().resource.status, "Paused")]).toEqual([false, true, false]);
  });
});

describe("statusOf", () => {
  it("takes the last word", () => {
    expect(statusOf([want("Ready", "True", cause("Serving")), want("Ready", "False", cause("Deleting"))], "Ready")).toBe("False");
    expect(statusOf([], "Ready")).toBe("Unknown");
  });
});
