/**
 * The scenario that is replayed: eighteen timers over a year, each in minutes of the hour of its own, so that nothing falls
 * together; and what of its records must be the same however the year passes.
 *
 * What the rules decide is the same in every way: which records there are, in which order, with which generation, fence,
 * receipt, outcome, and how long each wait is in hours of the scenario. Instants depend on when the year began, and on how
 * long an hour is: a start names its delay in milliseconds, so that its hash changes with the hour too. So `rulesOf` counts
 * waits in hours, and says of the snapshot's hash only whether it is that of the start as it was sent.
 */
import { createHash } from "node:crypto";
import { prepareFeedback, type FeedbackTarget } from "../../src/client/feedback.ts";
import type { CommandMessage } from "../../src/client/command-message.ts";
import { prepareStart, type PreparedStart, type StartRequest } from "../../src/client/start.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import { Dice } from "./dice.ts";

/** One timer of the year; times in hours. */
export type Life = {
  readonly execution: string;
  readonly startHour: number;
  readonly waitHours: number;
  readonly retryWaitHours: number;
  readonly retryCount: number;
  /** From each resume to its answer. */
  readonly thinkHours: readonly number[];
  readonly doesFail: boolean;
};

/** All timers of the year. */
export function livesOfTheYear(): readonly Life[] {
  const dice = new Dice(2_026);
  return Array.from({ length: timerCount }, (_, index) => {
    const [waitHours, retryWaitHours, retryCount] = [dice.whole(24, 90 * 24), dice.whole(24, 60 * 24), dice.whole(0, 3)];
    return {
      execution: `ex-${String(index)}`, waitHours, retryWaitHours, retryCount, startHour: dice.whole(1, 200 * 24) + index / 20,
      thinkHours: Array.from({ length: retryCount + 1 }, () => dice.whole(1, 48)), doesFail: index % 3 === 0,
    };
  });
}

export function startOf(life: Life, hourMs: number): PreparedStart {
  return prepareStart(requestOf(life, hourMs), { brokerPayloadBytesMax: undefined }, systemSha256);
}

export function requestOf({ execution, waitHours, retryWaitHours, retryCount }: Life, hourMs: number): StartRequest {
  return {
    flow: { id: "orders", version: "1" }, execution, node: "wait", edges: { start: "e1", elapsed: "e2", retry: "e3" },
    wait: { delayMs: waitHours * hourMs }, maxRetries: retryCount, retryWait: { delayMs: retryWaitHours * hourMs }, body: Buffer.from(`event of ${execution}`),
  };
}

/** The answer to the resume of this generation. The last answer of every third timer is one retry too many. */
export function answerTo(life: Life, target: FeedbackTarget): CommandMessage {
  const verb = target.generation === life.retryCount && !life.doesFail ? "complete" : "retry";
  return prepareFeedback({ target, verb, body: Buffer.from("so it went") }, { brokerPayloadBytesMax: undefined }, systemSha256);
}

/** What was stored of one timer. */
export type Stored = { readonly records: readonly TimerRecord[]; readonly resumes: readonly { readonly generation: number; readonly fence: number; readonly body: Uint8Array }[] };

/** One hash over what the rules determine, timer by timer, each in its order. */
export function rulesHash(stored: (life: Life) => Stored, hourMs: number): string {
  const hash = createHash("sha256");
  for (const life of livesOfTheYear()) {
    const { snapshotHash } = startOf(life, hourMs).waiting;
    const { records, resumes } = stored(life);
    for (const record of records) hash.update(JSON.stringify(rulesOf(record, { snapshotHash, hourMs })));
    for (const { generation, fence, body } of resumes.toSorted((a, b) => a.generation - b.generation)) hash.update(JSON.stringify([life.execution, generation, fence, Buffer.from(body).toString("base64")]));
  }
  return hash.digest("hex");
}

function rulesOf(record: TimerRecord, { snapshotHash, hourMs }: { readonly snapshotHash: string; readonly hourMs: number }): Readonly<Record<string, unknown>> {
  const { startedAtMs: _began, dueAtMs, retryDelayMs = 0, ...kept } = { ...record, elapsedAtMs: undefined, endedAtMs: undefined };
  return {
    ...kept, snapshotHash: record.snapshotHash === snapshotHash, retryHours: retryDelayMs / hourMs,
    // Of a later generation the due time is the broker's stamp of the retry and the delay, and the stamp is in no record.
    ...(record.generation === 0 ? { waitHours: (dueAtMs - record.startedAtMs) / hourMs } : { isLater: dueAtMs > record.startedAtMs + retryDelayMs }),
  };
}

const timerCount = 18;
