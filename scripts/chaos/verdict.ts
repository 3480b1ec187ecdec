// The end of a chaos run: the identity of all acknowledged starts, and every check with what it compared. Pure: what the outside knows
// and what NATS holds come in as values. The account of test/faults holds for any timer; the checks here know each timer's plan.

import { timerKey } from "../../src/timer/identity.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { accountOf, type AccountCounts } from "../../test/faults/account.ts";
import type { HeldRecord, Holdings } from "../../test/faults/holdings.ts";
import type { Ledger } from "../../test/faults/ledger.ts";
import { startRequest, type TimerPlan } from "./plan.ts";
import type { Surprise } from "./party.ts";
import type { SeenTimer } from "./witness.ts";

/** All that is known at the end. */
export type Evidence = {
  readonly plans: readonly TimerPlan[];
  readonly ledger: Ledger;
  readonly holdings: Holdings;
  readonly seen: ReadonlyMap<string, SeenTimer>;
  readonly rivalsRefusedCount: number;
};

/** Acknowledged starts, and where each of them is. */
export type Identity = {
  readonly acknowledged: number;
  readonly open: number;
  readonly waiting: number;
  readonly archived: number;
  readonly refused: number;
  /** Neither taken nor half ended: none at a good end. */
  readonly pending: number;
  readonly ending: number;
  readonly holds: boolean;
};

export type Verdict = {
  readonly identity: Identity;
  readonly counts: AccountCounts;
  /** Refusals by code. */
  readonly refusals: ReadonlyMap<string, number>;
  readonly checks: readonly Check[];
};

/** One rule, over everything that it concerns. */
export type Check = { readonly name: string; readonly comparedCount: number; readonly violations: readonly Surprise[] };

/** Holds everything against everything. */
export function verdictOf(evidence: Evidence): Verdict {
  const { ledger, holdings, rivalsRefusedCount } = evidence;
  const { counts, problems } = accountOf(ledger, holdings);
  const sent = [...ledger.timers.values()];
  const refusals = tally(sent.flatMap(({ acknowledged, refusedCode }) => (acknowledged && refusedCode !== undefined ? [refusedCode] : [])));
  if (rivalsRefusedCount > 0) refusals.set("start_conflict", (refusals.get("start_conflict") ?? 0) + rivalsRefusedCount);
  const accounted: readonly Check[] = accountRules.map(({ rule, name, compared }) => ({
    name, comparedCount: compared(counts, holdings, ledger),
    violations: problems.filter((problem) => problem.rule === rule).map(({ timer, problem }) => ({ timer, problem })),
  }));
  return { identity: identityOf(counts, rivalsRefusedCount), counts, refusals, checks: [...accounted, plannedEnds(evidence), archivesLikeState(evidence), nothingStray(evidence)] };
}

function identityOf(counts: AccountCounts, rivalsRefusedCount: number): Identity {
  const { elapsed: open, waiting, archived, pending, ending } = counts;
  const acknowledged = counts.acknowledged + rivalsRefusedCount;
  const refused = counts.refused + rivalsRefusedCount;
  return { acknowledged, open, waiting, archived, refused, pending, ending, holds: acknowledged === open + waiting + archived + refused };
}

type AccountRule = { readonly rule: string; readonly name: string; readonly compared: (counts: AccountCounts, holdings: Holdings, ledger: Ledger) => number };

const heldCount = (_: AccountCounts, { records, archived }: Holdings): number => records.length + archived.length;
const copyCount = (_: AccountCounts, { resumes }: Holdings, ledger: Ledger): number => resumes.length + ledger.resumes.length;

const accountRules: readonly AccountRule[] = [
  { rule: "A1", name: "each acknowledged start is in exactly one place", compared: ({ acknowledged }) => acknowledged },
  { rule: "A2", name: "each resume was stored at or after its due time", compared: copyCount },
  { rule: "A3", name: "copies of a resume carry one generation, one fence and the start's bytes", compared: copyCount },
  { rule: "A4", name: "each generation that passed was resumed, and no other", compared: ({ generationsResumed }) => generationsResumed },
  { rule: "A5", name: "one record or archive per timer, in its own bytes, with numbers that add up", compared: heldCount },
  { rule: "A6", name: "each timer has its snapshot, which is the start as it was sent", compared: (_, { snapshots }) => snapshots.length },
  { rule: "A7", name: "feedback that was answered as accepted took effect", compared: (_counts, _holdings, ledger) => [...ledger.timers.values()].reduce((sum, { feedback }) => sum + feedback.length, 0) },
  { rule: "A8", name: "each waiting timer has its schedule or wake", compared: ({ waiting }) => waiting },
  { rule: "unreadable", name: "each message can be read", compared: heldCount },
];

