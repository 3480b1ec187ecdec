/**
 * What the worker needs from the outside, in the domain's own values: arrays in, one outcome per item, in order.
 *
 * P1 No port rejects for an item: what happened to it is its outcome. A port rejects only when its signal aborts.
 * P2 `stored` means durable as the stream promises; `refused` means surely not stored; `unknown` means neither.
 * P3 A write never changes anything but what its expectation names.
 * P4 Every port is bounded: at most its own batch limits are in flight, and each wait ends.
 * P5 Two items of one call may not name the same timer.
 */
import type { Failure } from "../base/failure.ts";
import type { DurationMs, EpochMs } from "../base/units.ts";
import type { StoredMessage } from "../protocol/message.ts";
import type { Outcome } from "../protocol/outcome.ts";
import type { Grave } from "../protocol/tombstone.ts";
import type { TimerKey } from "../timer/identity.ts";
import type { ElapsedRecord, TerminalRecord, TimerRecord } from "../timer/record.ts";

/** Any replica (may be stale), or the stream's leader. */
export type ReadFrom = "replica" | "leader";

export type WriteOutcome =
  | { readonly kind: "stored"; readonly revision: number }
  /** The write expected nothing there, and something is. */
  | { readonly kind: "exists" }
  /** The write expected a revision that is no longer the last. */
  | { readonly kind: "conflict" }
  | { readonly kind: "refused"; readonly failure: Failure }
  | { readonly kind: "unknown"; readonly failure: Failure };

export type ReadOutcome<T> =
  | { readonly kind: "found"; readonly value: T; readonly revision: number }
  | { readonly kind: "absent" }
  /** A removed record's marker: no record, but its subject is not free yet. */
  | { readonly kind: "marker"; readonly revision: number }
  /** Something is there that this version cannot read. */
  | { readonly kind: "unreadable"; readonly problem: string; readonly revision: number }
  | { readonly kind: "failed"; readonly failure: Failure };

export interface StateStore {
  read(keys: readonly TimerKey[], from: ReadFrom): Promise<readonly ReadOutcome<TimerRecord>[]>;
  /** `expected` is the revision to replace; absent means that nothing, not even a marker, may be there. */
  write(items: readonly { readonly key: TimerKey; readonly record: TimerRecord; readonly expected?: number }[]): Promise<readonly WriteOutcome[]>;
  /** Replaces the record of that revision with a marker that expires. */
  remove(items: readonly { readonly key: TimerKey; readonly expected: number }[]): Promise<readonly WriteOutcome[]>;
}

/** A start as it arrived: its context header and its body. */
export type Snapshot = { readonly contextHeader: string; readonly body: Uint8Array };

/** What lies in a snapshot's place. */
export type SnapshotReading = ReadOutcome<Snapshot> | { readonly kind: "collected"; readonly grave: Grave; readonly revision: number };

export interface SnapshotStore {
  /** Creates only: a snapshot is never replaced, except by what `bury` puts there (I4). */
  create(items: readonly { readonly key: TimerKey; readonly snapshot: Snapshot }[]): Promise<readonly WriteOutcome[]>;
  read(keys: readonly TimerKey[], from: ReadFrom): Promise<readonly SnapshotReading[]>;
  /** Puts a tombstone in the place of what has that revision; `expected` 0 means that nothing may be there. */
  bury(items: readonly { readonly key: TimerKey; readonly grave: Grave; readonly expected: number }[]): Promise<readonly WriteOutcome[]>;
}

/** A schedule, or the wake that it became. */
export type Armed = {
  readonly generation: number;
  readonly fence: number;
  readonly dueAtMs: EpochMs;
  readonly sequence: number;
  /** Of a schedule: when it fires; a good while after it was due when its timer was set aside. */
  readonly fireAtMs?: EpochMs;
};

export type ArmItem = {
  readonly key: TimerKey;
  readonly generation: number;
  readonly fence: number;
  readonly dueAtMs: EpochMs;
  /** When the schedule fires: a little before it is due, so that the wake can be held until then. */
  readonly fireAtMs: EpochMs;
  /** Sequence of the schedule to replace; absent means that none may be there. */
  readonly expected?: number;
};

