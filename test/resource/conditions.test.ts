import { describe, expect, it } from "vitest";
import type { EpochMs } from "../../src/base/units.ts";
import {
  conditionReasons, conditionTypes, eventReasons, isTrue, nextConditions, unobservedConditions, type Condition, type WantedCondition,
} from "../../src/resource/conditions.ts";
import { statusSchema } from "../../src/resource/status.ts";

const firstMs = Date.UTC(2026, 10, 30, 20, 0, 0, 123) as EpochMs;
const laterMs = (firstMs + 60_000) as EpochMs;
const first = "2026-11-30T20:00:00Z";
const later = "2026-11-30T20:01:00Z";

const ready: WantedCondition = { type: "Ready", status: "True", reason: "Serving", message: "" };
const reachable: WantedCondition = { type: "BrokerReachable", status: "True", reason: "Connected", message: "" };
const stalled: WantedCondition = { type: "Stalled", status: "True", reason: "OwnedByAnother", message: "Owned by a/b/c" };

const shown = (wanted: WantedCondition, lastTransitionTime: string, observedGeneration: number): Condition => ({ ...wanted, observedGeneration, lastTransitionTime });

describe("nextConditions", () => {
  const before = nextConditions([], [reachable, ready], { generation: 1, nowMs: firstMs });

  it("orders conditions whatever the order in which they are wanted", () => {
    expect(before).toEqual([shown(ready, first, 1), shown(reachable, first, 1)]);
  });

  it("gives the same list when nothing changed but the time", () => {
    expect(nextConditions(before, [ready, reachable], { generation: 1, nowMs: laterMs })).toEqual(before);
  });

  it("keeps the transition time when only reason, message or generation change", () => {
    const explained: WantedCondition = { ...ready, reason: "Provisioned", message: "as wanted" };
    expect(nextConditions(before, [explained, reachable], { generation: 2, nowMs: laterMs })[0]).toEqual(shown(explained, first, 2));
  });

  it("moves the transition time when the status flips", () => {
    const lost: WantedCondition = { type: "Ready", status: "False", reason: "BrokerUnreachable", message: "no answer" };
    expect(nextConditions(before, [lost, reachable], { generation: 1, nowMs: laterMs })).toEqual([shown(lost, later, 1), shown(reachable, first, 1)]);
  });

  it("drops what is no longer wanted", () => {
    expect(nextConditions(before, [ready], { generation: 1, nowMs: laterMs })).toEqual([shown(ready, first, 1)]);
  });

  it.each(["False", "Unknown"] as const)("leaves out Stalled when it is %s", (status) => {
    const had = nextConditions(before, [ready, reachable, stalled], { generation: 1, nowMs: firstMs });
    expect(had.map(({ type }) => type)).toEqual(["Ready", "BrokerReachable", "Stalled"]);
    expect(nextConditions(had, [ready, reachable, { ...stalled, status }], { generation: 1, nowMs: laterMs })).toEqual(before);
  });
});

describe("the lists", () => {
  it("show everything as Unknown at first sight, but for what is present only while True or known", () => {
    const hidden = ["Reconciling", "Stalled", "DurableOnAck"];
    expect(unobservedConditions.map(({ type }) => type)).toEqual(conditionTypes.filter((type) => !hidden.includes(type)));
    expect(unobservedConditions.every(({ status }) => status === "Unknown")).toBe(true);
  });

  it("hold no word twice, and only CamelCase", () => {
    for (const words of [conditionTypes, conditionReasons, eventReasons]) {
      expect(new Set(words).size).toBe(words.length);
      expect(words.filter((word) => !/^[A-Z][A-Za-z]+$/.test(word))).toEqual([]);
    }
  });

  it("make a list that the status accepts", () => {
    const conditions = nextConditions([], [...unobservedConditions], { generation: 0, nowMs: firstMs });
    expect(statusSchema.safeParse({ conditions }).success).toBe(true);
  });
});

describe("isTrue", () => {
  it("is false for a condition that is not there", () => {
    const conditions = nextConditions([], [ready], { generation: 1, nowMs: firstMs });
    expect([isTrue(conditions, "Ready"), isTrue(conditions, "Stalled")]).toEqual([true, false]);
  });
});
