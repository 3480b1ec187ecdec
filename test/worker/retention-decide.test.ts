import { describe, expect, test } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import type { EpochMs } from "../../src/base/units.ts";
import type { ReadOutcome, WalkedSnapshot } from "../../src/worker/ports.ts";
import { decideArchived, isUnknown, needOf, type ArchivedDecision, type SnapshotEvidence } from "../../src/worker/retention-decide.ts";
import { ms } from "../fakes/timers.ts";
import { at, hash, terminal, tombstone, waiting } from "../timer/records.ts";

const archived = terminal();
const found = { kind: "found", value: archived, revision: 7 } as const;
const absent = { kind: "absent" } as const;
const failure = new Failure("transient", "BROKER_TIMEOUT", "read");
const snapshot = { kind: "snapshot", hash: archived.snapshotHash, revision: 3 } as const;

type Row = {
  readonly name: string; readonly archive?: Parameters<typeof decideArchived>[0]; readonly state?: ReadOutcome<unknown>; readonly snapshot?: SnapshotEvidence;
  readonly want: ArchivedDecision["kind"] | ArchivedDecision; readonly because: string;
};

const rows: readonly Row[] = [
  { name: "with its snapshot is buried over it", want: { kind: "bury", archived, expected: 3 }, because: "the tombstone stands before anything goes" },
  { name: "whose record was just removed is buried too", state: { kind: "marker", revision: 9 }, want: "bury", because: "a marker keeps every start away" },
  { name: "whose tombstone stands goes on from there", snapshot: { kind: "collected", grave: { tombstone: tombstone() }, revision: 4 }, want: { kind: "remove", archived, tombstoneRevision: 4 }, because: "a crash came between the two" },
  {
    name: "whose tombstone will expire is buried again", snapshot: { kind: "collected", grave: { tombstone: tombstone(), expiresInMs: ms(5) }, revision: 4 },
    want: { kind: "bury", archived, expected: 4 }, because: "it may expire before the archive has gone",
  },
  { name: "without a snapshot gets its tombstone where nothing is", snapshot: absent, want: { kind: "bury", archived, expected: 0 }, because: "its archive alone keeps a start from reviving it" },
  { name: "beside a live record is kept", state: { kind: "found", value: waiting(), revision: 9 }, want: "kept_live", because: "the sweep decides which of them is right" },
  { name: "beside a record that nobody can read is kept", state: { kind: "unreadable", problem: "?", revision: 9 }, want: "kept_live", because: "it may be live" },
  { name: "with another timer's snapshot is kept", snapshot: { ...snapshot, hash: hash("f") }, want: "kept_unreadable", because: "what is stored contradicts itself" },
  { name: "with another timer's tombstone is kept", snapshot: { kind: "collected", grave: { tombstone: tombstone({ snapshotHash: hash("f") }) }, revision: 4 }, want: "kept_unreadable", because: "it would answer for another start" },
  { name: "over an orphan's grave is kept", snapshot: { kind: "collected", grave: {}, revision: 4 }, want: "kept_unreadable", because: "there never was a timer of an orphan" },
  { name: "with a snapshot that nobody can read is kept", snapshot: { kind: "unreadable" }, want: "kept_unreadable", because: "a person may still want to know why" },
  { name: "with a snapshot whose context cannot be read is kept", snapshot: { ...snapshot, hash: undefined }, want: "kept_unreadable", because: "a person may still want to know why" },
  { name: "behind a marker waits", snapshot: { kind: "marker" }, want: "kept_live", because: "a marker goes by itself" },
  { name: "that nobody can read is kept", archive: { kind: "unreadable", problem: "v", revision: 7 }, want: "kept_unreadable", because: "its tombstone could not be written" },
  { name: "whose state could not be asked for waits", state: { kind: "failed", failure }, want: "failed", because: "not knowing is not absence" },
  { name: "whose snapshot could not be asked for waits", snapshot: { kind: "failed", failure }, want: "failed", because: "not knowing is not absence" },
];

describe("an archived timer that is old enough", () => {
  test.each(rows)("$name", ({ archive = found, state = absent, snapshot: evidence = snapshot, want, because }) => {
    const decision = decideArchived(archive, state, evidence);
    expect(typeof want === "string" ? decision.kind : decision, because).toEqual(want);
  });
});

describe("a walked snapshot", () => {
  const walked = (found: WalkedSnapshot["found"], storedAtMs: EpochMs): WalkedSnapshot => ({ key: { flow: "f", ref: "r" }, revision: 1, storedAtMs, found });
  const orphansBeforeMs = at(1_000);

  test.each([
    { name: "that is young needs nothing", one: walked({ kind: "snapshot" }, at(1_001)), want: undefined },
    { name: "that is old may be an orphan", one: walked({ kind: "snapshot" }, at(1_000)), want: { kind: "look" } },
    { name: "that nobody can read is left to people", one: walked({ kind: "unreadable" }, at(0)), want: undefined },
    { name: "whose tombstone will expire needs nothing", one: walked({ kind: "collected", grave: { tombstone: tombstone(), expiresInMs: ms(1) } }, at(0)), want: undefined },
    { name: "whose tombstone has no end is finished, however young", one: walked({ kind: "collected", grave: { tombstone: tombstone() } }, at(5_000)), want: { kind: "finish", grave: { tombstone: tombstone() } } },
  ])("$name", ({ one, want }) => {
    expect(needOf(one, { orphansBeforeMs })).toEqual(want);
  });

  test("is an orphan only when both record and archive are absent", () => {
    const kinds: readonly ReadOutcome<unknown>[] = [absent, { kind: "marker", revision: 1 }, { kind: "found", value: archived, revision: 1 }, { kind: "unreadable", problem: "", revision: 1 }, { kind: "failed", failure }];
    const unknown = kinds.flatMap((state) => kinds.filter((archive) => isUnknown(state, archive)).map((archive) => [state.kind, archive.kind]));
    expect(unknown).toEqual([["absent", "absent"]]);
  });
});
