import { describe, expect, it } from "vitest";
import { plan } from "../../../src/operator/plan/plan.ts";
import { found, settled, valueOf, withBroker, withConsumer } from "./scenes.ts";

describe("timer counts", () => {
  it("counts timers from the sweep's summary, to two digits", () => {
    const scene = withBroker(settled(), (broker) => ({ ...broker, sweepSummary: found(JSON.stringify({ waiting: 1_234_567, elapsed: 340, overdue: 0 })) }));
    const busy = withConsumer(scene, "resume", (consumer) => ({ ...consumer, pending: 12_345, waitingPulls: 0 }));
    expect(plan(busy).status.timers).toEqual({ waiting: "1.2M", awaitingFeedback: "340", overdue: "0", resumesPending: "12k", resumePullers: "Absent" });
  });

  it("ignores a summary that it cannot read", () => {
    const scene = withBroker(settled(), (broker) => ({ ...broker, sweepSummary: found("{not json") }));
    expect(plan(scene).status.timers).toEqual(valueOf(found(plan(settled()).status.timers)));
  });
});
