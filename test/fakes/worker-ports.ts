// Everything the worker needs from a broker, in memory, with the promises of src/worker/ports.ts: compare-and-set, markers, schedules
// that fire when the clock is stepped, redelivery, message ids, stale replicas. Records are stored as their bytes, as the real ones are.
//
// A test looks at and changes the broker's content through the public fields; `faults` makes single calls fail.

import { assert } from "../../src/base/assert.ts";
import { archiveMarkerTtlMs, duplicateWindowMs, stateMarkerTtlMs } from "../../src/base/limits.ts";
import type { DurationMs, EpochMs } from "../../src/base/units.ts";
import { resumeMessageId } from "../../src/protocol/ids.ts";
import type { MessageHeaders, StoredMessage } from "../../src/protocol/message.ts";
import { commandSubjects, headerNames, wakeSubject, type CommandVerb } from "../../src/protocol/names.ts";
import type { Outcome } from "../../src/protocol/outcome.ts";
import type { Grave } from "../../src/protocol/tombstone.ts";
import { decodeRecord, encodeRecord } from "../../src/protocol/record-codec.ts";
import type { TimerKey } from "../../src/timer/identity.ts";
import type { ElapsedRecord, TerminalRecord, TimerRecord } from "../../src/timer/record.ts";
import type {
  ArmItem, Armed, ArmedLook, DataLook, ReadFrom, ReadOutcome, Rejected, Snapshot, SnapshotReading, TopologyFinding, Usage, WalkedArchive, WalkedRecord, WalkedSnapshot, WorkerPorts, WriteOutcome,
} from "../../src/worker/ports.ts";
import type { SteppedClock } from "./clock.ts";
import { Faults, type ReadOperation, type WriteOperation } from "./faults.ts";
import { FakeSource } from "./source.ts";

type Version<T> = { readonly revision: number; readonly value: T; readonly storedAtMs: EpochMs; readonly expiresAtMs?: number };

/** One subject's last message under compare-and-set; the version before it is what a lagging replica still shows. */
class Slots<T> {
  readonly #slots = new Map<string, { readonly key: TimerKey; readonly last: Version<T>; readonly previous?: Version<T> | undefined }>();
  readonly #clock: SteppedClock;
  #sequence = 0;

  constructor(clock: SteppedClock) {
    this.#clock = clock;
  }

  get lastSequence(): number {
    return this.#sequence;
  }

  last(key: TimerKey): Version<T> | undefined {
    return this.#live(this.#slots.get(nameOf(key))?.last);
  }

  previous(key: TimerKey): Version<T> | undefined {
    return this.#live(this.#slots.get(nameOf(key))?.previous);
  }

