import { describe, it } from "vitest";
import { brokerLossGraceMs } from "../../../src/base/limits.ts";
import { check, outage, settled, unreached, withMetadata, withWorkers } from "./scenes.ts";
import { stamp, withStatus } from "./scenes.ts";
import type { Row } from "./scenes.ts";
import { plan } from "../../../src/operator/plan/plan.ts";

const gone = ["TopologyReady", "WorkersReady", "ResumeOpen", "AdmissionOpen", "ReplicasHealthy", "CapacityOK"].map((type) => `${type} Unknown BrokerUnreachable`);

describe("an outage", () => {
  const rows: readonly Row[] = [
    { name: "a short one changes nothing", scene: () => unreached(settled(), outage, 1_000), actions: [], turns: [], requeueAfterMs: brokerLossGraceMs - 1_000, because: "the broker is usually back before anyone could act" },
    { name: "a correction of the workers rolls during a short one", scene: () => withWorkers(unreached(settled(), outage, 1_000), { drift: ["image"] }), actions: ["Update the workers (image)"], turns: ["Reconciling True WorkersProgressing"], requeueAfterMs: brokerLossGraceMs - 1_000, because: "it may be what ends it" },
    {
      name: "a long one turns what lies behind the broker Unknown, and scales nothing",
      scene: () => unreached(settled(), outage, brokerLossGraceMs),
      actions: [],
      turns: ["Ready Unknown BrokerUnreachable", "BrokerReachable False BrokerUnreachable", "BrokerCompatible Unknown BrokerUnreachable", ...gone.slice(0, 3), "Reconciling True BrokerUnreachable", ...gone.slice(3), "CredentialsValid Unknown BrokerUnreachable", "InSync Unknown BrokerUnreachable"],
      because: "nothing is known of the timers",
    },
    { name: "somebody else's streams stay theirs during one", scene: () => { const scene = withWorkers(withMetadata(settled(), "state", stamp("c2/a/b")), { drift: ["servers"] }); return unreached(withStatus(scene, () => plan(scene).status), outage, 1_000); }, actions: [], turns: [], requeueAfterMs: brokerLossGraceMs - 1_000, because: "the last look said so" },
  ];
  it.each(rows)("$name", check);
});
