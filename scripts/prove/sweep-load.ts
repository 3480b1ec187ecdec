// Timers for the proof of the sweep, stored as their starts would have left them, without the detour over commands.

import type { DurationMs, EpochMs } from "../../src/base/units.ts";
import { prepareStart } from "../../src/client/start.ts";
import { armedHeaders } from "../../src/nats/armed.ts";
import type { BrokerConnection, OutgoingMessage } from "../../src/nats/core/jetstream.ts";
import { headerNames, scheduleSubject, snapshotSubject, stateKey, stateSubject, terminalSubject, wakeSubject } from "../../src/protocol/names.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { payloadHash, snapshotHash } from "../../src/timer/hashes.ts";
import { timerKey } from "../../src/timer/identity.ts";
import type { WaitingRecord } from "../../src/timer/record.ts";
import { armItem } from "../../src/worker/stages.ts";

/** What to store: started long ago, due evenly spread over a time to come. */
export type Load = { readonly count: number; readonly startedAtMs: number; readonly firstDueAtMs: number; readonly spreadMs: number; readonly archivedCount: number };

/** Stores record, snapshot and schedule of every timer, and the archive; `say` hears of progress. */
export async function storeTimers(broker: BrokerConnection, load: Load, say: (line: string) => void): Promise<void> {
  let storedCount = 0;
  await inChunks(load.count, async (from, size) => {
    const chunk = Array.from({ length: size }, (_, index) => timerOf(load, from + index));
    await Promise.all([
      storeBatch(broker, chunk.map(({ snapshot }) => snapshot)),
      storeBatch(broker, chunk.map(({ state }) => state)),
      storeEach(broker, chunk.map(({ schedule }) => schedule)),
    ]);
    storedCount += size;
    if (storedCount % 100_000 === 0) say(`${String(storedCount)} timers stored`);
  });
  await inChunks(load.archivedCount, (from, size) => storeBatch(broker, Array.from({ length: size }, (_, index) => archivedOf(load, load.count + from + index))));
}

/** While one chunk is on its way the next is made. */
async function inChunks(count: number, store: (from: number, size: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const from = next;
      next += chunkSize;
      await store(from, Math.min(chunkSize, count - from));
    }
  };
  await Promise.all([lane(), lane(), lane()]);
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
  const start = { lineage, wait: { kind: "delay", delayMs: 60_000 as DurationMs }, maxRetries: 3, retryDelayMs: 60_000 as DurationMs, payloadHash: bodyHash } as const;
  const record: WaitingRecord = {
    phase: "waiting", lineage, snapshotHash: snapshotHash(start, systemSha256), payloadHash: bodyHash, payloadBytes: body.length, maxRetries: 3, retryDelayMs: start.retryDelayMs,
    // A step that shares no factor with the spread mixes the due times, as they are in life.
    startedAtMs: load.startedAtMs as EpochMs, dueAtMs: Math.floor(load.firstDueAtMs + (index * 7_919_933) % load.spreadMs) as EpochMs, generation: 0, fence: 1,
  };
  return { key: timerKey(lineage, systemSha256), record, contextHeader: contextTemplate.replace(templateExecution, lineage.execution) };
}

async function storeBatch(broker: BrokerConnection, messages: readonly OutgoingMessage[]): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const outcome = await broker.jetStream.publishAtomically(messages);
    if (outcome.kind === "stored") return;
    // A busy disk answers late. Storing the same once more changes nothing: each subject keeps its last message.
    if (outcome.kind !== "unknown" || attempt >= attemptCountMax) throw new Error(`store a batch: ${outcome.kind}`, { cause: "failure" in outcome ? outcome.failure : undefined });
  }
}

async function storeEach(broker: BrokerConnection, messages: readonly OutgoingMessage[]): Promise<void> {
  let left = messages;
  for (let attempt = 1; left.length > 0; attempt += 1) {
    const outcomes = await broker.jetStream.publish(left);
    left = left.filter((_, index) => outcomes[index]?.kind !== "stored");
    if (left.length > 0 && attempt >= attemptCountMax) throw new Error(`store schedules: ${String(left.length)} are left`);
  }
}

const attemptCountMax = 10;
const chunkSize = 500;
const body = Buffer.from('{"order":"4711","amount":"12.50"}');
const bodyHash = payloadHash(body, systemSha256);
/** Contexts differ in the execution alone: making each by itself would take longer than storing it. */
const templateExecution = "execution-of-the-template";
const contextTemplate = prepareStart({
  flow: { id: "orders", version: "1" }, execution: templateExecution, node: "wait", edges: { start: "placed", elapsed: "overdue", retry: "reminded" },
  wait: { delayMs: 60_000 }, maxRetries: 3, body,
}, { brokerPayloadBytesMax: undefined }, systemSha256).message.contextHeader;
