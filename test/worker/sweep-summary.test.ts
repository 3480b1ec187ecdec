import { describe, expect, test } from "vitest";
import { sweepBreakMarginMs } from "../../src/base/limits.ts";
import type { EpochMs } from "../../src/base/units.ts";
import type { StreamIdentity } from "../../src/worker/ports.ts";
import { decodeSummary, encodeSummary, isSameLife, owedSince, type SweepSummary } from "../../src/worker/sweep-summary.ts";
import { ms } from "../fakes/timers.ts";

const schedules: StreamIdentity = { incarnation: "a", createdAt: "2030-01-01T00:00:00Z", lastSequence: 100, serverId: "S1" };
const summary: SweepSummary = {
  beganAtMs: Date.UTC(2030, 0, 2) as EpochMs, durationMs: ms(40), checkedRevision: 12, waiting: 5, elapsed: 2, unanswered: 1, overdue: 1, unreadable: 0,
  oldestOverdueMs: ms(7_000), oldestElapsedMs: ms(90_000), schedules,
};

describe("a summary", () => {
  test("comes back as it was written", () => {
    expect(decodeSummary(encodeSummary(summary))).toEqual(summary);
    const owed = { ...summary, owedSinceMs: 5 as EpochMs, schedules: { incarnation: "a", createdAt: "x", lastSequence: 0 } };
    expect(decodeSummary(encodeSummary(owed))).toEqual(owed);
  });

  test("comes back with the mark of what was resumed again, and without it when it makes no sense", () => {
    const marked = { ...summary, resumedAgain: { revision: 7, atMs: 9 as EpochMs } };
    expect(decodeSummary(encodeSummary(marked))).toEqual(marked);
    const stored = JSON.parse(encodeSummary(marked)) as object;
    for (const resumedAgain of [7, null, {}, { revision: "7", atMs: 9 }, { revision: 7 }]) {
      expect(decodeSummary(JSON.stringify({ ...stored, resumedAgain }))).toEqual(summary);
    }
  });

  test("of the release before, which counts fewer things, is still read", () => {
    const { unanswered: _, ...before } = JSON.parse(encodeSummary(summary)) as Record<string, unknown>;
    expect(decodeSummary(JSON.stringify(before))).toEqual({ ...summary, unanswered: 0 });
  });

  test("of a later version with further fields is still read", () => {
    expect(decodeSummary(JSON.stringify({ ...JSON.parse(encodeSummary(summary)) as object, further: { a: 1 } }))).toEqual(summary);
  });

  const stored = JSON.parse(encodeSummary(summary)) as Record<string, unknown>;
  const rows = [
    { name: "no JSON", text: "{" },
    { name: "no object", text: "[1]" },
    { name: "null", text: "null" },
    { name: "another version", text: JSON.stringify({ ...stored, v: 2 }) },
    { name: "a missing number", text: JSON.stringify({ ...stored, waiting: undefined }) },
    { name: "a number that is none", text: JSON.stringify({ ...stored, waiting: "5" }) },
    { name: "a negative number", text: JSON.stringify({ ...stored, beganAtMs: -1 }) },
    { name: "no identity", text: JSON.stringify({ ...stored, schedules: { incarnation: "a" } }) },
  ];
  test.each(rows)("with $name counts as none", ({ text }) => {
    expect(decodeSummary(text)).toBeUndefined();
  });
});

describe("a break", () => {
  const beforeMargin = summary.beganAtMs - sweepBreakMarginMs;
  const rows: readonly { name: string; previous?: SweepSummary; now: StreamIdentity; want: number | undefined; because: string }[] = [
    { name: "nothing has changed", previous: summary, now: schedules, want: undefined, because: "every wake is where it was" },
    { name: "more was stored", previous: summary, now: { ...schedules, lastSequence: 400 }, want: undefined, because: "a stream grows" },
    { name: "no summary", now: schedules, want: 0, because: "nobody knows what was before" },
    { name: "another server", previous: summary, now: { ...schedules, serverId: "S2" }, want: beforeMargin, because: "an asynchronous tail may be lost at a restart" },
    { name: "another incarnation", previous: summary, now: { ...schedules, incarnation: "b" }, want: 0, because: "it was made anew, empty: wakes that RESUMES refused for days are gone too" },
    { name: "another creation", previous: summary, now: { ...schedules, createdAt: "2030-01-03T00:00:00Z" }, want: 0, because: "it was restored from a backup, which may be of any age" },
    { name: "another incarnation of a stream that never held anything", previous: { ...summary, schedules: { ...schedules, lastSequence: 0 } }, now: { ...schedules, incarnation: "b" }, want: 0, because: "what it held between the summary and its end is not known" },
    { name: "a sequence that went back", previous: summary, now: { ...schedules, lastSequence: 99 }, want: beforeMargin, because: "its tail is lost" },
    { name: "debts of an earlier break", previous: { ...summary, owedSinceMs: 7 as EpochMs }, now: schedules, want: 7, because: "they were not all paid" },
    { name: "a second break before the debts of the first were paid", previous: { ...summary, owedSinceMs: 7 as EpochMs }, now: { ...schedules, serverId: "S2" }, want: 7, because: "the earlier one reaches further back" },
  ];
  test.each(rows)("$name", ({ previous, now, want, because }) => {
    expect(owedSince(previous, now), because).toBe(want);
  });

  test("a server that is not told any more is a change, one that never was is not", () => {
    const { serverId: _, ...replicated } = schedules;
    expect(isSameLife(schedules, replicated)).toBe(false);
    expect(isSameLife(replicated, replicated)).toBe(true);
  });
});