/** What lies on a timer's schedule and wake subjects. */
export type ArmedLook =
  | { readonly kind: "seen"; readonly schedule?: Armed; readonly wake?: Armed }
  | { readonly kind: "failed"; readonly failure: Failure };

export interface ScheduleStore {
  arm(items: readonly ArmItem[]): Promise<readonly WriteOutcome[]>;
  /** Reads schedule and then wake of each timer, in this order; from the leader unless `from` says otherwise. */
  look(keys: readonly TimerKey[], from?: ReadFrom): Promise<readonly ArmedLook[]>;
  /** Removes the schedule, whatever it carries. Idempotent. */
  disarm(keys: readonly TimerKey[]): Promise<readonly WriteOutcome[]>;
}

export interface ResumeOutlet {
  /** `body` is the snapshot's, already checked against the record's payload hash. A known duplicate counts as stored. */
  publish(items: readonly { readonly key: TimerKey; readonly record: ElapsedRecord; readonly body: Uint8Array }[]): Promise<readonly WriteOutcome[]>;
}

export interface Archive {
  /** Creates only; the stored bytes are those of the state record (I6). */
  create(items: readonly { readonly key: TimerKey; readonly record: TerminalRecord }[]): Promise<readonly WriteOutcome[]>;
  /** From the leader unless `from` says otherwise. */
  read(keys: readonly TimerKey[], from?: ReadFrom): Promise<readonly ReadOutcome<TerminalRecord>[]>;
  /** Replaces the record of that revision with a marker that expires. */
  remove(items: readonly { readonly key: TimerKey; readonly expected: number }[]): Promise<readonly WriteOutcome[]>;
}

/**
 * A message in hand. Settling it after its connection was lost does nothing and returns false: the stream may have
 * reused its sequence, and an old acknowledgement would then remove another timer's message.
 */
export interface Delivery {
  readonly message: StoredMessage;
  /** How often it was delivered, this time included. */
  readonly deliveryCount: number;
  isCurrent(): boolean;
  ack(): boolean;
  /** Hands it back, to be delivered again after `delayMs`. */
  nak(delayMs: DurationMs): boolean;
  /** Starts its acknowledgement wait anew. */
  extend(): boolean;
  /** Removes it, never to be delivered again. */
  terminate(reason: string): boolean;
}

/** The sources of a worker, each with a loop of its own. */
export type SourceName = "start" | "feedback" | "wake";

export interface Source {
  /**
   * Waits for at least one message and returns what is there, at most `max`. Returns none only when `signal` aborts or
   * after `expiresMs` without a message. Survives broker restarts by itself.
   */
  take(options: { readonly max: number; readonly expiresMs: DurationMs; readonly signal: AbortSignal }): Promise<readonly Delivery[]>;
  /** Stops asking the broker for more. What was taken can still be settled. */
  pause(): void;
  resume(): void;
  close(): Promise<void>;
}

export interface OutcomeOutlet {
  /** Best effort, no acknowledgement. */
  send(items: readonly { readonly replyTo: string; readonly outcome: Outcome }[]): void;
}

/** A rejected command, kept for inspection without its body. */
export type Rejected = {
  readonly code: string;
  readonly problem: string;
  readonly subject: string;
  readonly sequence: number;
  readonly contextHeader?: string;
  readonly bodyHash: string;
};

export interface RejectedStore {
  /** Best effort: failures are counted by the implementation's metrics and never hold up anything. */
  keep(items: readonly Rejected[]): void;
}

export interface BrokerClock {
  /** A time that the leader of SCHEDULES has surely reached, or undefined without a recent sample. */
  lowerBoundMs(): EpochMs | undefined;
  /** Asks the leader once. Never rejects. */
  refresh(): Promise<void>;
}

/** What a stream holds of what it may hold. */
export type StreamUsage = { readonly messages: number; readonly bytes: number; readonly bytesMax?: number };

/** What admission looks at. */
export type Usage = {
  readonly state: StreamUsage;
  readonly snapshots: StreamUsage;
  readonly terminals: StreamUsage;
  /** Every copy counts: a stream of three replicas takes three times its bytes. */
  readonly account: { readonly bytes: number; readonly bytesMax?: number; readonly replicas: number };
};

