/**
 * The invariants of ARCHITECTURE.md as the simulation checks them: how often each was held against what happened, and what
 * broke it.
 *
 * Which check answers which invariant:
 *
 * | | held against | in |
 * |---|---|---|
 * | I1 | every elapsed record, every resume: the broker's clock has shown its due time | ledger.ts |
 * | I2 | every resume: fence of its record, bytes of its snapshot, the same as its first copy | ledger.ts |
 * | I3 | every record stored, and every snapshot that goes: a live record has its snapshot | ledger.ts |
 * | I4 | every snapshot stored or gone | ledger.ts |
 * | I5 | every record: its fence is one more, its generation as the rules say | ledger.ts, transitions.ts |
 * | I6 | every archive record stored or gone, every marker over a record | ledger.ts |
 * | I7 | every record and every first resume: its timer is not archived | ledger.ts |
 * | I8 | every command settled, and every start at the end: it waits, lives, is archived or was refused | ledger.ts, schedule.ts |
 * | I9 | every record and every refused command: it follows from input that was sent, and input that fits is not refused | ledger.ts |
 * | I10 | every message that goes: not evicted; every timer begun without room; feedback while starts are held | bounds.ts, squeeze.ts |
 * | I11 | every schedule, wake and live record: something will carry it on; at the end everything has come to its end | ledger.ts, schedule.ts |
 * | I12 | every due time follows from the broker's stamps alone; at the end, every message sent once more changes nothing | ledger.ts, encore.ts |
 * | I13 | every message stored, request sent and source filled: within its bound; at the end nothing is left behind | bounds.ts |
 * | I15 | the idle time at the end: nothing but lease and summary, once per interval | encore.ts |
 *
 * I14 is the operator's, which is not simulated; test/operator holds it.
 */

export const invariants = ["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "I15"] as const;
export type Invariant = (typeof invariants)[number];

/** A broken promise; `bug` is an error that the program itself raised. */
export type Violation = { readonly invariant: Invariant | "bug"; readonly text: string; readonly atMs: number };

export class Checks {
  readonly violations: Violation[] = [];
  readonly #counts = new Map<Invariant, number>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Holds what happened against an invariant. */
  hold(invariant: Invariant, isHeld: boolean, text: () => string): void {
    this.#counts.set(invariant, (this.#counts.get(invariant) ?? 0) + 1);
    if (!isHeld) this.violations.push({ invariant, text: text(), atMs: this.#nowMs() });
  }

  /** The same for a check that finds the problem itself. */
  holdUnless(invariant: Invariant, problem: string | undefined, who: string): void {
    this.hold(invariant, problem === undefined, () => `${who} ${problem ?? ""}`);
  }

  bug(text: string): void {
    this.violations.push({ invariant: "bug", text, atMs: this.#nowMs() });
  }

  /** How often each invariant was held against something. */
  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }
}
