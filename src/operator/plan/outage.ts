/**
 * Judges a resource whose broker is out of sight, or must not be used.
 *
 * 1. A short loss is held: the last status stands, and only the workers are looked at.
 * 2. A long one turns what lies behind the broker Unknown, and changes nothing else: the workers stay, and a correction of
 *    them rolls.
 */
import type { ConditionType } from "../../resource/conditions.ts";
import { findCondition } from "../../resource/conditions.ts";
import type { DurableTimerStatus } from "../../resource/durable-timer.ts";
import type { BrokerVerdict } from "./broker.ts";
import type { Observed } from "./observed.ts";
import type { JudgedParts } from "./status.ts";
import { carriedOver, cause, firstCauses, want } from "./verdict.ts";
import type { Cause, Verdict } from "./verdict.ts";
import { judgeWorkers, standingFrom } from "./workers.ts";

/** Conditions that only a look at the broker can tell. */
export const behindBroker: readonly ConditionType[] = ["TopologyReady", "ResumeOpen", "AdmissionOpen", "ReplicasHealthy", "CapacityOK", "InSync"];

/** The last status stands, but for the workers, which do not depend on the broker's being seen. */
export function judgeHeld(observed: Observed, broker: BrokerVerdict): JudgedParts {
  const { status } = observed.resource;
  const kept = carriedOver(status, behindBroker);
  const workers = judgeWorkers(observed, standingFrom(kept));
  return {
    wanted: [...kept, ...broker.wanted, ...workers.wanted],
    actions: workers.actions,
    ...firstCauses([keptCauses(status), workers, broker]),
    restored: [],
    workers: workers.workers,
  };
}

/** What lies behind the broker is Unknown, for that cause. */
export function judgeWithoutBroker(observed: Observed, broker: BrokerVerdict, because: Cause): JudgedParts {
  const isElsewhere = broker.stall !== undefined && elsewhere.has(broker.stall.reason);
  const workers = judgeWorkers(observed, isElsewhere ? "foreign" : "unproven");
  const unknown = [...behindBroker, ...(broker.kind === "lost" ? (["WorkersReady"] as const) : [])].map((type) => want(type, "Unknown", because));
  return {
    wanted: [...broker.wanted, ...workers.wanted, ...unknown],
    // A correction of the workers rolls although the broker is away; nothing of theirs is scaled down for it.
    actions: workers.actions,
    ...firstCauses([broker, ...(broker.kind === "lost" ? [] : [workers])]),
    restored: [],
    workers: workers.workers,
  };
}

/** Reasons why workers must not follow the spec to where it leads. */
const elsewhere: ReadonlySet<string> = new Set(["WrongAccount", "AccountUnknown", "ImmutableFieldChanged"]);

function keptCauses(status: DurableTimerStatus | undefined): Pick<Verdict, "stall" | "progress"> {
  const of = (type: "Stalled" | "Reconciling"): Cause | undefined => {
    const had = findCondition(status?.conditions ?? [], type);
    return had === undefined ? undefined : carriedOver(status, [type])[0];
  };
  const [stall, progress] = [of("Stalled"), of("Reconciling")];
  return { ...(stall === undefined ? {} : { stall: cause(stall.reason, stall.message) }), ...(progress === undefined ? {} : { progress: cause(progress.reason, progress.message) }) };
}
