import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { EpochMs } from "../../src/base/units.ts";
import { readCommand, type CommandLimits } from "../../src/protocol/command.ts";
import { feedbackMessageId, resumeMessageId, startMessageId, terminalMessageId } from "../../src/protocol/ids.ts";
import { scheduleSubject, snapshotSubject, stateKey, stateSubject, terminalSubject, timerKeyFromSubject, wakeSubject } from "../../src/protocol/names.ts";
import { decodeRecord, encodeRecord } from "../../src/protocol/record-codec.ts";
import { readResume, resumeContextHeader } from "../../src/protocol/resume.ts";
import { decide } from "../../src/timer/decide.ts";
import { timerKey, type Lineage } from "../../src/timer/identity.ts";
import { sha256 } from "../timer/records.ts";
import { message } from "./messages.ts";

type Identity = { lineage: Lineage; key: { flow: string; ref: string }; stateKey: string; subjects: Record<"state" | "snapshot" | "terminal" | "schedule" | "wake", string> };
type Message = { name: string; subject: string; contextHeader: string; bodyHex: string; messageId: string };
type Start = Message & { timestampNs: string; ref: string; snapshotHash: string; dueAtMs: number; record: string };
type Vectors = { identities: Identity[]; starts: Start[]; feedback: (Message & { receiptHash: string })[]; resumes: (Message & { record: string })[] };

const vectors = JSON.parse(readFileSync(new URL("../../docs/protocol-vectors.json", import.meta.url), "utf8")) as Vectors;
const limits: CommandLimits = { payloadBytesMax: 1_000_000, delayMsMax: 315_360_000_000 as never, retriesMax: 1_000, replyPrefix: "_INBOX.durable_timer" };
const stored = (vector: Message, timestampNs = 1_800_000_000_000_000_001n) =>
  message({ subject: vector.subject, headers: { "Durable-Timer-Context": vector.contextHeader }, body: Buffer.from(vector.bodyHex, "hex"), timestampNs });

describe("the published vectors hold for", () => {
  test.each(vectors.identities)("identity $key.flow.$key.ref", ({ lineage, key, stateKey: wantKey, subjects }) => {
    expect(timerKey(lineage, sha256)).toEqual(key);
    expect(stateKey(key)).toBe(wantKey);
    expect({
      state: stateSubject(stateKey(key)), snapshot: snapshotSubject(key), terminal: terminalSubject(key), schedule: scheduleSubject(key), wake: wakeSubject(key),
    }).toEqual(subjects);
    for (const subject of Object.values(subjects)) expect(timerKeyFromSubject(subject)).toEqual(key);
  });

  test.each(vectors.starts)("start: $name", (vector) => {
    const command = readCommand(stored(vector, BigInt(vector.timestampNs)), limits, sha256);
    if (!command.ok || command.input.kind !== "start") throw new Error("unreadable vector");
    const decision = decide({ basis: "assumed" }, command.input, 0 as EpochMs);
    const record = decision.kind === "advance" ? new TextDecoder().decode(encodeRecord(decision.next)) : "";
    expect({
      ref: command.key.ref, snapshotHash: command.input.snapshotHash, messageId: startMessageId(command.key, command.input.snapshotHash), record,
    }).toEqual({ ref: vector.ref, snapshotHash: vector.snapshotHash, messageId: vector.messageId, record: vector.record });
    expect(JSON.parse(record)).toMatchObject({ dueAtMs: vector.dueAtMs });
  });

  test.each(vectors.feedback)("feedback: $name", (vector) => {
    const command = readCommand(stored(vector), limits, sha256);
    if (!command.ok || command.input.kind !== "feedback") throw new Error("unreadable vector");
    expect(command.input.receiptHash).toBe(vector.receiptHash);
    expect(feedbackMessageId(command.key, command.input)).toBe(vector.messageId);
  });

  test.each(vectors.resumes)("resume: $name", (vector) => {
    const decoded = decodeRecord(Buffer.from(vector.record));
    if (!decoded.ok || decoded.record.phase !== "elapsed") throw new Error("unreadable vector");
    expect(resumeContextHeader(decoded.record)).toBe(vector.contextHeader);
    expect(resumeMessageId(timerKey(decoded.record.lineage, sha256), decoded.record)).toBe(vector.messageId);
    expect(readResume(stored(vector), sha256)).toMatchObject({ ok: true, resume: { generation: 0, fence: 2, lineage: decoded.record.lineage } });
  });
});

test("a terminal's message id is its ref alone: there is at most one (I6)", () => {
  const key = timerKey((vectors.identities[0] as Identity).lineage, sha256);
  expect(terminalMessageId(key)).toBe(`terminal:${key.ref}`);
});

test("a subject of another shape names no timer", () => {
  for (const subject of ["durable_timer.terminal.v1.~rejected.stale.7", "a", "", "$KV.DURABLE_TIMER_STATE.l.owner"]) expect(timerKeyFromSubject(subject)).toBeUndefined();
});