  /** `expected` 0 means that nothing may be there. */
  put(key: TimerKey, value: T, options: { readonly expected: number; readonly ttlMs?: DurationMs }): WriteOutcome {
    const last = this.last(key);
    if ((last?.revision ?? 0) !== options.expected) return { kind: options.expected === 0 ? "exists" : "conflict" };
    this.set(key, value, options.ttlMs);
    return { kind: "stored", revision: this.#sequence };
  }

  /** Without any expectation, as somebody else's write. */
  set(key: TimerKey, value: T, ttlMs?: DurationMs): void {
    this.#sequence += 1;
    const expiry = ttlMs === undefined ? {} : { expiresAtMs: this.#clock.nowMs() + ttlMs };
    this.#slots.set(nameOf(key), { key, last: { revision: this.#sequence, value, storedAtMs: this.#clock.nowMs(), ...expiry }, previous: this.last(key) });
  }

  delete(key: TimerKey): void {
    this.#slots.delete(nameOf(key));
  }

  /** In the order of their revisions. */
  all(): readonly { readonly key: TimerKey; readonly revision: number; readonly value: T }[] {
    const live = [...this.#slots.values()].flatMap(({ key, last }) => (this.#live(last) === undefined ? [] : [{ key, ...last }]));
    return live.sort((a, b) => a.revision - b.revision);
  }

  #live(version: Version<T> | undefined): Version<T> | undefined {
    return version?.expiresAtMs !== undefined && version.expiresAtMs <= this.#clock.nowMs() ? undefined : version;
  }
}

/** Bytes of a record, or undefined for a removed record's marker. */
type StateValue = Uint8Array | undefined;

export type PublishedResume = { readonly key: TimerKey; readonly record: ElapsedRecord; readonly body: Uint8Array; readonly atMs: EpochMs };

export type FakeSchedule = Armed & { readonly key: TimerKey; readonly fireAtMs: EpochMs };

export class FakeBroker {
  readonly clock: SteppedClock;
  readonly faults = new Faults();
  readonly state: Slots<StateValue>;
  readonly snapshots: Slots<Snapshot | Grave>;
  readonly archive: Slots<StateValue>;
  /** By `nameOf(key)`; deleting from these is losing part of SCHEDULES. */
  readonly schedules = new Map<string, FakeSchedule>();
  readonly wakes = new Map<string, FakeSchedule>();
  /** Names of timers whose schedule does not fire, until it is armed anew. */
  readonly stuck = new Set<string>();
  /** What lies in RESUMES; a second copy within the duplicate window is not stored. */
  readonly resumes: PublishedResume[] = [];
  readonly outcomes: { readonly replyTo: string; readonly outcome: Outcome }[] = [];
  readonly rejected: Rejected[] = [];
  readonly notes = new Map<string, { readonly text: string; readonly revision: number }>();
  readonly sources: { readonly start: FakeSource; readonly feedback: FakeSource; readonly wake: FakeSource };
  readonly ports: WorkerPorts;
  usage: Usage | undefined = emptyUsage;
  data: DataLook | undefined = wholeData();
  topology: TopologyFinding = { kind: "usable", schedules: { incarnation: "first", createdAt: "2030-01-01T00:00:00Z", lastSequence: 0 }, payloadBytesMax: 1_000_000 };
  /** This many more reads see what was there before the last write; looks at schedules see nothing. */
  staleReads: Record<ReadFrom, number> = { replica: 0, leader: 0 };
  /** Small, so that tests with few records see more than one batch. */
  walkBatchSize = 3;
  /** How far the worker's bound lags behind the broker's clock; undefined when it has no sample. */
  clockLagMs: number | undefined = 0;
  #epoch = 1;
  #scheduleSequence = 0;
  #noteRevision = 0;
  #commandSequence = 0;
  readonly #resumeIds = new Map<string, number>();

  constructor(clock: SteppedClock) {
    this.clock = clock;
    this.state = new Slots(clock);
    this.snapshots = new Slots(clock);
    this.archive = new Slots(clock);
    const common = { clock, epoch: () => this.#epoch };
    this.sources = {
      start: new FakeSource(common),
      feedback: new FakeSource(common),
      wake: new FakeSource({ ...common, refill: () => { this.fireSchedules(); }, nextRefillAtMs: () => this.#nextFireAtMs() }),
    };
    this.ports = this.#makePorts();
  }

  /** Everything in hand becomes old; the broker delivers it again after the ack wait. */
  disconnect(): void {
    this.#epoch += 1;
  }

  /** Puts a command where its loop takes it. */
  send(verb: CommandVerb, message: { readonly contextHeader?: string; readonly body?: Uint8Array; readonly replyTo?: string }): StoredMessage {
    this.#commandSequence += 1;
    const headers = new Map<string, string>();
    if (message.contextHeader !== undefined) headers.set(headerNames.context, message.contextHeader);
    if (message.replyTo !== undefined) headers.set(headerNames.replyTo, message.replyTo);
    const stored = { subject: commandSubjects[verb], sequence: this.#commandSequence, timestampNs: nanos(this.clock.nowMs()), headers: headersOf(headers), body: message.body ?? new Uint8Array() };
    this.sources[verb === "start" ? "start" : "feedback"].add(stored);
    return stored;
  }

  /** The record of a timer as stored, or undefined. */
  recordOf(key: TimerKey): TimerRecord | undefined {
    const read = readState(this.state.last(key));
    return read.kind === "found" ? read.value : undefined;
  }

  archivedOf(key: TimerKey): TimerRecord | undefined {
    const stored = this.archive.last(key);
    const decoded = stored?.value === undefined ? undefined : decodeRecord(stored.value);
    return decoded?.ok === true ? decoded.record : undefined;
  }

  /** Turns every schedule that is due into its wake. */
  fireSchedules(): void {
    const due = [...this.schedules.values()].filter((schedule) => schedule.fireAtMs <= this.clock.nowMs() && !this.stuck.has(nameOf(schedule.key)));
    for (const schedule of due.sort((a, b) => a.sequence - b.sequence)) {
      this.schedules.delete(nameOf(schedule.key));
      this.addWake(schedule);
    }
  }

  addWake(wake: Omit<FakeSchedule, "sequence" | "fireAtMs">): void {
    this.#scheduleSequence += 1;
    const sequence = this.#scheduleSequence;
    this.wakes.set(nameOf(wake.key), { ...wake, sequence, fireAtMs: this.clock.nowMs() });
    const headers = new Map([[headerNames.fence, `${String(wake.generation)}:${String(wake.fence)}`], [headerNames.dueAt, String(wake.dueAtMs)]]);
    this.sources.wake.add({ subject: wakeSubject(wake.key), sequence, timestampNs: nanos(this.clock.nowMs()), headers: headersOf(headers), body: new Uint8Array() });
  }

  /** SCHEDULES deleted and created anew: another incarnation without content, whose sequences begin again. */
  recreateSchedules(): void {
    this.schedules.clear();
    this.wakes.clear();
    this.sources.wake.removeAll();
    this.#scheduleSequence = 0;
    assert(this.topology.kind === "usable", "a topology to change");
    const { schedules } = this.topology;
    this.topology = { ...this.topology, schedules: { ...schedules, incarnation: `${schedules.incarnation}'`, createdAt: new Date(this.clock.nowMs()).toISOString() } };
  }

  get scheduleSequence(): number {
    return this.#scheduleSequence;
  }

  #nextFireAtMs(): number | undefined {
    const times = [...this.schedules.values()].filter(({ key }) => !this.stuck.has(nameOf(key))).map(({ fireAtMs }) => fireAtMs);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  #makePorts(): WorkerPorts {
    return {
      state: {
        read: (keys, from) => this.#readEach("state.read", keys, (key) => readState(this.#version(this.state, { key, from }))),
        write: (items) => this.#writeEach("state.write", items, ({ key, record, expected = 0 }) => this.state.put(key, encodeRecord(record), { expected })),
        remove: (items) => this.#writeEach("state.remove", items, ({ key, expected }) => this.state.put(key, undefined, { expected, ttlMs: stateMarkerTtlMs })),
      },
      snapshots: {
        create: (items) => this.#writeEach("snapshots.create", items, ({ key, snapshot }) => this.snapshots.put(key, snapshot, { expected: 0 })),
        read: (keys, from) => this.#readEach("snapshots.read", keys, (key) => readSnapshot(this.#version(this.snapshots, { key, from }))),
        bury: (items) => this.#writeEach("snapshots.bury", items, ({ key, grave, expected }) => this.snapshots.put(key, grave, { expected, ...(grave.expiresInMs === undefined ? {} : { ttlMs: grave.expiresInMs }) })),
      },
      schedules: {
        arm: (items) => this.#writeEach("schedules.arm", items, (item) => this.#arm(item)),
        look: (keys, from = "leader") => this.#look(keys, from),
        disarm: (keys) => this.#writeEach("schedules.disarm", keys.map((key) => ({ key })), ({ key }) => this.#disarm(key)),
      },
      resumes: { publish: (items) => this.#writeEach("resumes.publish", items, (item) => this.#publishResume(item)) },
      archive: {
        create: (items) => this.#writeEach("archive.create", items, ({ key, record }) => this.archive.put(key, encodeRecord(record), { expected: 0 })),
        read: (keys, from = "leader") => this.#readEach("archive.read", keys, (key) => readArchived(this.#version(this.archive, { key, from }))),
        remove: (items) => this.#writeEach("archive.remove", items, ({ key, expected }) => this.archive.put(key, undefined, { expected, ttlMs: archiveMarkerTtlMs })),
      },
      sources: this.sources,
      outcomes: { send: (items) => { this.outcomes.push(...items); } },
      rejected: { keep: (items) => { this.rejected.push(...items); } },
      clock: {
        lowerBoundMs: () => (this.clockLagMs === undefined ? undefined : (this.clock.nowMs() - this.clockLagMs) as EpochMs),
        refresh: () => Promise.resolve(),
      },
      capacity: { usage: () => Promise.resolve(this.usage) },
      data: { look: () => Promise.resolve(this.data) },
      topology: { check: () => Promise.resolve(this.#checkTopology()) },
      notes: { read: (name) => this.#readNote(name), write: (item) => this.#writeNote(item) },
      walk: { walk: (signal) => this.#walk(signal) },
      collection: { archive: (signal) => this.#walkArchive(signal), snapshots: (signal) => this.#walkSnapshots(signal) },
    };
  }

  /** One tick for the call, as a round trip has; then every item under its fault. */
  async #writeEach<T extends { readonly key: TimerKey }>(operation: WriteOperation, items: readonly T[], store: (item: T) => WriteOutcome): Promise<readonly WriteOutcome[]> {
    assertDistinct(items.map(({ key }) => key));
    await Promise.resolve();
    this.fireSchedules();
    return items.map((item) => this.faults.write(operation, () => store(item)));
  }

  async #readEach<Read>(operation: ReadOperation, keys: readonly TimerKey[], read: (key: TimerKey) => Read): Promise<readonly (Read | Extract<ReadOutcome<never>, { kind: "failed" }>)[]> {
    assertDistinct(keys);
    await Promise.resolve();
    const failure = this.faults.readFailure(operation);
    return keys.map((key) => (failure === undefined ? read(key) : { kind: "failed", failure }));
  }

  #version<T>(slots: Slots<T>, { key, from }: { readonly key: TimerKey; readonly from: ReadFrom }): Version<T> | undefined {
    return this.#isStale(from) ? slots.previous(key) : slots.last(key);
  }

  #isStale(from: ReadFrom): boolean {
    if (this.staleReads[from] <= 0) return false;
    this.staleReads[from] -= 1;
    return true;
  }

  #arm({ key, expected = 0, ...rest }: ArmItem): WriteOutcome {
    const name = nameOf(key);
    if ((this.schedules.get(name)?.sequence ?? 0) !== expected) return { kind: expected === 0 ? "exists" : "conflict" };
    this.#scheduleSequence += 1;
    this.schedules.set(name, { key, ...rest, sequence: this.#scheduleSequence });
    this.stuck.delete(name);
    this.sources.wake.poke();
    return { kind: "stored", revision: this.#scheduleSequence };
  }

  #disarm(key: TimerKey): WriteOutcome {
    this.schedules.delete(nameOf(key));
    return { kind: "stored", revision: this.#scheduleSequence };
  }

  async #look(keys: readonly TimerKey[], from: ReadFrom): Promise<readonly ArmedLook[]> {
    assertDistinct(keys);
    await Promise.resolve();
    this.fireSchedules();
    const failure = this.faults.readFailure("schedules.look");
    const waking = new Set(this.sources.wake.messages.map(({ sequence }) => sequence));
    return keys.map((key): ArmedLook => {
      if (failure !== undefined) return { kind: "failed", failure };
      if (this.#isStale(from)) return { kind: "seen" };
      const schedule = this.schedules.get(nameOf(key));
      const wake = this.wakes.get(nameOf(key));
      return { kind: "seen", ...(schedule === undefined ? {} : { schedule: armedOf(schedule) }), ...(wake === undefined || !waking.has(wake.sequence) ? {} : { wake: armedOf(wake) }) };
    });
  }

  #publishResume({ key, record, body }: Omit<PublishedResume, "atMs">): WriteOutcome {
    const id = resumeMessageId(key, record);
    const earlierAtMs = this.#resumeIds.get(id);
    const isDuplicate = earlierAtMs !== undefined && this.clock.nowMs() - earlierAtMs < duplicateWindowMs;
    if (!isDuplicate) {
      this.#resumeIds.set(id, this.clock.nowMs());
      this.resumes.push({ key, record, body, atMs: this.clock.nowMs() });
    }
    return { kind: "stored", revision: this.resumes.length };
  }

  #checkTopology(): TopologyFinding {
    if (this.topology.kind !== "usable") return this.topology;
    return { ...this.topology, schedules: { ...this.topology.schedules, lastSequence: this.#scheduleSequence } };
  }

  async #readNote(name: string): Promise<ReadOutcome<string>> {
    await Promise.resolve();
    const failure = this.faults.readFailure("notes.read");
    if (failure !== undefined) return { kind: "failed", failure };
    const note = this.notes.get(name);
    return note === undefined ? { kind: "absent" } : { kind: "found", value: note.text, revision: note.revision };
  }

  async #writeNote({ name, text, expected }: { readonly name: string; readonly text: string; readonly expected: number }): Promise<WriteOutcome> {
    await Promise.resolve();
    return this.faults.write("notes.write", () => {
      if ((this.notes.get(name)?.revision ?? 0) !== expected) return { kind: expected === 0 ? "exists" : "conflict" };
      this.#noteRevision += 1;
      this.notes.set(name, { text, revision: this.#noteRevision });
      return { kind: "stored", revision: this.#noteRevision };
    });
  }

  async *#walkArchive(signal: AbortSignal): AsyncIterable<readonly WalkedArchive[]> {
    const all = this.archive.all().map(({ key, revision }) => ({ key, revision, last: this.archive.last(key) }));
    for (let from = 0; from < all.length && !signal.aborted; from += this.walkBatchSize) {
      await Promise.resolve();
      const batch = all.slice(from, from + this.walkBatchSize).filter(({ last }) => last?.value !== undefined);
      yield batch.map(({ key, revision, last }) => ({ key, revision, archivedAtMs: (last?.storedAtMs ?? 0) as EpochMs, record: readArchived(last) }));
    }
  }

  async *#walkSnapshots(signal: AbortSignal): AsyncIterable<readonly WalkedSnapshot[]> {
    const all = this.snapshots.all().map(({ key, revision, value }) => ({ key, revision, value, storedAtMs: (this.snapshots.last(key)?.storedAtMs ?? 0) as EpochMs }));
    for (let from = 0; from < all.length && !signal.aborted; from += this.walkBatchSize) {
      await Promise.resolve();
      yield all.slice(from, from + this.walkBatchSize).map(({ key, revision, value, storedAtMs }) => ({
        key, revision, storedAtMs, found: "body" in value ? { kind: "snapshot" } : { kind: "collected", grave: value },
      }));
    }
  }

  async *#walk(signal: AbortSignal): AsyncIterable<readonly WalkedRecord[]> {
    const keys = this.state.all().map(({ key, revision }) => ({ key, revision }));
    for (let from = 0; from < keys.length && !signal.aborted; from += this.walkBatchSize) {
      await Promise.resolve();
      const batch = keys.slice(from, from + this.walkBatchSize);
      // What was replaced since the walk began lies behind its end.
      yield batch.flatMap(({ key, revision }) => {
        const last = this.state.last(key);
        return last?.revision !== revision || last.value === undefined ? [] : [{ key, revision, record: readState(last) }];
      });
    }
  }
}

/** The name under which maps of the fake hold a timer. */
export function nameOf(key: TimerKey): string {
  return `${key.flow}.${key.ref}`;
}

const emptyUsage: Usage = {
  state: { messages: 0, bytes: 0, bytesMax: 1_000_000 },
  snapshots: { messages: 0, bytes: 0, bytesMax: 1_000_000 },
  terminals: { messages: 0, bytes: 0, bytesMax: 1_000_000 },
  account: { bytes: 0, replicas: 1 },
};

/** Streams of one owner, each in its first life. */
export function wholeData(): DataLook {
  const life = { ownerId: "o", incarnation: "first", createdAt: "2030-01-01T00:00:00Z", lastSequence: 0 };
  return { streams: { state: life, snapshots: life, terminals: life, resumes: life, feedback: life, commands: life }, hasOwnerKey: true, lacksSnapshots: false };
}

function readState(version: Version<StateValue> | undefined): ReadOutcome<TimerRecord> {
  if (version === undefined) return { kind: "absent" };
  const { revision, value } = version;
  if (value === undefined) return { kind: "marker", revision };
  const decoded = decodeRecord(value);
  return decoded.ok ? { kind: "found", value: decoded.record, revision } : { kind: "unreadable", problem: decoded.problem, revision };
}

function readArchived(version: Version<StateValue> | undefined): ReadOutcome<TerminalRecord> {
  const read = readState(version);
  if (read.kind !== "found" || read.value.phase === "terminal") return read as ReadOutcome<TerminalRecord>;
  return { kind: "unreadable", problem: "is no terminal record", revision: read.revision };
}

function readSnapshot(version: Version<Snapshot | Grave> | undefined): SnapshotReading {
  if (version === undefined) return { kind: "absent" };
  const { value, revision } = version;
  return "body" in value ? { kind: "found", value, revision } : { kind: "collected", grave: value, revision };
}

function armedOf({ generation, fence, dueAtMs, sequence }: FakeSchedule): Armed {
  return { generation, fence, dueAtMs, sequence };
}

/** P5 */
function assertDistinct(keys: readonly TimerKey[]): void {
  assert(new Set(keys.map(nameOf)).size === keys.length, "items of different timers");
}

function headersOf(headers: ReadonlyMap<string, string>): MessageHeaders {
  return { get: (name) => headers.get(name), all: (name) => { const value = headers.get(name); return value === undefined ? [] : [value]; } };
}

function nanos(instant: EpochMs): bigint {
  return BigInt(instant) * 1_000_000n;
}
