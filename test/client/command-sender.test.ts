import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import { commandAttemptCountMax, commandRetryDelayMs, outcomesAwaitedMax } from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import type { CommandMessage } from "../../src/client/command-message.ts";
import { CommandSender } from "../../src/client/command-sender.ts";
import { ReplyInbox } from "../../src/client/reply-inbox.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { ScriptedJetStream } from "./scripted-jet-stream.ts";

const command: CommandMessage = { verb: "complete", ref: "r".repeat(32), contextHeader: "{}", body: new Uint8Array([1]), messageId: "complete:r:0:2:aa" };
const oneSecond = 1_000 as DurationMs;
const timeout = new Failure("transient", "BROKER_TIMEOUT", "publish");

let clock: SteppedClock;
let broker: ScriptedJetStream;
let stopping: AbortController;
let inbox: ReplyInbox;
let sender: CommandSender;

beforeEach(() => {
  clock = new SteppedClock();
  broker = new ScriptedJetStream();
  stopping = new AbortController();
  const jetStream = broker.asJetStream();
  inbox = new ReplyInbox({ jetStream, clock, prefix: "_INBOX.durable_timer.me" });
  sender = new CommandSender({ jetStream, inbox, clock, stopped: stopping.signal });
});
afterEach(() => { expect(clock.sleeperCount, "sleeps left behind").toBe(0); });

