import { describe, expect, it } from "vitest";
import { judgeTopology } from "../../../src/operator/plan/topology.ts";
import type { TopologyVerdict } from "../../../src/operator/plan/topology.ts";
import type { Observed } from "../../../src/operator/plan/observed.ts";
import { actionTexts, empty, settled, stamp, withBroker, withConsumer, withData, withMetadata, withStream } from "./scenes.ts";

function judged(observed: Observed): TopologyVerdict {
  return judgeTopology(observed, observed.broker?.kind === "reached" ? observed.broker : expect.fail("a reached broker"));
}

describe("judgeTopology", () => {
  it("creates each consumer right after its stream, and the door of COMMANDS last", () => {
    const names = actionTexts(judged(empty())).map((text) => text.split(" ").slice(1, 3).join(" "));
    expect(names.indexOf("stream DURABLE_TIMER_COMMANDS")).toBe(names.length - 2);
    expect(names.indexOf("consumer DURABLE_TIMER_WAKE_SERVICE")).toBe(names.indexOf("stream DURABLE_TIMER_SCHEDULES") + 1);
  });

  it("knows whether the streams are ours to act on", () => {
    const silent = withBroker(settled(), (broker) => ({ ...broker, ownerKey: { kind: "failed", failure: { kind: "transient", code: "BROKER_TIMEOUT", message: "read it" } } }));
    const scenes = [settled(), empty(), withStream(withData(settled()), "commands", undefined), withMetadata(settled(), "resumes", stamp("c2/a/b")), silent];
    expect(scenes.map((scene) => judged(scene).standing)).toEqual(["ours", "ours", "ours", "foreign", "unread"]);
  });

  it("acts on nothing that is not ours or could not be read", () => {
    const broken = withConsumer(withMetadata(settled(), "resumes", stamp("c2/a/b")), "wake", undefined);
    const silent = withBroker(withConsumer(settled(), "wake", undefined), (broker) => ({
      ...broker,
      consumers: { ...broker.consumers, start: { kind: "failed", failure: { kind: "transient", code: "BROKER_TIMEOUT", message: "look at it" } } },
    }));
    expect([broken, silent].map((scene) => judged(scene).actions)).toEqual([[], []]);
  });

  it("shows a denied question before one without an answer", () => {
    const scene = withBroker(settled(), (broker) => ({
      ...broker,
      streams: {
        ...broker.streams,
        state: { kind: "failed", failure: { kind: "transient", code: "BROKER_TIMEOUT", message: "look at it" } },
        commands: { kind: "failed", failure: { kind: "denied", code: "BROKER_PERMISSION", message: "look at it" } },
      },
    }));
    expect(judged(scene).stall?.reason).toBe("PermissionDenied");
  });
});
