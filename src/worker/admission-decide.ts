/**
 * Whether new timers may be started, from the space that is used and the space that live timers may still need.
 *
 * A live timer is a debt: its schedule becomes a wake, its wake a resume, and its record a terminal record in the
 * archive. Starts close while there is still room to pay that, so that what was accepted can always end (I10).
 *
 * A1 Unknown usage is closed, and so is usage that nobody has looked at for a while.
 * A2 Between the two limits the last decision stands, so that admission does not flap at one of them.
 * A3 Without the data that was accepted before, nothing new is accepted, whatever room there is.
 * A4 A limit that the broker does not set constrains nothing; a limit of zero is full.
 */
import type { AdmissionReason } from "./metrics.ts";
import type { StreamUsage, Usage } from "./ports.ts";

/** Where starts close and where they open again, in percent of what may be used. */
export type AdmissionLimits = { readonly closePercent: number; readonly reopenPercent: number };

export type AdmissionState = {
  readonly isOpen: boolean;
  readonly reason: AdmissionReason;
  /** Usage of what is fullest, head-room included, in percent of its limit; absent when unknown. */
  readonly percent?: number;
  /** Remembered through unknown usage: the close limit was reached, and the reopen limit not since (A2). */
  readonly isFull: boolean;
};

/** What is decided from; `isDataWhole` is false while a stream has lost what it held. */
export type AdmissionFacts = { readonly usage: Usage | undefined; readonly isDataWhole: boolean };

/** Before the first look. */
export const initialAdmission: AdmissionState = { isOpen: false, reason: "usage_unknown", isFull: false };

/** The next state; the same inputs always give the same state. */
export function decideAdmission(previous: AdmissionState, { usage, isDataWhole }: AdmissionFacts, limits: AdmissionLimits): AdmissionState {
  if (!isDataWhole) return { isOpen: false, reason: "data_lost", isFull: previous.isFull };
  if (usage === undefined) return { isOpen: false, reason: "usage_unknown", isFull: previous.isFull };
  const fullest = fullestOf(usage);
  const { percent } = fullest;
  const isFull = percent >= (previous.isFull ? limits.reopenPercent : limits.closePercent);
  return { isOpen: !isFull, reason: isFull ? fullest.reason : "open", percent, isFull };
}

type Fullness = { readonly reason: AdmissionReason; readonly percent: number };

function fullestOf(usage: Usage): Fullness {
  const { state, snapshots, terminals, account } = usage;
  const debts = debtsOf(usage);
  const all: readonly Fullness[] = [
    { reason: "state_full", percent: percentOf(state, debts.state) },
    { reason: "snapshots_full", percent: percentOf(snapshots, debts.snapshots) },
    { reason: "terminals_full", percent: percentOf(terminals, debts.terminals) },
    { reason: "account_full", percent: percentOf(account, debts.account) },
  ];
  return all.reduce((fullest, one) => (one.percent > fullest.percent ? one : fullest));
}

/** Bytes, by where they lie. */
export type Amounts = { readonly state: number; readonly snapshots: number; readonly terminals: number; readonly account: number };

/** What everything alive may still write. */
export function debtsOf({ state, snapshots, account }: Usage): Amounts {
  // Every record, marker and note counts as one live timer: a few too many, never too few.
  const liveCount = state.messages;
  const liveSnapshotBytes = snapshots.messages === 0 ? 0 : (snapshots.bytes / snapshots.messages) * liveCount;
  const terminals = state.bytes + liveCount * terminalGrowthBytes;
  // Everything is written once per replica, and an account's usage counts each copy.
  const owedBytes = liveSnapshotBytes + liveCount * (armedBytes + resumeContextBytes) + terminals;
  return { state: liveCount * recordGrowthBytes, snapshots: 0, terminals, account: owedBytes * account.replicas };
}

/** A start in bytes: its context header and its body. */
export type StartSize = { readonly contextBytes: number; readonly bodyBytes: number };

/** What a start writes, and all that it may write until its end. */
export function startCost({ contextBytes, bodyBytes }: StartSize, replicas: number): Amounts {
  const record = contextBytes + recordBeyondContextBytes;
  const snapshots = contextBytes + bodyBytes + storedOverheadBytes;
  const terminals = record + terminalGrowthBytes;
  return { state: record + recordGrowthBytes, snapshots, terminals, account: replicas * (record + 2 * snapshots + armedBytes + resumeContextBytes + terminals) };
}

function percentOf({ bytes, bytesMax }: Pick<StreamUsage, "bytes" | "bytesMax">, headroomBytes: number): number {
  if (bytesMax === undefined) return 0;
  if (bytesMax <= 0) return 100;
  return ((bytes + headroomBytes) / bytesMax) * 100;
}

/** A record has its start's lineage, and hashes, times and counters beside it; its message has a subject and an overhead. */
const recordBeyondContextBytes = 512;
/** Subject, header names and what the store adds to a message. */
const storedOverheadBytes = 256;
/** A record grows by a receipt, the fields of its next phase and longer counters while it lives. */
const recordGrowthBytes = 320;
/** An archived record is the live one, grown, with a failure code and message of the largest size. */
const terminalGrowthBytes = 1_536;
/** A schedule beside the wake that it becomes: two subjects, four headers each, and the store's own overhead. */
const armedBytes = 1_024;
/** A resume is its snapshot's body with another context, whose times and hashes a start does not have. */
const resumeContextBytes = 512;
