/** Outcomes as a sender sees them. */
import type { Outcome } from "../protocol/outcome.ts";

/** Where the timer stands after the command, as far as the worker told. */
export type TimerStanding = {
  readonly generation?: number;
  readonly fence?: number;
  readonly dueAt?: Date;
  /** `waiting`, `elapsed`, `completed` or `failed`; later versions may say more. */
  readonly state?: string;
};

/**
 * What became of a command.
 *
 * - `accepted`: it took effect. A retry beyond its limit is accepted with code `max_retries_exceeded`: it ended the timer.
 * - `duplicate`: it had taken effect before, and nothing changed.
 * - `rejected`: it changed nothing and never will; `code` says why and `problem`, when present, what to correct.
 * - `unknown`: the broker has it, but no answer came in time. Sending the same command again is safe.
 */
export type CommandOutcome =
  | ({ readonly kind: "accepted" | "duplicate"; readonly code?: string } & TimerStanding)
  | ({ readonly kind: "rejected"; readonly code: string; readonly problem?: string } & TimerStanding)
  | { readonly kind: "unknown" };

/** The sender's view of an outcome on the wire; absence means that none came. */
export function commandOutcome(outcome: Outcome | undefined): CommandOutcome {
  if (outcome === undefined) return { kind: "unknown" };
  const standing = timerStanding(outcome);
  if (outcome.outcome === "rejected") {
    return { kind: "rejected", code: outcome.code ?? "unspecified", ...(outcome.problem === undefined ? {} : { problem: outcome.problem }), ...standing };
  }
  return { kind: outcome.outcome, ...(outcome.code === undefined ? {} : { code: outcome.code }), ...standing };
}

function timerStanding({ generation, fence, dueAt, state }: Outcome): TimerStanding {
  return {
    ...(generation === undefined ? {} : { generation }),
    ...(fence === undefined ? {} : { fence }),
    ...(dueAt === undefined ? {} : { dueAt: new Date(dueAt) }),
    ...(state === undefined ? {} : { state }),
  };
}
