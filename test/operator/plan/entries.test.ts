import { describe, expect, it } from "vitest";
import { plan } from "../../../src/operator/plan/plan.ts";
import type { Observed } from "../../../src/operator/plan/observed.ts";
import { empty, found, gibibyte, oldIncarnation, settled, share, stampedAll, withBroker, withData, withStatus, withStream } from "./scenes.ts";

function entry(observed: Observed, name: string): unknown {
  return plan(observed).status.topology?.streams.find((stream) => stream.name === name);
}

describe("what the status remembers of a stream", () => {
  it("is its life, its limit and how full it is", () => {
    expect(entry(withStream(settled(), "terminals", share(42, 20 * gibibyte)), "DURABLE_TIMER_TERMINALS")).toEqual({
      name: "DURABLE_TIMER_TERMINALS", incarnation: oldIncarnation, created: "2026-11-30T19:00:00.123456789Z", replicas: 1, everHeldData: false, limitBytes: "20Gi", usedPercent: 40,
    });
  });

  it("has no limit for SCHEDULES", () => {
    expect(entry(settled(), "DURABLE_TIMER_SCHEDULES")).not.toHaveProperty("limitBytes");
  });

  it("is that it held data once anything was stored, also after it is empty again", () => {
    const used = withStream(settled(), "feedback", (stream) => ({ ...stream, messages: 0, lastSequence: 4, firstSequence: 5 }));
    expect(entry(used, "DURABLE_TIMER_FEEDBACK")).toMatchObject({ everHeldData: true });
    const restored = withStream(withStatus(used, () => plan(used).status), "feedback", (stream) => ({ ...stream, lastSequence: 0 }));
    expect(entry(restored, "DURABLE_TIMER_FEEDBACK")).toMatchObject({ everHeldData: true });
  });

  it("counts no notes of ours as data of STATE", () => {
    const noted = withStream(settled(), "state", (stream) => ({ ...stream, messages: 3, lastSequence: 20 }));
    expect(entry(noted, "KV_DURABLE_TIMER_STATE")).toMatchObject({ everHeldData: false });
    const started = withStream(noted, "commands", (stream) => ({ ...stream, lastSequence: 1 }));
    expect(entry(started, "KV_DURABLE_TIMER_STATE")).toMatchObject({ everHeldData: true });
    expect(entry(withBroker(noted, (broker) => ({ ...broker, stateRecord: found({ sequence: 1, isLive: true }) })), "KV_DURABLE_TIMER_STATE")).toMatchObject({ everHeldData: true });
  });

  it("stays as it was while the stream is lost", () => {
    const lost = withStream(withData(settled()), "feedback", undefined);
    expect(entry(lost, "DURABLE_TIMER_FEEDBACK")).toEqual(lost.resource.status?.topology?.streams.find(({ name }) => name === "DURABLE_TIMER_FEEDBACK"));
  });

  it("is nothing for a stream that is not stamped yet", () => {
    const unowned = withStatus(stampedAll(settled({ topology: { adoption: { policy: "IfUnowned" } } }), {}), () => empty().resource.status);
    expect(plan(unowned).status.topology).toBeUndefined();
  });
});
