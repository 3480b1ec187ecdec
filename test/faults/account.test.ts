/** The check is checked: each thing that must never happen is put into books that add up, and has to be found. */
import { expect, test } from "vitest";
import { prepareStart, type StartRequest } from "../../src/client/start.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import type { ElapsedRecord, TerminalRecord, TimerRecord, WaitingRecord } from "../../src/timer/record.ts";
import { accountOf, accountText, type AccountProblem } from "./account.ts";
import type { HeldRecord, Holdings } from "./holdings.ts";
import { Ledger, type LedgerTimer, type ResumeCopy } from "./ledger.ts";

const start: StartRequest = {
  flow: { id: "orders", version: "1" }, execution: "ex", node: "wait", edges: { start: "e1", elapsed: "e2", retry: "e3" },
  wait: { delayMs: 1_000 }, maxRetries: 3, body: Buffer.from("event"),
};

type Books = { readonly ledger: Ledger; readonly timer: LedgerTimer; readonly holdings: Holdings };

/** One timer that was retried once and completed: everything adds up. */
function books(): Books {
  const ledger = new Ledger();
  const timer = ledger.sent(start);
  timer.acknowledged = true;
  ledger.answered("retry", { ...prepared.waiting, fence: 2 }, { kind: "accepted" });
  ledger.answered("complete", { ...prepared.waiting, generation: 1, fence: 4 }, { kind: "accepted" });
  const ended = held(timer, terminal(timer));
  return {
    ledger, timer,
    holdings: {
      pendingStarts: new Set(), pendingFeedbackCount: 0, records: [], archived: [ended], armed: new Set(), unreadable: [],
      snapshots: [{ ref: timer.ref, snapshotHash: timer.snapshotHash, payloadHash: timer.payloadHash }],
      resumes: [copy(timer, 0), copy(timer, 1)],
    },
  };
}

const prepared = prepareStart(start, { brokerPayloadBytesMax: undefined }, systemSha256);

function base(timer: LedgerTimer) {
  const startedAtMs = timer.firstSentAtMs + 5;
  return {
    lineage: prepared.waiting.lineage, snapshotHash: timer.snapshotHash, payloadHash: timer.payloadHash, payloadBytes: 5, maxRetries: 3, retryDelayMs: 1_000,
    startedAtMs, dueAtMs: startedAtMs + 1_000, generation: 0, fence: 1,
  };
}

const waiting = (timer: LedgerTimer) => ({ ...base(timer), phase: "waiting" }) as unknown as WaitingRecord;
const elapsed = (timer: LedgerTimer) => ({ ...base(timer), phase: "elapsed", generation: 1, fence: 4, armedFence: 3, elapsedAtMs: 1 }) as unknown as ElapsedRecord;
const terminal = (timer: LedgerTimer) => ({ ...base(timer), phase: "terminal", outcome: "completed", generation: 1, fence: 5, endedAtMs: 2, elapsedAtMs: 1 }) as unknown as TerminalRecord;
const held = (timer: LedgerTimer, record: TimerRecord): HeldRecord => ({ ref: timer.ref, record, bytes: encodeRecord(record) });

function copy(timer: LedgerTimer, generation: number, over: Partial<ResumeCopy> = {}): ResumeCopy {
  const dueAtMs = timer.firstSentAtMs + 5 + 1_000 * (generation + 1) + 100 * generation;
  return { ref: timer.ref, generation, fence: 2 * generation + 2, payloadHash: timer.payloadHash, dueAtMs, storedAtMs: dueAtMs + 3, text: `generation ${String(generation)}`, ...over };
}

type Row = { readonly name: string; readonly rule: AccountProblem["rule"]; readonly spoil: (books: Books) => Partial<Holdings> };

