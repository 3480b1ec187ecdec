import { describe, expect, it } from "vitest";
import { plan } from "../../../src/operator/plan/plan.ts";
import { isSameStatus } from "../../../src/operator/plan/status.ts";
import { coarseCount } from "../../../src/operator/plan/timer-counts.ts";
import { found, settled, valueOf, withBroker, withConsumer, withStatus } from "./scenes.ts";

describe("timer counts", () => {
  it("counts timers from the sweep's summary, to two digits", () => {
    const scene = withBroker(settled(), (broker) => ({ ...broker, sweepSummary: found(JSON.stringify({ waiting: 1_234_567, elapsed: 340, overdue: 0 })) }));
    const busy = withConsumer(scene, "resume", (consumer) => ({ ...consumer, pending: 12_345, waitingPulls: 0 }));
    expect(plan(busy).status.timers).toEqual({ waiting: "1.2M", awaitingFeedback: "340", overdue: "0", resumesPending: "12k", resumePullers: "Absent" });
  });

  const near = [
    { had: "1.2M", count: 1_299_999, shows: "1.2M", because: "less than a step above" },
    { had: "1.2M", count: 1_100_001, shows: "1.2M", because: "less than a step below" },
    { had: "1.2M", count: 1_300_000, shows: "1.3M", because: "a whole step above" },
    { had: "1.2M", count: 1_100_000, shows: "1.1M", because: "a whole step below" },
    { had: "990", count: 999, shows: "990", because: "a step is as wide as it was" },
    { had: "1k", count: 1_050, shows: "1k", because: "a step of the last number" },
    { had: "100", count: 99, shows: "99", because: "small numbers are exact" },
    { had: "7", count: 104, shows: "100", because: "an exact number has no step" },
    { had: "nonsense", count: 340, shows: "340", because: "somebody else's text is no number" },
  ];
  it.each(near)("shows $shows for $count after $had", ({ had, count, shows, because }) => {
    expect(coarseCount(count, had), because).toBe(shows);
  });

  it("does not write for a count that moves between two steps", () => {
    const counting = (waiting: number) => withBroker(settled(), (broker) => ({ ...broker, sweepSummary: found(JSON.stringify({ waiting })) }));
    const before = withStatus(counting(1_249_000), () => plan(counting(1_249_000)).status);
    const after = { ...before, broker: counting(1_251_000).broker ?? before.broker };
    expect(isSameStatus(before.resource.status, plan(after as typeof before).status)).toBe(true);
  });

  it("ignores a summary that it cannot read", () => {
    const scene = withBroker(settled(), (broker) => ({ ...broker, sweepSummary: found("{not json") }));
    expect(plan(scene).status.timers).toEqual(valueOf(found(plan(settled()).status.timers)));
  });
});
