import { errors } from "@nats-io/transport-node";
import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { Failure } from "../../../src/base/failure.ts";
import type { DurationMs } from "../../../src/base/units.ts";
import type { BrokerIdentity } from "../../../src/nats/core/jetstream.ts";
import { Session } from "../../../src/nats/core/session.ts";
import type { Reply } from "../../../src/nats/core/session.ts";
import { seededRandom } from "../../../src/system/random.ts";
import { SteppedClock } from "../../fakes/clock.ts";

const ms = (value: number): DurationMs => value as DurationMs;
const lost = new Failure("transient", "BROKER_UNREACHABLE", "lost");

/** A session on a connection that records what is sent, and lets a test answer. */
function bed() {
  const sent: { readonly subject: string; readonly reply: string }[] = [];
  const subscriptions = new Map<string, (error: Error | null, message: Msg) => void>();
  const state = { isClosed: false };
  const connection = {
    publish: (subject: string, _: Uint8Array, { reply }: { readonly reply?: string }) => sent.push({ subject, reply: reply ?? "" }),
    subscribe: (subject: string, { callback }: { readonly callback: (error: Error | null, message: Msg) => void }) => {
      subscriptions.set(subject, callback);
      return { unsubscribe: () => subscriptions.delete(subject) };
    },
    isClosed: () => state.isClosed,
  } as unknown as NatsConnection;
  const clock = new SteppedClock();
  const session = new Session({ connection, identity: {} as BrokerIdentity, epoch: 4, inboxPrefix: "_INBOX", clock, random: seededRandom(1) });
  const replies: Reply[] = [];
  const request = (subject: string, isSettled = true): void => session.request({
    subject, body: new Uint8Array(0), timeoutMs: ms(1_000), attempt: `ask ${subject}`, onReply: (reply) => {
      replies.push(reply);
      return isSettled;
    },
  });
  const answer = (subject: string, text: string): void => {
    const raw = Buffer.from(text);
    const headerLength = text.startsWith("NATS/1.0") ? text.indexOf("\r\n\r\n") + 4 : -1;
    for (const callback of subscriptions.values()) callback(null, { subject, reply: "", _msg: { hdr: headerLength }, _rdata: raw } as unknown as Msg);
  };
  return { session, clock, sent, state, subscriptions, replies, request, answer };
}

const codes = (replies: readonly Reply[]): readonly string[] => replies.map((reply) => (reply.kind === "failed" ? reply.failure.code : Buffer.from(reply.message.body).toString()));

describe("a session", () => {
  test("hands each reply to the request that it answers", () => {
    const { request, answer, sent, replies } = bed();
    request("a");
    request("b");
    answer(sent[1]?.reply ?? "", "for b");
    answer(sent[0]?.reply ?? "", "for a");
    answer(sent[0]?.reply ?? "", "for a again");
    answer("_INBOX.somebody.else", "for nobody");
    expect(codes(replies)).toEqual(["for b", "for a"]);
  });

  test("goes on with a request that expects more, until it has enough", () => {
    const { request, answer, sent, replies, session } = bed();
    request("a", false);
    answer(sent[0]?.reply ?? "", "1");
    answer(sent[0]?.reply ?? "", "2");
    expect([codes(replies), session.awaitedCount]).toEqual([["1", "2"], 1]);
  });

  test("fails a request that nobody serves, even one that expects more", () => {
    const { request, answer, sent, replies, session } = bed();
    request("a", false);
    answer(sent[0]?.reply ?? "", "NATS/1.0 503\r\n\r\n");
    expect([codes(replies), session.awaitedCount]).toEqual([["BROKER_NO_RESPONDERS"], 0]);
  });

  test("fails a request whose time has passed", async () => {
    const { request, clock, replies } = bed();
    request("a");
    await clock.advance(ms(900));
    request("b");
    expect(codes(replies)).toEqual([]);
    await clock.advance(ms(400));
    expect(codes(replies)).toEqual(["BROKER_TIMEOUT"]);
  });

  test("fails what is awaited on a subject that this user may not publish to, and nothing else", () => {
    const { request, session, replies } = bed();
    request("a");
    request("b");
    session.refusePermission(new errors.PermissionViolationError("no", "publish", "a"));
    expect([codes(replies), session.awaitedCount]).toEqual([["BROKER_PERMISSION"], 1]);
  });

  test("fails everything at once when this user may not receive replies", async () => {
    const { request, session, subscriptions, replies } = bed();
    request("a");
    const [inbox = ""] = subscriptions.keys();
    session.refusePermission(new errors.PermissionViolationError("no", "subscription", "elsewhere.>"));
    expect(replies).toHaveLength(0);
    session.refusePermission(new errors.PermissionViolationError("no", "subscription", inbox));
    request("b");
    await Promise.resolve();
    expect(codes(replies)).toEqual(["BROKER_PERMISSION", "BROKER_PERMISSION"]);
  });

  test("ends what is awaited, sends nothing more and hears nothing more", async () => {
    const { request, answer, session, sent, subscriptions, replies } = bed();
    let heardCount = 0;
    session.subscribe("news", () => (heardCount += 1));
    request("a");
    session.end(lost);
    session.end(lost);
    expect([codes(replies), session.ended.aborted, subscriptions.size]).toEqual([["BROKER_UNREACHABLE"], true, 0]);
    request("b");
    await Promise.resolve();
    answer("news", "old");
    expect([sent.length, session.send({ subject: "c", body: new Uint8Array(0) }), heardCount, codes(replies).at(-1)]).toEqual([1, false, 0, "BROKER_CLOSED"]);
  });

  test("never answers before the request has returned, even when nothing can be sent", async () => {
    const { request, state, replies, session } = bed();
    state.isClosed = true;
    request("a");
    expect(replies).toHaveLength(0);
    await Promise.resolve();
    expect([codes(replies), session.awaitedCount]).toEqual([["BROKER_CLOSED"], 0]);
  });
});