/** Each timer that came to be stands where its plan wanted it, and was refused if that was its plan. */
function plannedEnds({ plans, ledger, holdings }: Evidence): Check {
  const last = new Map([...holdings.records, ...holdings.archived].map((held) => [held.ref, held]));
  const violations: Surprise[] = [];
  let comparedCount = 0;
  for (const plan of plans) {
    const ref = refOf(plan);
    const entry = ledger.timers.get(ref);
    const held = last.get(ref);
    if (held === undefined && entry?.acknowledged !== true) continue;
    comparedCount += 1;
    const found = held === undefined ? `refused ${entry?.refusedCode ?? "without a code"}` : standingOf(held.record);
    if (!wantedEnds(plan).includes(found)) violations.push({ timer: plan.execution, problem: `is ${found}, not ${wantedEnds(plan).join(" or ")}` });
  }
  return { name: "each timer ended as its flow asked", comparedCount, violations };
}

function refOf(plan: TimerPlan): string {
  const { flow, execution, node, edges } = startRequest(plan, "own");
  return timerKey({ flow, execution, node, edges }, systemSha256).ref;
}

function wantedEnds({ ending, retryCount }: TimerPlan): readonly string[] {
  const generation = String(retryCount);
  switch (ending) {
    case "complete":
      return [`completed in generation ${generation}`];
    case "fail":
      return [`failed gave_up in generation ${generation}`];
    case "exhaust":
      return [`failed max_retries_exceeded in generation ${generation}`];
    // The second when the withdrawal came after the resume.
    case "withdraw":
      return ["failed withdrawn in generation 0", "completed in generation 0"];
    case "stay_open":
      return [`elapsed in generation ${generation}`];
    case "stay_waiting":
      return ["waiting in generation 0"];
    case "refuse_delay":
      return ["refused delay_too_long"];
    case "refuse_retries":
      return ["refused retries_too_many"];
    default:
      throw new Error("an ending without an end");
  }
}

function standingOf(record: TimerRecord): string {
  const generation = `in generation ${String(record.generation)}`;
  if (record.phase !== "terminal") return `${record.phase} ${generation}`;
  return record.failure === undefined ? `${record.outcome} ${generation}` : `${record.outcome} ${record.failure.code} ${generation}`;
}

/** Each archive holds the bytes of the terminal record that passed through STATE. */
function archivesLikeState({ holdings, seen }: Evidence): Check {
  const compared = holdings.archived.flatMap((held) => {
    const bytes = seen.get(held.ref)?.lastBytes;
    return bytes === undefined ? [] : [{ held, bytes }];
  });
  const differing = compared.filter(({ held, bytes }) => Buffer.compare(held.bytes, bytes) !== 0);
  return { name: "each archive is, byte for byte, the last record that was seen in STATE", comparedCount: compared.length, violations: differing.map(({ held }) => ({ timer: nameOf(held), problem: "is archived in other bytes" })) };
}

/** No schedule or wake without a waiting record of its generation and fence. */
function nothingStray({ holdings }: Evidence): Check {
  const waiting = new Set(holdings.records.filter(({ record }) => record.phase === "waiting").map(({ ref, record }) => `${ref} ${String(record.generation)}:${String(record.fence)}`));
  const stray = [...holdings.armed].filter((armed) => !waiting.has(armed));
  return { name: "no schedule or wake is left without its waiting timer", comparedCount: holdings.armed.size, violations: stray.map((armed) => ({ timer: armed, problem: "is armed and does not wait" })) };
}

function nameOf({ record }: HeldRecord): string {
  return record.lineage.execution;
}

function tally(values: readonly string[]): Map<string, number> {
  return new Map([...Map.groupBy(values, (value) => value)].map(([value, all]) => [value, all.length]));
}
