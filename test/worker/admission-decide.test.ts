import { describe, expect, test } from "vitest";
import { decideAdmission, initialAdmission, type AdmissionState } from "../../src/worker/admission-decide.ts";
import type { StreamUsage, Usage } from "../../src/worker/ports.ts";

const mebi = 1024 * 1024;
const limits = { closePercent: 85, reopenPercent: 75 };
const open: AdmissionState = { isOpen: true, reason: "open", percent: 10, isFull: false };
const full: AdmissionState = { isOpen: false, reason: "snapshots_full", percent: 90, isFull: true };
const blind: AdmissionState = { isOpen: false, reason: "usage_unknown", isFull: false };

const none: StreamUsage = { messages: 0, bytes: 0, bytesMax: 100 * mebi };

/** Nothing lives; the snapshots of the past take `percent`. */
function snapshotsAt(percent: number): Usage {
  return { state: none, snapshots: { messages: 10, bytes: percent * mebi, bytesMax: 100 * mebi }, terminals: none, account: { bytes: percent * mebi, replicas: 1 } };
}

/** `liveCount` timers of 1,000-byte records and 2,000-byte snapshots, with the given limits. */
function living(liveCount: number, bytesMax: { readonly state?: number; readonly terminals?: number; readonly account?: number }): Usage {
  const limit = (bytes: number | undefined) => (bytes === undefined ? {} : { bytesMax: bytes });
  return {
    state: { messages: liveCount, bytes: liveCount * 1_000, ...limit(bytesMax.state) },
    snapshots: { messages: liveCount, bytes: liveCount * 2_000 },
    terminals: { messages: 0, bytes: 0, ...limit(bytesMax.terminals) },
    account: { bytes: liveCount * 3_500, replicas: 1, ...limit(bytesMax.account) },
  };
}

describe("admission at one look", () => {
  const rows: readonly { name: string; previous: AdmissionState; usage: Usage | undefined; want: AdmissionState; because: string }[] = [
    { name: "unknown usage at first", previous: initialAdmission, usage: undefined, want: blind, because: "nothing is promised before anything is known" },
    { name: "known usage with room", previous: initialAdmission, usage: snapshotsAt(10), want: { ...open, percent: 10 }, because: "a worker that begins has no reason to wait" },
    { name: "a first look between the limits", previous: initialAdmission, usage: snapshotsAt(80), want: { ...open, percent: 80 }, because: "a rollout at 80 % must not close what was open" },
    { name: "just below the close limit", previous: open, usage: snapshotsAt(84.9), want: { ...open, percent: 84.9 }, because: "the limit is not reached" },
    { name: "at the close limit", previous: open, usage: snapshotsAt(85), want: { isOpen: false, reason: "snapshots_full", percent: 85, isFull: true }, because: "the limit itself is closed" },
    { name: "falling between the limits", previous: full, usage: snapshotsAt(80), want: { isOpen: false, reason: "snapshots_full", percent: 80, isFull: true }, because: "A2: it would close again at the next start" },
    { name: "at the reopen limit", previous: full, usage: snapshotsAt(75), want: { isOpen: false, reason: "snapshots_full", percent: 75, isFull: true }, because: "the limit itself is closed" },
    { name: "below the reopen limit", previous: full, usage: snapshotsAt(74.9), want: { ...open, percent: 74.9 }, because: "space was freed" },
    { name: "open, and usage becomes unknown", previous: open, usage: undefined, want: blind, because: "A1: a silent broker may be a full one" },
    { name: "full, and usage becomes unknown", previous: full, usage: undefined, want: { ...blind, isFull: true }, because: "an outage must not make a full system forget" },
    { name: "known again between the limits after it was full", previous: { ...blind, isFull: true }, usage: snapshotsAt(80), want: { isOpen: false, reason: "snapshots_full", percent: 80, isFull: true }, because: "A2 outlives the outage" },
    { name: "known again between the limits after it was open", previous: blind, usage: snapshotsAt(80), want: { ...open, percent: 80 }, because: "an outage fills nothing" },
  ];
  test("lost data closes it whatever room there is, and is not taken for fullness", () => {
    expect(decideAdmission(open, { usage: snapshotsAt(10), isDataWhole: false }, limits)).toEqual({ isOpen: false, reason: "data_lost", isFull: false });
    expect(decideAdmission(full, { usage: undefined, isDataWhole: false }, limits)).toEqual({ isOpen: false, reason: "data_lost", isFull: true });
  });

  test.each(rows)("$name", ({ previous, usage, want, because }) => {
    expect(decideAdmission(previous, { usage, isDataWhole: true }, limits), because).toEqual(want);
  });
});

describe("head-room for what is alive", () => {
  test("an empty archive is full when the records that will move there do not fit", () => {
    const liveCount = 10_000;
    const needed = liveCount * (1_000 + 1_536);
    const close = decideAdmission(open, { usage: living(liveCount, { terminals: needed / 0.85 }), isDataWhole: true }, limits);
    expect(close).toMatchObject({ isOpen: false, reason: "terminals_full" });
    expect(decideAdmission(open, { usage: living(liveCount, { terminals: (needed / 0.85) * 1.01 }), isDataWhole: true }, limits).isOpen).toBe(true);
  });

  test("records may still grow where they are", () => {
    expect(decideAdmission(open, { usage: living(1_000, { state: 1_320_000 / 0.86 }), isDataWhole: true }, limits)).toMatchObject({ isOpen: false, reason: "state_full" });
    expect(decideAdmission(open, { usage: living(1_000, { state: 1_320_000 / 0.84 }), isDataWhole: true }, limits).isOpen).toBe(true);
  });

  test("an account must hold every wake, resume and terminal record at once", () => {
    const perTimer = 3_500 + 1_024 + 2_000 + 512 + 1_000 + 1_536;
    expect(decideAdmission(open, { usage: living(1_000, { account: (perTimer * 1_000) / 0.86 }), isDataWhole: true }, limits)).toMatchObject({ isOpen: false, reason: "account_full" });
    expect(decideAdmission(open, { usage: living(1_000, { account: (perTimer * 1_000) / 0.84 }), isDataWhole: true }, limits).isOpen).toBe(true);
  });

  test("an account counts every replica of what is still to be written", () => {
    const perTimer = 1_024 + 2_000 + 512 + 1_000 + 1_536;
    const replicated = (bytesMax: number): Usage => ({ ...living(1_000, {}), account: { bytes: 3 * 3_500_000, bytesMax, replicas: 3 } });
    const needed = 3 * (3_500 + perTimer) * 1_000;
    expect(decideAdmission(open, { usage: replicated(needed / 0.86), isDataWhole: true }, limits)).toMatchObject({ isOpen: false, reason: "account_full" });
    expect(decideAdmission(open, { usage: replicated(needed / 0.84), isDataWhole: true }, limits).isOpen).toBe(true);
  });

  test("a broker without limits constrains nothing, a limit of zero is full", () => {
    expect(decideAdmission(open, { usage: living(1_000_000, {}), isDataWhole: true }, limits)).toEqual({ ...open, percent: 0 });
    expect(decideAdmission(open, { usage: living(0, { terminals: 0 }), isDataWhole: true }, limits)).toMatchObject({ isOpen: false, reason: "terminals_full" });
  });

  test("the fullest one names the reason", () => {
    const usage: Usage = { ...snapshotsAt(86), terminals: { messages: 1, bytes: 95 * mebi, bytesMax: 100 * mebi } };
    expect(decideAdmission(open, { usage: usage, isDataWhole: true }, limits)).toMatchObject({ reason: "terminals_full", percent: 95 });
  });
});
