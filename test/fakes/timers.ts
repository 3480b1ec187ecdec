// Timers for tests: a lineage by number, its key, its snapshot, and records of each phase that fit the snapshot.

import { utf8 } from "../../src/base/bytes.ts";
import type { DurationMs, EpochMs } from "../../src/base/units.ts";
import { startInput } from "../../src/protocol/command.ts";
import { readContext, startContextSchema, writeContext } from "../../src/protocol/context.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { payloadHash } from "../../src/timer/hashes.ts";
import { timerKey, type TimerKey } from "../../src/timer/identity.ts";
import type { StartInput } from "../../src/timer/input.ts";
import type { ElapsedRecord, TerminalRecord, WaitingRecord } from "../../src/timer/record.ts";
import type { Snapshot } from "../../src/worker/ports.ts";

export type TestTimer = { readonly key: TimerKey; readonly snapshot: Snapshot; readonly start: StartInput };

export type TimerOptions = { readonly delayMs?: number; readonly maxRetries?: number; readonly flow?: string; readonly startedAtMs?: number; readonly body?: Uint8Array };

/** The timer of number `index`: another number is another execution. */
export function testTimer(index: number, options: TimerOptions = {}): TestTimer {
  const { delayMs = 60_000, maxRetries = 3, flow = "orders", startedAtMs = Date.UTC(2030, 0, 1) } = options;
  const body = options.body ?? utf8(`{"order":${String(index)}}`);
  const contextHeader = writeContext({
    v: 1, flow: { id: flow, version: "1" }, execution: `ex-${String(index)}`, node: "wait", edges: { start: "e1", elapsed: "e2", retry: "e3" },
    wait: { delayMs }, maxRetries, payloadHash: payloadHash(body, systemSha256),
  });
  const read = readContext(contextHeader, startContextSchema);
  if (!read.ok) throw new Error(`the test's own context: ${read.field} ${read.problem}`);
  const start = startInput(read.context, { receivedAtNs: BigInt(startedAtMs) * 1_000_000n, payloadBytes: body.length }, systemSha256);
  return { key: timerKey(start.lineage, systemSha256), snapshot: { contextHeader, body }, start };
}

/** Its record as creation leaves it, due after its delay. */
export function waitingRecord({ start }: TestTimer, changes: Partial<WaitingRecord> = {}): WaitingRecord {
  const { lineage, snapshotHash, payloadHash: hash, payloadBytes, maxRetries, retryDelayMs, receivedAtMs, wait } = start;
  const dueAtMs = (wait.kind === "due" ? wait.dueAtMs : receivedAtMs + wait.delayMs) as EpochMs;
  return {
    phase: "waiting", lineage, snapshotHash, payloadHash: hash, payloadBytes, maxRetries, startedAtMs: receivedAtMs, dueAtMs, generation: 0, fence: 1,
    ...(retryDelayMs === undefined ? {} : { retryDelayMs }), ...changes,
  };
}

/** Its record one transition later: elapsed when it was due. */
export function elapsedRecord(timer: TestTimer, changes: Partial<ElapsedRecord> = {}): ElapsedRecord {
  const waiting = waitingRecord(timer);
  return { ...waiting, phase: "elapsed", armedFence: waiting.fence, fence: waiting.fence + 1, elapsedAtMs: waiting.dueAtMs, ...changes };
}

/** Its record once completed, a second after it elapsed. */
export function terminalRecord(timer: TestTimer, changes: Partial<TerminalRecord> = {}): TerminalRecord {
  const { armedFence: _, ...elapsed } = elapsedRecord(timer);
  return { ...elapsed, phase: "terminal", outcome: "completed", fence: elapsed.fence + 1, endedAtMs: (elapsed.elapsedAtMs + 1_000) as EpochMs, ...changes };
}

export const ms = (value: number): DurationMs => value as DurationMs;
