import { describe, expect, it } from "vitest";
import { status } from "../../src/cli/status.ts";
import type { LookedLocal } from "../../src/cli/tools.ts";
import type { DurableTimerStatus } from "../../src/resource/durable-timer.ts";
import { ScriptedTools } from "./scripted-tools.ts";

const ready = (is: "True" | "False"): DurableTimerStatus => ({
  observedGeneration: 3,
  conditions: [
    { type: "Ready", status: is, reason: is === "True" ? "Serving" : "Provisioning", message: is === "True" ? "" : "Streams are being created.", lastTransitionTime: "2030-01-01T00:00:00Z" },
    { type: "BrokerReachable", status: "True", reason: "Connected", message: "", lastTransitionTime: "2030-01-01T00:00:00Z" },
  ],
  broker: { version: "2.15.2" },
  capacity: { worstStream: "DURABLE_TIMER_SNAPSHOTS", worstPercent: 60 },
  workers: { replicas: 2, readyReplicas: 1, summary: "1/2", selector: "" },
  timers: { waiting: "1.2M", awaitingFeedback: "340", overdue: "0" },
  incidents: [{ id: "lost-1", kind: "TopologyLost", message: "STATE is gone." }],
});

const shown = (looked: LookedLocal) => {
  const tools = new ScriptedTools();
  tools.looked = looked;
  status(tools.asTools(), { filePath: "a.yaml" });
  return tools;
};

describe("status", () => {
  it("shows a resource that runs, and ends with 0 when it is Ready", () => {
    const { out, exitCode } = shown({ kind: "found", name: "orders", generation: 3, status: ready("True"), holder: 42 });
    expect(out).toEqual([
      "DurableTimer orders: running in process 42",
      "  generation       3, observed 3",
      "  NATS             2.15.2",
      "  fullest stream   DURABLE_TIMER_SNAPSHOTS, 60 %",
      "  workers          1/2 ready",
      "  timers           1.2M waiting, 340 await feedback, 0 overdue",
      "Conditions:",
      "  Ready            True    Serving",
      "  BrokerReachable  True    Connected",
      "Incidents:",
      "  lost-1: STATE is gone.",
    ]);
    expect(exitCode).toBe(0);
  });

  const notServing = [
    { name: "is not Ready", looked: { kind: "found", name: "orders", generation: 3, status: ready("False"), holder: 42 }, says: "  Ready            False   Provisioning: Streams are being created." },
    { name: "was Ready when it last ran", looked: { kind: "found", name: "orders", generation: 3, status: ready("True") }, says: "DurableTimer orders: not running (as it was when it last ran)" },
    { name: "has never run", looked: { kind: "found", name: "orders", generation: 1 }, says: "DurableTimer orders: not running; it has never run here" },
  ] as const;
  it.each(notServing)("ends with 1 for a resource that $name", ({ looked, says }) => {
    const { out, exitCode } = shown(looked);
    expect(out).toContain(says);
    expect(exitCode).toBe(1);
  });

  it("ends with 2 for a file that cannot be used", () => {
    const { err, exitCode } = shown({ kind: "refused", problems: ["the file is empty"] });
    expect([err, exitCode]).toEqual([["a.yaml cannot be used:", "  - the file is empty"], 2]);
  });
});
