/** One step for those works of a batch that the loop's gate lets through; the others are handed back, to come again. */
import type { LoopOptions } from "./loop-options.ts";
import { step, type StepResult, type Work } from "./step.ts";

/** One result per work, in order. */
export async function stepAdmitted(options: Pick<LoopOptions, "ports" | "clock" | "sha256" | "gate">, works: readonly Work[]): Promise<readonly StepResult[]> {
  if (options.gate === undefined || works.length === 0) return await step(options, works);
  const sizes = works.map(({ snapshot }) => ({ contextBytes: snapshot?.contextHeader.length ?? 0, bodyBytes: snapshot?.body.length ?? 0 }));
  const pass = await options.gate.admit(sizes);
  try {
    const results = pass.count === 0 ? [] : await step(options, works.slice(0, pass.count));
    return [...results, ...works.slice(pass.count).map((): StepResult => ({ kind: "hand_back", why: "no_room" }))];
  } finally {
    pass.done(options.clock.monotonicMs());
  }
}
