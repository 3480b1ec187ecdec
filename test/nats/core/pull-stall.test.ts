import { describe, expect, test } from "vitest";
import { pullStallMsMax } from "../../../src/base/limits.ts";
import type { MonotonicMs } from "../../../src/base/units.ts";
import type { ConsumerState } from "../../../src/nats/core/jetstream.ts";
import { PullStall } from "../../../src/nats/core/pull-stall.ts";

const owing: ConsumerState = { name: "C", config: { max_ack_pending: 100 }, createdAt: "", pending: 5, ackPending: 3, redelivered: 0, waitingPulls: 1, paused: false, deliveredCount: 7 };

/** Looks every two seconds for twice the longest stall. */
function looks(stateAt: (index: number) => ConsumerState, isAsking = true): number {
  const stall = new PullStall();
  return Array.from({ length: 11 }, (_, index) => stall.isStalled(stateAt(index), { isAsking, nowMs: (index * 2_000) as MonotonicMs })).filter(Boolean).length;
}

describe("a consumer that is asked", () => {
  test("and delivers nothing of what it holds is stalled, once per longest stall", () => {
    expect([looks(() => owing), pullStallMsMax]).toEqual([1, 10_000]);
  });

  test.each([
    { name: "holds nothing", state: () => ({ ...owing, pending: 0 }), because: "there is nothing to deliver" },
    { name: "delivers to others", state: (index: number) => ({ ...owing, deliveredCount: 7 + index }), because: "it lives" },
    { name: "is paused", state: () => ({ ...owing, paused: true }), because: "somebody wants it so" },
    { name: "has delivered all that may be unacknowledged", state: () => ({ ...owing, ackPending: 100 }), because: "its users are slow, not it" },
    { name: "does not say what it delivered", state: () => { const { deliveredCount: _, ...rest } = owing; return rest; }, because: "nothing is known" },
    { name: "holds nothing now and then", state: (index: number) => ({ ...owing, pending: index % 4 }), because: "something took it" },
  ])("and $name is not stalled: $because", ({ state, because }) => {
    expect(looks(state), because).toBe(0);
  });

  test("by nobody is not stalled", () => {
    expect(looks(() => owing, false)).toBe(0);
  });
});
