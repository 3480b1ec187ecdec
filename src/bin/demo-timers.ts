// The timers of the demo, what their flow's owner does with each resume, and what must have become of them at the end.

import type { StartRequest } from "../client/index.ts";

export type Reaction = "retry" | "complete";

export type DemoTimer = {
  readonly name: string;
  readonly request: StartRequest;
  /** What the flow's owner answers to the resume of a generation. */
  readonly reactTo: (generation: number) => Reaction;
  /** Generations that elapse, each with one resume. */
  readonly resumeCount: number;
  /** How it is archived: the outcome, with the failure's code when there is one. */
  readonly ending: string;
};

/** The failure with which one timer is ended while it waits. */
export const cancellation = { code: "order_cancelled", message: "the customer changed her mind" };

/** Whether a timer is one of those whose wakes a worker holds when it is ended. */
export function isNearCrash(name: string): boolean {
  return name.startsWith(crashPrefix);
}

const crashPrefix = "crash-";
/** Late enough for the other timers to be done before. */
const crashDelayMs = 7_000;

/** All timers of one run; `execution` tells runs apart. */
export function demoTimers(execution: string): readonly DemoTimer[] {
  const timer = (name: string, wait: { readonly delayMs: number; readonly maxRetries?: number }): Pick<DemoTimer, "name" | "request"> => ({
    name,
    request: {
      flow: { id: "demo", version: "1" }, execution, node: name, edges: { start: "in", elapsed: "out", retry: "again" },
      wait: { delayMs: wait.delayMs }, maxRetries: wait.maxRetries ?? 0, body: bodyOf(name),
    },
  });
  return [
    { ...timer("one-shot", { delayMs: 2_000 }), reactTo: () => "complete", resumeCount: 1, ending: "completed" },
    { ...timer("retries-twice", { delayMs: 1_500, maxRetries: 3 }), reactTo: (generation) => (generation < 2 ? "retry" : "complete"), resumeCount: 3, ending: "completed" },
    { ...timer("retries-too-often", { delayMs: 1_500, maxRetries: 1 }), reactTo: () => "retry", resumeCount: 2, ending: "failed: max_retries_exceeded" },
    { ...timer("fails-while-waiting", { delayMs: 3_600_000 }), reactTo: () => "complete", resumeCount: 0, ending: `failed: ${cancellation.code}` },
    ...Array.from({ length: 6 }, (_, index): DemoTimer => ({
      ...timer(`${crashPrefix}${String(index + 1)}`, { delayMs: crashDelayMs }), reactTo: () => "complete", resumeCount: 1, ending: "completed",
    })),
  ];
}

/** Bytes that are no text and no JSON: the body is the flow's own business. */
function bodyOf(name: string): Uint8Array {
  return new Uint8Array([0, 255, 254, ...new TextEncoder().encode(name), 0]);
}