describe("CommandSender", () => {
  it("sends context, body and message id, and no reply subject when nobody awaits the outcome", async () => {
    await expect(sender.send(command)).resolves.toEqual({ sequence: 1, duplicate: false, resent: false });
    expect(broker.published).toEqual([
      { subject: "durable_timer.commands.complete.v1", headers: [["Durable-Timer-Context", "{}"]], body: command.body, messageId: command.messageId },
    ]);
    expect(broker.listening.size).toBe(0);
  });

  it("resolves with the outcome that comes to the command's own reply subject", async () => {
    const sent = sender.send(command, oneSecond);
    await clock.advance(10);
    broker.reply("_INBOX.durable_timer.me.999", '{"v":1,"outcome":"rejected","code":"stale"}');
    broker.reply(broker.lastReplyTo() ?? "", '{"v":1,"outcome":"accepted","ref":"r","generation":1,"fence":3,"dueAt":"2030-01-01T00:00:00.000Z","state":"completed","later":true}');
    await expect(sent).resolves.toEqual({
      sequence: 1, duplicate: false, resent: false,
      outcome: { kind: "accepted", generation: 1, fence: 3, dueAt: new Date("2030-01-01T00:00:00.000Z"), state: "completed" },
    });
  });

  it("tells code and problem of a rejected command", async () => {
    const sent = sender.send(command, oneSecond);
    await clock.advance(0);
    broker.reply(broker.lastReplyTo() ?? "", '{"v":1,"outcome":"rejected","code":"context_invalid","problem":"node must not be empty"}');
    await expect(sent).resolves.toMatchObject({ outcome: { kind: "rejected", code: "context_invalid", problem: "node must not be empty" } });
  });

  it("takes the outcome that came before the acknowledgement was seen", async () => {
    broker.answers.push({ kind: "unknown", failure: timeout });
    const sent = sender.send(command, oneSecond);
    await clock.advance(0);
    broker.reply(broker.lastReplyTo() ?? "", '{"v":1,"outcome":"accepted"}');
    await clock.advance(commandRetryDelayMs);
    await expect(sent).resolves.toMatchObject({ outcome: { kind: "accepted" } });
  });

  it("says unknown when no outcome comes in time, counted from the acknowledgement", async () => {
    let isDone = false;
    const sent = sender.send(command, oneSecond).finally(() => { isDone = true; });
    await clock.advance(999);
    expect(isDone).toBe(false);
    await clock.advance(1);
    await expect(sent).resolves.toEqual({ sequence: 1, duplicate: false, resent: false, outcome: { kind: "unknown" } });
  });

  it("passes over a reply that is no outcome", async () => {
    const sent = sender.send(command, oneSecond);
    await clock.advance(0);
    broker.reply(broker.lastReplyTo() ?? "", "not json");
    await clock.advance(1_000);
    await expect(sent).resolves.toMatchObject({ outcome: { kind: "unknown" } });
  });

  it("sends a duplicate once more without an id when its outcome is awaited, so that a worker sees it", async () => {
    broker.answers.push({ kind: "stored", sequence: 40, duplicate: true });
    const sent = sender.send(command, oneSecond);
    await clock.advance(0);
    broker.reply(broker.lastReplyTo() ?? "", '{"v":1,"outcome":"duplicate","state":"completed"}');
    await expect(sent).resolves.toEqual({ sequence: 40, duplicate: true, resent: false, outcome: { kind: "duplicate", state: "completed" } });
    expect(broker.published.map(({ messageId }) => messageId)).toEqual([command.messageId, undefined]);
    expect(broker.published[0]?.headers).toEqual(broker.published[1]?.headers);
  });

  it("does not send a duplicate again when nobody awaits its outcome", async () => {
    broker.answers.push({ kind: "stored", sequence: 40, duplicate: true });
    await expect(sender.send(command)).resolves.toEqual({ sequence: 40, duplicate: true, resent: false });
    expect(broker.published).toHaveLength(1);
  });

  it("sends again with the same id when the acknowledgement does not come", async () => {
    broker.answers.push({ kind: "unknown", failure: timeout });
    const sent = sender.send(command);
    await clock.advance(commandRetryDelayMs);
    await expect(sent).resolves.toMatchObject({ duplicate: false, resent: true });
    expect(broker.published.map(({ messageId }) => messageId)).toEqual([command.messageId, command.messageId]);
  });

  it("gives up after a bounded number of attempts and says that the outcome is open", async () => {
    for (let attempt = 0; attempt < commandAttemptCountMax; attempt += 1) broker.answers.push({ kind: "unknown", failure: timeout });
    const sent = sender.send(command).catch((error: unknown) => error);
    for (let attempt = 0; attempt < commandAttemptCountMax; attempt += 1) await clock.advance(commandRetryDelayMs * 2 ** attempt);
    await expect(sent).resolves.toMatchObject({ kind: "transient", code: "BROKER_TIMEOUT", message: expect.stringContaining("sending it again is safe") as string, cause: timeout });
    expect(broker.published).toHaveLength(commandAttemptCountMax);
  });

  const final = [
    { failure: new Failure("capacity", "STREAM_FULL", "publish"), because: "waiting out a full stream is the caller's choice" },
    { failure: new Failure("denied", "BROKER_PERMISSION", "publish"), because: "more attempts do not bring rights" },
    { failure: new Failure("invalid", "MESSAGE_TOO_LARGE", "publish"), because: "the message does not shrink" },
  ];
  it.each(final)("does not send again after $failure.code: $because", async ({ failure }) => {
    broker.answers.push({ kind: "refused", failure });
    await expect(sender.send(command, oneSecond)).rejects.toMatchObject({ kind: failure.kind, code: failure.code, cause: failure });
    expect(broker.published).toHaveLength(1);
  });

  it("rejects at once with a closed client", async () => {
    stopping.abort();
    await expect(sender.send(command)).rejects.toMatchObject({ code: "STOPPED" });
    expect(broker.published).toHaveLength(0);
  });

  it("ends the wait for outcomes when the inbox closes", async () => {
    const sent = sender.send(command, oneSecond);
    await clock.advance(0);
    inbox.close();
    await expect(sent).resolves.toMatchObject({ outcome: { kind: "unknown" } });
    expect(broker.listening.size).toBe(0);
  });
});

describe("ReplyInbox", () => {
  it("refuses to await more outcomes than it may hold, and has room again once one is forgotten", () => {
    const expected = Array.from({ length: outcomesAwaitedMax }, () => inbox.expect());
    expect(() => inbox.expect()).toThrow(expect.objectContaining({ kind: "capacity" }));
    expected[0]?.forget();
    expect(inbox.expect().subject).toBe(`_INBOX.durable_timer.me.${String(outcomesAwaitedMax + 1)}`);
    expect(broker.listening.size).toBe(1);
  });
});
