// What becomes of each timer of a chaos run, decided from the seed and the timer's number alone: how it is sent, how often it is
// retried, how it ends, and which mistakes its flow makes. A flow that gets a resume twice, in two processes, thereby says the same
// both times, and the account knows what the end must be.

import { createHash } from "node:crypto";
import type { StartRequest } from "../../src/client/start.ts";
import { seededRandom } from "../../src/system/random.ts";

/** How a timer's life is meant to end. */
export type Ending =
  | "complete"
  | "fail"
  /** One retry more than allowed. */
  | "exhaust"
  /** Failed while it waits for the first time. */
  | "withdraw"
  /** Its last resume is acknowledged, and nothing is said. */
  | "stay_open"
  /** Due long after the run. */
  | "stay_waiting"
  /** Asks for more than the limits allow. */
  | "refuse_delay"
  | "refuse_retries";

/** How a start is sent. */
export type Sending =
  | "once"
  /** And a second time. */
  | "twice"
  /** Its sender does not repeat it when no acknowledgement comes. */
  | "hasty"
  /** Together with another start of the same timer, which means something else. */
  | "rival";

/** Feedback that must change nothing, sent beside the right one. */
export type Slip = "none" | "stale" | "early" | "ahead" | "stranger" | "lineage" | "double";

/** Which of the two starts of a rivalry. */
export type Variant = "own" | "rival";

/** One timer's fate. */
export type TimerPlan = {
  readonly index: number;
  readonly flow: string;
  readonly execution: string;
  readonly waitMs: number;
  readonly retryWaitMs: number;
  /** Retries that the flow asks for and gets. */
  readonly retryCount: number;
  readonly maxRetries: number;
  readonly ending: Ending;
  readonly sending: Sending;
  readonly slip: Slip;
  /** The first delivery of a resume is lost, or handed back. */
  readonly reception: "attentive" | "forgetful" | "hesitant";
  readonly bodyBytes: number;
};

/** Flows of a run; two of them have ids that cannot be subject tokens. */
export const flowIds = ["orders", "billing", "claims.eu-west", "Überweisung"] as const;

/** The fate of each of `count` timers. */
export function planTimers(options: { readonly seed: number; readonly count: number; readonly waitMsMax: number }): readonly TimerPlan[] {
  return Array.from({ length: options.count }, (_, index) => planTimer({ ...options, index }));
}

function planTimer({ seed, index, waitMsMax }: { readonly seed: number; readonly index: number; readonly waitMsMax: number }): TimerPlan {
  const random = seededRandom(Math.imul(seed, 1_000_003) + index);
  const ending = pick(endings, random.fraction());
  const retryCount = ending === "withdraw" || ending === "stay_waiting" ? 0 : pick(retryCounts, random.fraction());
  const waitMs = waitOf({ ending, fraction: random.fraction(), waitMsMax });
  return {
    index,
    flow: flowIds[Math.floor(random.fraction() * flowIds.length)] ?? flowIds[0],
    execution: `chaos-${String(seed)}-${String(index)}`,
    waitMs,
    retryWaitMs: Math.round(Math.min(500 + random.fraction() * 4_500, waitMsMax)),
    retryCount,
    maxRetries: maxRetriesOf(ending, retryCount),
    ending,
    sending: isRefused(ending) ? "once" : pick(sendings, random.fraction()),
    slip: pick(slips, random.fraction()),
    reception: pick(receptions, random.fraction()),
    bodyBytes: 16 + Math.floor(random.fraction() ** 3 * 2_000),
  };
}

/** True for a start that no worker may accept. */
export function isRefused(ending: Ending): boolean {
  return ending === "refuse_delay" || ending === "refuse_retries";
}

/** The start of this timer as its sender asks for it. */
export function startRequest(plan: TimerPlan, variant: Variant): StartRequest {
  return {
    flow: { id: plan.flow, version: "1" },
    execution: plan.execution,
    node: "wait",
    edges: { start: "e1", elapsed: "e2", retry: "e3" },
    wait: { delayMs: plan.waitMs },
    maxRetries: plan.maxRetries,
    retryWait: { delayMs: plan.retryWaitMs },
    body: bodyOf(plan, variant),
  };
}

/** The event of a start: any bytes, the same each time. */
export function bodyOf(plan: TimerPlan, variant: Variant): Uint8Array {
  const block = createHash("sha512").update(`${plan.execution}/${variant}`).digest();
  return Buffer.concat(Array.from({ length: Math.ceil(plan.bodyBytes / block.length) }, () => block)).subarray(0, plan.bodyBytes);
}

/** The number of the timer that an execution id belongs to; undefined for strangers. */
export function indexOfExecution(execution: string): number | undefined {
  const digits = /^chaos-\d+-(\d+)$/.exec(execution)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

type Weighted<T> = readonly (readonly [value: T, weight: number])[];

const endings: Weighted<Ending> = [
  ["complete", 72], ["fail", 12], ["exhaust", 4], ["withdraw", 4], ["stay_open", 3], ["stay_waiting", 3], ["refuse_delay", 1], ["refuse_retries", 1],
];
const retryCounts: Weighted<number> = [[0, 55], [1, 25], [2, 12], [3, 8]];
const sendings: Weighted<Sending> = [["once", 93], ["twice", 3], ["hasty", 2], ["rival", 2]];
const slips: Weighted<Slip> = [["none", 90], ["stale", 2], ["early", 1], ["ahead", 1], ["stranger", 1], ["lineage", 1], ["double", 4]];
const receptions: Weighted<TimerPlan["reception"]> = [["attentive", 97], ["forgetful", 1], ["hesitant", 2]];

/** One of the values, as often as its weight says. */
function pick<T>(choices: Weighted<T>, fraction: number): T {
  let left = fraction * choices.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [value, weight] of choices) {
    left -= weight;
    if (left < 0) return value;
  }
  throw new Error("a choice among weights");
}

/** Short waits are as frequent as long ones, by order of magnitude. */
function waitOf({ ending, fraction, waitMsMax }: { readonly ending: Ending; readonly fraction: number; readonly waitMsMax: number }): number {
  switch (ending) {
    case "stay_waiting":
      return hourMs;
    case "refuse_delay":
      return tooLongMs;
    case "withdraw":
      return waitMsMax;
    case "complete":
    case "fail":
    case "exhaust":
    case "stay_open":
    case "refuse_retries":
    default:
      return Math.round(waitMsMin * (waitMsMax / waitMsMin) ** fraction);
  }
}

function maxRetriesOf(ending: Ending, retryCount: number): number {
  if (ending === "refuse_retries") return tooManyRetries;
  return ending === "exhaust" ? retryCount : retryCount + 2;
}

const waitMsMin = 500;
const hourMs = 3_600_000;
/** Eleven years; the limit is ten. */
const tooLongMs = 11 * 365 * 24 * hourMs;
const tooManyRetries = 5_000;
