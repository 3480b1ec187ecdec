import { describe, expect, it } from "vitest";
import { brokerLossGraceMs, lookAgainMs } from "../../../src/base/limits.ts";
import type { DurationMs } from "../../../src/base/units.ts";
import { judgeTopology } from "../../../src/operator/plan/topology.ts";
import type { TopologyVerdict } from "../../../src/operator/plan/topology.ts";
import type { Observed } from "../../../src/operator/plan/observed.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import { actionTexts, check, empty, settled, stamp, withBroker, withConsumer, withData, withMetadata, withStream } from "./scenes.ts";
import type { Row } from "./scenes.ts";

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

describe("a stream that does not answer", () => {
  const failed = { kind: "failed", failure: { kind: "transient", code: "BROKER_TIMEOUT", message: "look at DURABLE_TIMER_TERMINALS" } } as const;
  const silentFor = (unreadForMs: number, scene = settled({ topology: { replicas: 3 } })): Observed => ({
    ...withBroker(scene, (broker) => ({ ...broker, streams: { ...broker.streams, terminals: failed } })),
    unreadForMs: unreadForMs as DurationMs,
  });
  const offline = (): Observed => withStream(settled({ topology: { replicas: 3 } }), "state", (stream) => ({ ...stream, replicas: stream.replicas.map((replica) => ({ ...replica, isOffline: true })) }));
  const retry = "Reconciling True ProgressingWithRetry";
  const rows: readonly Row[] = [
    { name: "flips nothing within the grace", scene: () => silentFor(brokerLossGraceMs - 1), actions: [], turns: [retry], requeueAfterMs: lookAgainMs, because: "leaders are elected within seconds" },
    {
      name: "is not known to be well after the grace",
      scene: () => silentFor(brokerLossGraceMs),
      actions: [],
      turns: ["Ready Unknown NotObserved", "TopologyReady Unknown NotObserved", "ResumeOpen Unknown BrokerUnreachable", retry, "AdmissionOpen Unknown BrokerUnreachable", "ReplicasHealthy Unknown NotObserved", "CapacityOK Unknown BrokerUnreachable", "InSync Unknown NotObserved"],
      requeueAfterMs: lookAgainMs,
      because: "a quorum that is lost may never come back by itself",
    },
    { name: "hides no replica that is seen to be offline", scene: () => silentFor(0, offline()), actions: [], turns: [retry, "ReplicasHealthy False ReplicaOffline"], requeueAfterMs: lookAgainMs, because: "the other streams told it" },
  ];
  it.each(rows)("$name", check);

  it("is named by what is Unknown for its sake", () => {
    expect(plan(silentFor(brokerLossGraceMs)).status.conditions?.find(({ type }) => type === "Ready")?.message).toBe("look at DURABLE_TIMER_TERMINALS.");
  });
});
