/**
 * Deterministic simulation: the real worker code over the model of JetStream, in virtual time, a schedule per seed.
 *
 * SIMULATION_SCHEDULES says how many (`all` never ends), SIMULATION_SEED where to begin. A failure prints its seed and the
 * trace of its run; put the seed into seeds.txt with what it showed.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { invariants } from "./checks.ts";
import { workThrough, type Task } from "./crew.ts";
import { Dice } from "./dice.ts";
import { runSchedule, type ScheduleReport } from "./schedule.ts";

const first = Number(process.env["SIMULATION_SEED"] ?? 1_000);
const asked = process.env["SIMULATION_SCHEDULES"] ?? "10000";
const count = asked === "all" ? Infinity : Number(asked);

describe("a simulated schedule", () => {
  test("is the same for the same seed, event by event", async () => {
    const trace = async (seed: number): Promise<readonly string[]> => {
      const lines: string[] = [];
      await runSchedule(seed, (line) => lines.push(line));
      return lines;
    };
    for (const seed of [3, 59]) expect(await trace(seed)).toEqual(await trace(seed));
    expect((await runSchedule(3)).hash).not.toBe((await runSchedule(4)).hash);
  });

  test.each(keptSeeds())("that failed once holds now: %s (%s)", async (seed) => {
    expect(await told(await runSchedule(seed))).toBe("");
  });

  test(`holds every invariant: ${asked} seeds from ${String(first)}`, async () => {
    const { counts, problems } = await workThrough(slices());
    const [problem] = problems;
    if (problem !== undefined) expect((problem.seed === undefined ? "" : await told(await runSchedule(problem.seed))) || problem.text).toBe("");
    console.log(`simulation ${JSON.stringify({ ...counts, violations: problems.length })}`);
    expect(counts["schedules"]).toBe(count);
    // Each of them was really looked at.
    if (count >= 1_000) expect(invariants.filter((invariant) => (counts[invariant] ?? 0) === 0)).toEqual([]);
  }, 3_600_000);
});

test("dice spread their throws evenly and repeat them", () => {
  const throws = (seed: number): readonly number[] => { const dice = new Dice(seed); return Array.from({ length: 6_000 }, () => dice.whole(1, 6)); };
  for (const face of [1, 2, 3, 4, 5, 6]) expect(throws(7).filter((thrown) => thrown === face).length).toBeGreaterThan(850);
  expect(throws(7)).toEqual(throws(7));
});

function* slices(): Iterable<Task> {
  for (let done = 0; done < count; done += sliceSize) yield { kind: "schedules", first: first + done, count: Math.min(sliceSize, count - done) };
}

/** What a failed run has to tell: what it broke, and how it came to that. */
async function told({ seed, violations }: ScheduleReport): Promise<string> {
  if (violations.length === 0) return "";
  const lines: string[] = [];
  await runSchedule(seed, (line) => lines.push(line));
  const shown = lines.filter((line) => !/ (?:pull|info) | settle extend/.test(line)).slice(-traceLinesMax);
  const broken = violations.map(({ invariant, text }) => `${invariant}: ${text}`).join("\n");
  return `seed ${String(seed)} broke\n${broken}\n\nits last steps:\n${shown.join("\n")}\n\nrun it alone: SIMULATION_SEED=${String(seed)} SIMULATION_SCHEDULES=1`;
}

function keptSeeds(): readonly (readonly [seed: number, why: string])[] {
  const lines = readFileSync(join(import.meta.dirname, "seeds.txt"), "utf8").split("\n").filter((line) => /^\d/.test(line));
  return lines.map((line) => [Number(line.split(" ")[0]), line.slice(line.indexOf(" ") + 1)]);
}

const traceLinesMax = 200;
const sliceSize = 20;
