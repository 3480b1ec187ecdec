import { describe, expect, it } from "vitest";
import type { SeenResume } from "../../src/bin/demo-play.ts";
import { closingTable, type NatsCounts } from "../../src/bin/demo-table.ts";
import { demoTimers } from "../../src/bin/demo-timers.ts";
import type { TerminalRecord } from "../../src/timer/record.ts";

const plan = demoTimers("test");

/** What a run leaves behind in which everything went well. */
function rightRun(): { readonly counts: NatsCounts; readonly seen: SeenResume[] } {
  const seen = plan.flatMap(({ name, resumeCount }) =>
    Array.from({ length: resumeCount }, (_, generation) => ({ timer: name, generation, fence: 2 * generation + 2, latenessMs: 5, isBodyEqual: true })),
  );
  const archived = plan.map(({ ending, resumeCount }) => {
    const [outcome, code] = ending.split(": ");
    return {
      outcome, generation: Math.max(0, resumeCount - 1), ...(code === undefined ? {} : { failure: { code, message: "" } }), ...(resumeCount === 0 ? {} : { elapsedAtMs: 1 }),
    } as unknown as TerminalRecord;
  });
  return { counts: { started: plan.length, live: 0, resumesStored: seen.length, archived }, seen };
}

const wrongLabels = ({ counts, seen }: { readonly counts: NatsCounts; readonly seen: readonly SeenResume[] }) => {
  const table = closingTable(plan, counts, seen);
  expect(table.isRight).toBe(table.rows.every(({ counted, expected }) => counted === expected));
  return table.rows.filter(({ counted, expected }) => counted !== expected).map(({ label }) => label);
};

describe("the closing table", () => {
  it("is right for a run in which everything went well, also when a resume came twice", () => {
    const run = rightRun();
    expect(wrongLabels(run)).toEqual([]);
    expect(wrongLabels({ ...run, seen: [...run.seen, ...run.seen] })).toEqual([]);
  });

  const rows: readonly { readonly name: string; readonly change: (run: ReturnType<typeof rightRun>) => ReturnType<typeof rightRun>; readonly wrong: readonly string[] }[] = [
    { name: "a start that is nowhere", change: ({ counts, seen }) => ({ counts: { ...counts, archived: counts.archived.slice(1) }, seen }), wrong: ["resumed (distinct generations)", "archived as completed", "lost"] },
    { name: "a resume that never came", change: ({ counts, seen }) => ({ counts, seen: seen.slice(1) }), wrong: ["resumed (distinct generations)", "lost"] },
    { name: "a timer that is still live", change: ({ counts, seen }) => ({ counts: { ...counts, live: 1, archived: counts.archived.slice(0, -1) }, seen: seen.slice(0, -1) }), wrong: ["archived as completed", "unfinished"] },
    { name: "an early resume", change: ({ counts, seen }) => ({ counts, seen: seen.map((each, index) => (index === 0 ? { ...each, latenessMs: -1 } : each)) }), wrong: ["early"] },
    { name: "a changed body", change: ({ counts, seen }) => ({ counts, seen: seen.map((each, index) => (index === 0 ? { ...each, isBodyEqual: false } : each)) }), wrong: ["payload changed"] },
    { name: "a generation that resumed under two fences", change: ({ counts, seen }) => ({ counts, seen: [...seen, { ...seen[0], fence: 99 } as SeenResume] }), wrong: ["resumed (distinct generations)"] },
    { name: "a resume stored twice", change: ({ counts, seen }) => ({ counts: { ...counts, resumesStored: counts.resumesStored + 1 }, seen }), wrong: ["resumes stored"] },
    { name: "another ending", change: ({ counts, seen }) => ({ counts: { ...counts, archived: counts.archived.map((record) => ({ ...record, failure: { code: "other", message: "" } })) }, seen }), wrong: ["archived as completed", "archived as failed: max_retries_exceeded", "archived as failed: order_cancelled"] },
  ];
  it.each(rows)("is wrong after $name", ({ change, wrong }) => {
    expect(wrongLabels(change(rightRun()))).toEqual(wrong);
  });

  it("shows the worst lateness with and without the crash", () => {
    const { counts, seen } = rightRun();
    const late = seen.map((each) => ({ ...each, latenessMs: each.timer.startsWith("crash-") ? 29_600 : 7 }));
    const text = closingTable(plan, counts, late).lines.join("\n");
    expect(text).toMatch(/worst lateness +7 ms/);
    expect(text).toMatch(/worst lateness around the crash +29\.6 s/);
  });
});
