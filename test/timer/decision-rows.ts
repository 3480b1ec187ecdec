/** Rows of decisions: what is known, what arrives, what must be decided, and why. */
import { expect, test } from "vitest";
import { decide } from "../../src/timer/decide.ts";
import type { Answer, Decision, TimerView, Write } from "../../src/timer/decision.ts";
import type { TimerInput } from "../../src/timer/input.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import type { Tombstone } from "../../src/timer/tombstone.ts";
import { at } from "./records.ts";

export type Row = { readonly name: string; readonly view: TimerView; readonly input: TimerInput; readonly nowMs?: number; readonly want: Decision; readonly because: string };

export const run = (rows: readonly Row[]): void => {
  test.each(rows)("$name", ({ view, input, nowMs, want, because }) => {
    expect(decide(view, input, at(nowMs ?? 1_000)), because).toEqual(want);
  });
};

export const replica = (record?: TimerRecord): TimerView => ({ basis: "replica", ...(record === undefined ? {} : { record }) });
export const leader = (over: Omit<TimerView, "basis"> = {}): TimerView => ({ basis: "leader", ...over });
export const leaderAgain = (over: Omit<TimerView, "basis"> = {}): TimerView => ({ basis: "leader_again", ...over });

export const advance = (next: TimerRecord, writes: readonly Write[]): Decision => ({ kind: "advance", next, writes, answer: { outcome: "accepted", record: next } });
export const complete = (record: TimerRecord, writes: readonly Write[]): Decision => ({ kind: "complete", record, writes, answer: { outcome: "duplicate", record } });
export const recall = (tombstone: Tombstone): Decision => ({ kind: "recall", tombstone, answer: { outcome: "duplicate", record: tombstone } });
export const reject = (code: Extract<Answer, { outcome: "rejected" }>["code"], record?: TimerRecord | Tombstone): Decision => ({
  kind: "reject", answer: { outcome: "rejected", code, ...(record === undefined ? {} : { record }) },
});
export const unsure = (needs: "leader" | "leader_again"): Decision => ({ kind: "unsure", needs });