const rows: readonly Row[] = [
  { name: "an acknowledged start that is nowhere", rule: "A1", spoil: () => ({ archived: [], resumes: [], snapshots: [] }) },
  { name: "a timer that nobody sent", rule: "A1", spoil: ({ ledger, timer }) => { ledger.timers.delete(timer.ref); return {}; } },
  { name: "a refused start that lives", rule: "A1", spoil: ({ timer }) => { timer.refusedCode = "delay_too_long"; return {}; } },
  { name: "an archived timer that lives again", rule: "A1", spoil: ({ timer }) => ({ records: [held(timer, elapsed(timer))] }) },
  { name: "a resume before its due time", rule: "A2", spoil: ({ timer, holdings }) => ({ resumes: [copy(timer, 0, { storedAtMs: copy(timer, 0).dueAtMs - 1 }), ...holdings.resumes.slice(1)] }) },
  { name: "a due time that the worker made too early", rule: "A2", spoil: ({ timer, holdings }) => ({ resumes: [copy(timer, 0, { dueAtMs: timer.firstSentAtMs, storedAtMs: timer.firstSentAtMs + 900 }), ...holdings.resumes.slice(1)] }) },
  { name: "a next generation too soon after the one before", rule: "A2", spoil: ({ timer, holdings }) => ({ resumes: [...holdings.resumes.slice(0, 1), copy(timer, 1, { dueAtMs: 0, storedAtMs: copy(timer, 0).storedAtMs + 999 })] }) },
  { name: "one generation under two fences", rule: "A3", spoil: ({ timer, holdings }) => ({ resumes: [...holdings.resumes, copy(timer, 1, { fence: 6 })] }) },
  { name: "two copies that differ", rule: "A3", spoil: ({ timer, holdings }) => ({ resumes: [...holdings.resumes, copy(timer, 1, { text: "another" })] }) },
  { name: "a resume with other bytes than the start", rule: "A3", spoil: ({ timer, holdings }) => ({ resumes: [...holdings.resumes.slice(0, 1), copy(timer, 1, { payloadHash: "sha256:0" })] }) },
  { name: "a generation that was never resumed", rule: "A4", spoil: ({ holdings }) => ({ resumes: holdings.resumes.slice(0, 1) }) },
  { name: "a resume that the record knows nothing of", rule: "A4", spoil: ({ timer, holdings }) => ({ resumes: [...holdings.resumes, copy(timer, 2)] }) },
  { name: "a timer that is archived twice", rule: "A5", spoil: ({ holdings }) => ({ archived: [...holdings.archived, ...holdings.archived] }) },
  { name: "an archive record in other bytes than its state", rule: "A5", spoil: ({ timer }) => ({ records: [held(timer, { ...terminal(timer), endedAtMs: 3 as never })] }) },
  { name: "an archive record whose bytes are not its content's", rule: "A5", spoil: ({ timer }) => ({ archived: [{ ...held(timer, terminal(timer)), bytes: Buffer.from("{}") }] }) },
  { name: "a fence that does not add up", rule: "A5", spoil: ({ timer }) => ({ archived: [held(timer, { ...terminal(timer), fence: 6 })] }) },
  { name: "more generations than allowed", rule: "A5", spoil: ({ timer }) => ({ archived: [held(timer, { ...terminal(timer), maxRetries: 0 })] }) },
  { name: "a record without its snapshot", rule: "A6", spoil: () => ({ snapshots: [] }) },
  { name: "a snapshot with other bytes", rule: "A6", spoil: ({ holdings }) => ({ snapshots: holdings.snapshots.map((snapshot) => ({ ...snapshot, payloadHash: "sha256:0" })) }) },
  { name: "an accepted end that did not come", rule: "A7", spoil: ({ timer }) => ({ archived: [], records: [held(timer, elapsed(timer))] }) },
  { name: "an accepted end that became another", rule: "A7", spoil: ({ timer }) => ({ archived: [held(timer, { ...terminal(timer), outcome: "failed" })] }) },
  { name: "a waiting timer without schedule and wake", rule: "A8", spoil: ({ timer }) => ({ archived: [], resumes: [], records: [held(timer, waiting(timer))] }) },
  { name: "a message that is not what its stream holds", rule: "unreadable", spoil: () => ({ unreadable: ["x: is not JSON"] }) },
];

test("books that add up have no problem, and their counts are the sum", () => {
  const { ledger, holdings } = books();
  const account = accountOf(ledger, holdings);
  expect(account.problems, accountText(account)).toEqual([]);
  expect(account.counts).toEqual({
    acknowledged: 1, pending: 0, waiting: 0, elapsed: 0, ending: 0, archived: 1, refused: 0, unacknowledgedHeld: 0,
    generationsResumed: 2, resumesRepeated: 0, feedbackPending: 0,
  });
});

test.each(rows)("finds $name", ({ rule, spoil }) => {
  const spoilt = books();
  const holdings = { ...spoilt.holdings, ...spoil(spoilt) };
  expect(accountOf(spoilt.ledger, holdings).problems.map((problem) => problem.rule)).toContain(rule);
});

test("a second copy of a resume is counted as repeated, and the same stored message delivered twice is not", () => {
  const { ledger, timer, holdings } = books();
  const [first] = holdings.resumes;
  const again = copy(timer, 0, { storedAtMs: copy(timer, 0).storedAtMs + 5 });
  const resumes = [...holdings.resumes, again, ...(first === undefined ? [] : [first])];
  expect(accountOf(ledger, { ...holdings, resumes })).toMatchObject({ problems: [], counts: { generationsResumed: 2, resumesRepeated: 1 } });
});
