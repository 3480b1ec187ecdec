/**
 * The rules of a timer's life: a total, synchronous function from what is known and what arrived to what is to be done.
 *
 * It reads no clock, does no IO and never throws for a normal outcome. What it knows of the store is a view with a
 * basis: how the view was read bounds what may be concluded from it.
 *
 * R1 A view read from any replica may lead to an accept, since the compare-and-set guards that, and to a refusal of
 *    older input, since generations and fences only grow. Everything else needs the leader (`unsure`).
 * R2 Absence, `not_elapsed` and input newer than the record are concluded only from a second look at the leader.
 * R3 A decision lists its writes in the order in which they have to become durable; a crash between any two of them
 *    leaves something that the same input, or the sweep, completes.
 */
import { unreachable } from "../base/assert.ts";
import type { EpochMs } from "../base/units.ts";
import { decideFeedback } from "./decide-feedback.ts";
import { decideStart } from "./decide-start.ts";
import { decideWake } from "./decide-wake.ts";
import type { Decision, TimerView } from "./decision.ts";
import type { TimerInput } from "./input.ts";

/**
 * Decides one input. `brokerNowMs` is a lower bound of the broker's clock: a timer is due only once the bound has
 * reached its due time (I1). It is not used for commands, whose own JetStream timestamps are exact.
 */
export function decide(view: TimerView, input: TimerInput, brokerNowMs: EpochMs): Decision {
  switch (input.kind) {
    case "start":
      return decideStart(view, input);
    case "wake":
      return decideWake(view, input, brokerNowMs);
    case "feedback":
      return decideFeedback(view, input);
    default:
      return unreachable(input);
  }
}
