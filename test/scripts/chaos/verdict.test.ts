import { expect, test } from "vitest";
import { encodeRecord } from "../../../src/protocol/record-codec.ts";
import { systemSha256 } from "../../../src/system/sha256.ts";
import { decideStart } from "../../../src/timer/decide-start.ts";
import { timerKey } from "../../../src/timer/identity.ts";
import type { TerminalRecord, TimerRecord, WaitingRecord } from "../../../src/timer/record.ts";
import type { EpochMs } from "../../../src/base/units.ts";
import { prepareStart } from "../../../src/client/start.ts";
import { startInput } from "../../../src/protocol/command.ts";
import { readContext, startContextSchema } from "../../../src/protocol/context.ts";
import { planTimers, startRequest, type TimerPlan } from "../../../scripts/chaos/plan.ts";
import { verdictOf, type Evidence } from "../../../scripts/chaos/verdict.ts";
import { Ledger } from "../../faults/ledger.ts";

const plans = planTimers({ seed: 1, count: 400, waitMsMax: 1_000 });
const waits = withEnding("stay_waiting");
const completes = withEnding("complete");

test("a timer that waits as planned, armed and with its snapshot, is one of the identity's", () => {
  const verdict = verdictOf(evidence(waits, waitingRecord(waits)));
  expect(verdict.identity).toMatchObject({ acknowledged: 1, waiting: 1, holds: true });
  expect(broken(verdict)).toEqual([]);
});

type Row = { readonly name: string; readonly evidence: Evidence; readonly rule: RegExp; readonly because: string };

const rows: readonly Row[] = [
  { name: "an acknowledged start that is nowhere", evidence: evidence(waits, undefined), rule: /exactly one place/, because: "it was promised to be kept" },
  { name: "a timer that still waits although its flow completes it", evidence: evidence(completes, waitingRecord(completes)), rule: /ended as its flow asked/, because: "everything ends but what is planned to stay" },
  { name: "a schedule whose timer does not wait", evidence: stray(evidence(waits, waitingRecord(waits))), rule: /left without its waiting timer/, because: "it would wake nobody, for ever" },
  { name: "an archive in other bytes than the record that was seen in STATE", evidence: archivedOtherwise(completes), rule: /last record that was seen/, because: "the archive is the last state, byte for byte" },
];

test.each(rows)("$name is a violation", ({ evidence: given, rule, because }) => {
  expect(broken(verdictOf(given)).some((name) => rule.test(name)), because).toBe(true);
});

test("a lost start breaks the identity, and a refused rival is on both sides of it", () => {
  expect(verdictOf(evidence(waits, undefined)).identity).toMatchObject({ acknowledged: 1, holds: false });
  const withRival = verdictOf({ ...evidence(waits, waitingRecord(waits)), rivalsRefusedCount: 1 });
  expect(withRival.identity).toMatchObject({ acknowledged: 2, refused: 1, holds: true });
  expect(withRival.refusals).toEqual(new Map([["start_conflict", 1]]));
});

function withEnding(ending: TimerPlan["ending"]): TimerPlan {
  const plan = plans.find((one) => one.ending === ending);
  if (plan === undefined) throw new Error(`no plan ends as ${ending}`);
  return plan;
}

function broken({ checks }: ReturnType<typeof verdictOf>): readonly string[] {
  return checks.filter(({ violations }) => violations.length > 0).map(({ name }) => name);
}

function evidence(plan: TimerPlan, record: TimerRecord | undefined): Evidence {
  const ledger = new Ledger();
  const entry = ledger.sent(startRequest(plan, "own"));
  entry.acknowledged = true;
  const { ref, snapshotHash, payloadHash } = entry;
  const held = record === undefined ? [] : [{ ref, record, bytes: encodeRecord(record) }];
  const isEnded = record?.phase === "terminal";
  return {
    plans: [plan], ledger, rivalsRefusedCount: 0, seen: new Map(),
    holdings: {
      pendingStarts: new Set(), pendingFeedbackCount: 0, resumes: [], unreadable: [],
      records: isEnded ? [] : held, archived: isEnded ? held : [],
      snapshots: held.map(() => ({ ref, snapshotHash, payloadHash })),
      armed: new Set(record?.phase === "waiting" ? [`${ref} ${String(record.generation)}:${String(record.fence)}`] : []),
    },
  };
}

function stray(given: Evidence): Evidence {
  return { ...given, holdings: { ...given.holdings, armed: new Set([...given.holdings.armed, "another 0:1"]) } };
}

function archivedOtherwise(plan: TimerPlan): Evidence {
  const waiting = waitingRecord(plan);
  const record: TerminalRecord = { ...waiting, phase: "terminal", outcome: "completed", fence: 3, elapsedAtMs: waiting.dueAtMs, endedAtMs: waiting.dueAtMs };
  const { ref } = timerKey(record.lineage, systemSha256);
  const other = { ...record, endedAtMs: (record.endedAtMs + 1) as EpochMs };
  return { ...evidence(plan, record), seen: new Map([[ref, { record: other, lastBytes: encodeRecord(other), isRemoved: true }]]) };
}

/** The record that the product itself makes of this start. */
function waitingRecord(plan: TimerPlan): WaitingRecord {
  const { message } = prepareStart(startRequest(plan, "own"), { brokerPayloadBytesMax: undefined }, systemSha256);
  const read = readContext(message.contextHeader, startContextSchema);
  if (!read.ok) throw new Error(read.problem);
  const input = startInput(read.context, { receivedAtNs: BigInt(Date.now()) * 1_000_000n, payloadBytes: message.body.length }, systemSha256);
  const decision = decideStart({ basis: "leader", record: undefined, archived: undefined, snapshot: undefined } as never, input);
  if (decision.kind !== "advance" || decision.next.phase !== "waiting") throw new Error("a start that waits");
  return decision.next;
}