export interface CapacityProbe {
  /** Undefined when the broker does not answer: unknown usage counts as none left. */
  usage(): Promise<Usage | undefined>;
}

/** Streams whose content exists nowhere else. */
export type DataStream = "state" | "snapshots" | "terminals" | "resumes" | "feedback" | "commands";

/** One look at the life of a stream; `ownerId` and `incarnation` are those of its stamp, empty without one. */
export type StreamLife = { readonly ownerId: string; readonly incarnation: string; readonly createdAt: string; readonly lastSequence: number };

/** What tells whether the streams still hold what they held. */
export type DataLook = {
  /** Undefined for what does not exist. */
  readonly streams: Readonly<Record<DataStream, StreamLife | undefined>>;
  /** STATE has the owner's key, which is written when it is made and never removed. */
  readonly hasOwnerKey: boolean;
  /** SNAPSHOTS was empty after a live record was seen in STATE. */
  readonly lacksSnapshots: boolean;
};

export interface DataProbe {
  /** Undefined when the broker does not answer. */
  look(): Promise<DataLook | undefined>;
}

/**
 * Identity of what the sweep compares; a change means that what was known of its content no longer holds. `createdAt` is
 * that of SCHEDULES, followed by those of the streams whose restoration leaves resumes owed.
 */
export type StreamIdentity = { readonly incarnation: string; readonly createdAt: string; readonly lastSequence: number; readonly serverId?: string };

export type TopologyFinding =
  | { readonly kind: "usable"; readonly schedules: StreamIdentity; readonly payloadBytesMax: number }
  /** The broker answers, and something the worker needs is missing or different. */
  | { readonly kind: "unusable"; readonly problems: readonly string[] }
  | { readonly kind: "unreachable"; readonly failure: Failure };

/** Looks whether everything a worker needs is there. */
export interface TopologyProbe {
  check(): Promise<TopologyFinding>;
}

/** Small named values in the state bucket: the sweep's lease and summary. */
export interface NotesStore {
  read(name: string): Promise<ReadOutcome<string>>;
  /** `expected` 0 means that nothing may be there. */
  write(item: { readonly name: string; readonly text: string; readonly expected: number }): Promise<WriteOutcome>;
}

/** One record met by a walk over STATE. */
export type WalkedRecord = { readonly key: TimerKey; readonly revision: number; readonly record: ReadOutcome<TimerRecord> };

export interface StateWalk {
  /** Every record up to the sequence that is last when the walk begins, in batches; ends early when `signal` aborts. */
  walk(signal: AbortSignal): AsyncIterable<readonly WalkedRecord[]>;
}

/** One ended timer met by a walk over the archive. */
export type WalkedArchive = { readonly key: TimerKey; readonly revision: number; readonly archivedAtMs: EpochMs; readonly record: ReadOutcome<TerminalRecord> };

/** What a walk met in a snapshot's place; a snapshot's content is not read. */
export type WalkedSnapshot = {
  readonly key: TimerKey;
  readonly revision: number;
  readonly storedAtMs: EpochMs;
  readonly found: { readonly kind: "snapshot" | "unreadable" } | { readonly kind: "collected"; readonly grave: Grave };
};

/** Walks in the order in which things were stored, oldest first, up to what is last when they begin; they end early when `signal` aborts. */
export interface CollectionWalk {
  archive(signal: AbortSignal): AsyncIterable<readonly WalkedArchive[]>;
  snapshots(signal: AbortSignal): AsyncIterable<readonly WalkedSnapshot[]>;
}

/** Everything the worker needs from the broker. */
export type WorkerPorts = {
  readonly state: StateStore;
  readonly snapshots: SnapshotStore;
  readonly schedules: ScheduleStore;
  readonly resumes: ResumeOutlet;
  readonly archive: Archive;
  readonly sources: Readonly<Record<SourceName, Source>>;
  readonly outcomes: OutcomeOutlet;
  readonly rejected: RejectedStore;
  readonly clock: BrokerClock;
  readonly capacity: CapacityProbe;
  readonly data: DataProbe;
  readonly topology: TopologyProbe;
  readonly notes: NotesStore;
  readonly walk: StateWalk;
  readonly collection: CollectionWalk;
};
