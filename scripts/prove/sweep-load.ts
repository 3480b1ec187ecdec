// Timers for the proof of the sweep, stored as their starts would have left them, without the detour over commands.

import type { EpochMs } from "../../src/base/units.ts";
import { prepareStart } from "../../src/client/start.ts";
import { armedHeaders } from "../../src/nats/armed.ts";
import type { BrokerConnection, OutgoingMessage } from "../../src/nats/core/jetstream.ts";
import { headerNames, scheduleSubject, snapshotSubject, stateKey, stateSubject, terminalSubject, wakeSubject } from "../../src/protocol/names.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { payloadHash } from "../../src/timer/hashes.ts";
import { timerKey } from "../../src/timer/identity.ts";
import type { ContentHash, WaitingRecord } from "../../src/timer/record.ts";
import { armItem } from "../../src/worker/stages.ts";

/** What to store: started long ago, due evenly spread over a time to come. */
export type Load = { readonly count: number; readonly startedAtMs: number; readonly firstDueAtMs: number; readonly spreadMs: number; readonly archivedCount: number };

/** Stores record, snapshot and schedule of every timer; `say` hears of progress. */
export async function storeTimers(broker: BrokerConnection, load: Load, say: (line: string) => void): Promise<void> {
  for (let from = 0; from < load.count; from += chunkSize) {
    const chunk = Array.from({ length: Math.min(chunkSize, load.count - from) }, (_, index) => timerOf(load, from + index));
    await Promise.all([
      storeBatch(broker, chunk.map(({ snapshot }) => snapshot)),
      storeBatch(broker, chunk.map(({ state }) => state)),
      storeEach(broker, chunk.map(({ schedule }) => schedule)),
    ]);
    if ((from + chunk.length) % 100_000 === 0) say(`${String(from + chunk.length)} timers stored`);
  }
  for (let from = 0; from < load.archivedCount; from += chunkSize) {
    await storeBatch(broker, Array.from({ length: Math.min(chunkSize, load.archivedCount - from) }, (_, index) => archivedOf(load, load.count + from + index)));
  }
}

type Stored = { readonly snapshot: OutgoingMessage; readonly state: OutgoingMessage; readonly schedule: OutgoingMessage };

function timerOf(load: Load, index: number): Stored {
  const { key, record, contextHeader } = recordOf(load, index);
  const armed = armItem(key, record);
  return {
    snapshot: { subject: snapshotSubject(key), headers: [[headerNames.context, contextHeader]], body },
    state: { subject: stateSubject(stateKey(key)), headers: [], body: encodeRecord(record) },
    schedule: { subject: scheduleSubject(key), headers: armedHeaders(armed), body: new Uint8Array(0), schedule: { fireAtMs: armed.fireAtMs, target: wakeSubject(key) } },
  };
}

function archivedOf(load: Load, index: number): OutgoingMessage {
  const { key, record } = recordOf(load, index);
  const ended = { ...record, phase: "terminal", outcome: "failed", failure: { code: "done", message: "" }, fence: 2, endedAtMs: record.startedAtMs } as const;
  return { subject: terminalSubject(key), headers: [], body: encodeRecord(ended) };
}

function recordOf(load: Load, index: number) {
  const lineage = { flow: { id: "orders", version: "1" }, execution: `loaded-${String(index)}`, node: "wait", edges: { start: "placed", elapsed: "overdue", retry: "reminded" } };
  const prepared = prepareStart({ ...lineage, wait: { delayMs: 60_000 }, maxRetries: 3, body }, { brokerPayloadBytesMax: undefined }, systemSha256);
  const record: WaitingRecord = {
    phase: "waiting", lineage, snapshotHash: prepared.waiting.snapshotHash as ContentHash, payloadHash: bodyHash, payloadBytes: body.length, maxRetries: 3, retryDelayMs: 60_000 as never,
    // A step that shares no factor with the spread mixes the due times, as they are in life.
    startedAtMs: load.startedAtMs as EpochMs, dueAtMs: Math.floor(load.firstDueAtMs + (index * 7_919_933) % load.spreadMs) as EpochMs, generation: 0, fence: 1,
  };
  return { key: timerKey(lineage, systemSha256), record, contextHeader: prepared.message.contextHeader };
}

async function storeBatch(broker: BrokerConnection, messages: readonly OutgoingMessage[]): Promise<void> {
  const outcome = await broker.jetStream.publishAtomically(messages);
  if (outcome.kind !== "stored") throw new Error(`store a batch: ${outcome.kind}`, { cause: "failure" in outcome ? outcome.failure : undefined });
}

async function storeEach(broker: BrokerConnection, messages: readonly OutgoingMessage[]): Promise<void> {
  const outcomes = await broker.jetStream.publish(messages);
  const bad = outcomes.find(({ kind }) => kind !== "stored");
  if (bad !== undefined) throw new Error(`store schedules: ${bad.kind}`);
}

const chunkSize = 500;
const body = Buffer.from('{"order":"4711","amount":"12.50"}');
const bodyHash = payloadHash(body, systemSha256);
