import { describe, expect, it } from "vitest";
import type { Observed } from "../../../src/operator/plan/observed.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import { check, conditionTexts, gibibyte, settled, share, withFacts, withStatus, withStream } from "./scenes.ts";
import type { Row } from "./scenes.ts";

describe("capacity", () => {
  const rows: readonly Row[] = [
    { name: "a full live stream closes admission", scene: () => withStream(settled(), "state", share(86, 10 * gibibyte)), actions: [], turns: ["AdmissionOpen False ClosedByCapacity", "CapacityOK False AboveSoftLimit"], because: "what is accepted must have room to end" },
    { name: "a full backlog is no reason to close admission", scene: () => withStream(settled(), "commands", share(95, 2 * gibibyte)), actions: [], turns: ["CapacityOK False AboveSoftLimit"], because: "taking starts is what empties it" },
    { name: "below the closing limit nothing turns", scene: () => withStream(settled(), "state", share(84, 10 * gibibyte)), actions: [], turns: [], because: "the limit is 85 %" },
    { name: "a full account closes admission", scene: () => withFacts(settled(), { storageBytes: 90, storageBytesMax: 100 }), actions: [], turns: ["AdmissionOpen False ClosedByCapacity", "CapacityOK False AboveSoftLimit"], because: "streams without a limit share it" },
    { name: "a replica that is offline is shown", scene: () => withStream(settled({ topology: { replicas: 3 } }), "state", (stream) => ({ ...stream, replicas: stream.replicas.map((replica, index) => ({ ...replica, isOffline: index === 0 })) })), actions: [], turns: ["ReplicasHealthy False ReplicaOffline"], because: "one more loss would stop the stream" },
    { name: "a replica that lags is shown", scene: () => withStream(settled({ topology: { replicas: 3 } }), "state", (stream) => ({ ...stream, replicas: stream.replicas.map((replica) => ({ ...replica, isCurrent: false })) })), actions: [], turns: ["ReplicasHealthy False ReplicasBehind"], because: "it cannot take over" },
    { name: "a stream without a leader is shown", scene: () => withStream(settled({ topology: { replicas: 3 } }), "state", ({ leader: _leader, ...stream }) => stream), actions: [], turns: ["ReplicasHealthy False NoLeader"], because: "it takes no writes" },
  ];
  it.each(rows)("$name", check);

  it("opens again only below the lower limit", () => {
    const closing = withStream(settled(), "state", share(86, 10 * gibibyte));
    const closed = withStatus(closing, () => plan(closing).status);
    const lower = withStream(closed, "state", share(76, 10 * gibibyte));
    expect(conditionTexts(plan(lower).status)).toContain("AdmissionOpen False ClosedByCapacity");
    expect(conditionTexts(plan(withStream(closed, "state", share(74, 10 * gibibyte))).status)).toContain("AdmissionOpen True Open");
  });

  it("moves percentages in steps, and not while they are near the last one", () => {
    const at = (observed: Observed, percent: number): Observed => {
      const scene = withStream(observed, "state", share(percent, 10 * gibibyte));
      return withStatus(scene, () => plan(scene).status);
    };
    const shown = [42, 45.5, 46.5, 44.5, 38.9].reduce<{ scene: Observed; percents: readonly (number | undefined)[] }>(
      ({ scene, percents }, percent) => {
        const next = at(scene, percent);
        return { scene: next, percents: [...percents, next.resource.status?.capacity?.worstPercent] };
      },
      { scene: settled(), percents: [] },
    );
    expect(shown.percents).toEqual([40, 40, 45, 45, 35]);
  });
});
