import { describe, expect, it } from "vitest";
import { concludedConditions } from "../../../src/operator/plan/conclude.ts";
import { cause, want } from "../../../src/operator/plan/verdict.ts";
import { gateTypes } from "../../../src/resource/conditions.ts";
import type { ConditionReason, ConditionStatus } from "../../../src/resource/conditions.ts";

type Gates = Readonly<Partial<Record<(typeof gateTypes)[number], readonly [status: ConditionStatus, reason: ConditionReason]>>>;

/** What is shown of Ready, Reconciling and Stalled when every gate is open but these. */
function shown(gates: Gates, more: { readonly isPaused?: boolean; readonly stall?: ConditionReason; readonly progress?: ConditionReason } = {}): readonly string[] {
  const wanted = gateTypes.map((type) => {
    const [status, reason] = gates[type] ?? ["True", "Open"];
    return want(type, status, cause(reason));
  });
  const { isPaused = false, stall, progress } = more;
  const conditions = concludedConditions({ wanted, isPaused, ...(stall === undefined ? {} : { stall: cause(stall) }), ...(progress === undefined ? {} : { progress: cause(progress) }) });
  return ["Ready", "Reconciling", "Stalled"].flatMap((type) => conditions.findLast((one) => one.type === type) ?? []).map(({ type, status, reason }) => `${type} ${status} ${reason}`);
}

describe("concludedConditions", () => {
  const rows: readonly { readonly name: string; readonly gates: Gates; readonly more?: Parameters<typeof shown>[1]; readonly want: readonly string[]; readonly because: string }[] = [
    { name: "every gate open", gates: {}, want: ["Ready True Serving"], because: "tools read the absence of progress and stall as settled" },
    { name: "a rollout while Ready", gates: {}, more: { progress: "WorkersProgressing" }, want: ["Ready True Serving", "Reconciling True WorkersProgressing"], because: "a rollout does not flap Ready" },
    { name: "one gate closed", gates: { WorkersReady: ["False", "WorkersProgressing"] }, want: ["Ready False WorkersProgressing", "Reconciling True WorkersProgressing"], because: "patience is needed" },
    { name: "several gates closed", gates: { TopologyReady: ["False", "Provisioning"], WorkersReady: ["False", "WaitingForTopology"] }, want: ["Ready False Provisioning", "Reconciling True Provisioning"], because: "the first one is the cause of the others" },
    { name: "a stall", gates: { TopologyReady: ["False", "TopologyLost"] }, more: { stall: "TopologyLost", progress: "Provisioning" }, want: ["Ready False TopologyLost", "Stalled True TopologyLost"], because: "never both: a person is needed" },
    { name: "a stall while Ready", gates: {}, more: { stall: "ProgressDeadlineExceeded" }, want: ["Ready True Serving", "Stalled True ProgressDeadlineExceeded"], because: "the old workers still work" },
    { name: "scaled to zero", gates: { WorkersReady: ["False", "ScaledToZero"] }, want: ["Ready False ScaledToZero"], because: "it is settled as its owner wants it" },
    { name: "resumes paused", gates: { ResumeOpen: ["False", "ResumePaused"] }, want: ["Ready False ResumePaused"], because: "it is settled as somebody wants it" },
    { name: "a lost broker", gates: { BrokerReachable: ["False", "BrokerUnreachable"], BrokerCompatible: ["Unknown", "BrokerUnreachable"], TopologyReady: ["Unknown", "BrokerUnreachable"], WorkersReady: ["Unknown", "BrokerUnreachable"], ResumeOpen: ["Unknown", "BrokerUnreachable"] }, want: ["Ready Unknown BrokerUnreachable", "Reconciling True BrokerUnreachable"], because: "timers may well go on" },
    { name: "an unknown gate", gates: { ResumeOpen: ["Unknown", "NotObserved"] }, want: ["Ready Unknown NotObserved", "Reconciling True NotObserved"], because: "nothing is known to be closed" },
    { name: "a pause", gates: { TopologyReady: ["False", "Provisioning"] }, more: { isPaused: true }, want: ["Ready False Provisioning"], because: "nothing is under way" },
  ];
  it.each(rows)("$name", ({ gates, more, want: wanted, because }) => {
    expect(shown(gates, more), because).toEqual(wanted);
  });

  it("leaves Unknown what nobody spoke of", () => {
    const conditions = concludedConditions({ wanted: [], isPaused: false });
    expect(conditions.findLast(({ type }) => type === "CapacityOK")).toEqual({ type: "CapacityOK", status: "Unknown", reason: "NotObserved", message: "" });
  });
});
