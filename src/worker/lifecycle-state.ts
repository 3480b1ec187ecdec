/**
 * The phases of a worker's life, and what they mean for readiness.
 *
 * Y1 A worker becomes ready once, when it has seen that everything it needs is there. From then on it stays ready until
 *    it is told to stop: a broker that goes away would otherwise take every worker down at once, and bring none back.
 * Y2 No phase is ever returned to.
 */
import { unreachable } from "../base/assert.ts";
import type { DurationMs, MonotonicMs } from "../base/units.ts";
import { describeFailure } from "../base/failure.ts";
import type { TopologyFinding } from "./ports.ts";

/** Where a worker is between its first look and its end. */
export type LifecyclePhase = "starting" | "serving" | "draining" | "stopped";

export type LifecycleState = {
  readonly phase: LifecyclePhase;
  /** Why the worker is not serving yet; sentences for a person. */
  readonly problems: readonly string[];
};

/** What moves a worker from phase to phase. */
export type LifecycleEvent =
  | { readonly kind: "topology_checked"; readonly finding: TopologyFinding }
  | { readonly kind: "stop_requested" }
  | { readonly kind: "drained" };

/** A worker that has seen nothing yet. */
export const initialLifecycle: LifecycleState = { phase: "starting", problems: ["the broker was not asked yet"] };

/** The next state; events that mean nothing in a phase change nothing. */
export function advance(state: LifecycleState, event: LifecycleEvent): LifecycleState {
  switch (event.kind) {
    case "topology_checked":
      return state.phase === "starting" ? afterCheck(event.finding) : state;
    case "stop_requested":
      return state.phase === "starting" || state.phase === "serving" ? { phase: "draining", problems: ["it was told to stop"] } : state;
    case "drained":
      return state.phase === "draining" ? { phase: "stopped", problems: ["it has stopped"] } : state;
    default:
      return unreachable(event);
  }
}

function afterCheck(finding: TopologyFinding): LifecycleState {
  switch (finding.kind) {
    case "usable":
      return { phase: "serving", problems: [] };
    case "unusable":
      return { phase: "starting", problems: finding.problems };
    case "unreachable":
      return { phase: "starting", problems: [describeFailure(finding.failure)] };
    default:
      return unreachable(finding);
  }
}

/** Something that goes round and round while it is well. */
export type Rounds = { readonly name: string; progressAtMs(): MonotonicMs };

/** Names of those that have not gone round for `stallMsMax`: they hang, and only a new process helps. */
export function stalledOf(loops: readonly Rounds[], nowMs: MonotonicMs, stallMsMax: DurationMs): readonly string[] {
  return loops.filter((loop) => nowMs - loop.progressAtMs() > stallMsMax).map(({ name }) => name);
}
