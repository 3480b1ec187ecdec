import { describe, expect, test } from "vitest";
import { accountStateFrom, consumerStateFrom, streamStateFrom, userStateFrom } from "../../../src/nats/core/info.ts";

const malformed = { kind: "failed", failure: { code: "BROKER_REPLY_MALFORMED" } };

describe("INFO of a stream", () => {
  const reply = {
    config: { name: "S", max_bytes: 5 },
    created: "2026-11-30T21:18:57.4Z",
    state: { messages: 2, bytes: 100, first_seq: 1, last_seq: 7 },
    ts: "2026-11-30T21:18:57.412999999Z",
    cluster: { leader: "n2", replicas: [{ name: "n1", current: true }, { name: "n3", current: false, offline: true, lag: 4 }] },
  };

  test("is read with its leader and replicas, its time rounded down", () => {
    expect(streamStateFrom("ask", reply)).toEqual({
      kind: "told",
      value: {
        name: "S", config: reply.config, createdAt: reply.created, messages: 2, bytes: 100, firstSequence: 1, lastSequence: 7, leader: "n2",
        replicas: [{ name: "n1", current: true, offline: false, lag: 0 }, { name: "n3", current: false, offline: true, lag: 4 }],
        serverTimeMs: Date.parse("2026-11-30T21:18:57.412Z"),
      },
    });
  });

  test("of a single server has neither", () => {
    const { cluster: _, ts: __, ...single } = reply;
    const told = streamStateFrom("ask", single);
    expect(told.kind === "told" && [told.value.leader, told.value.replicas, told.value.serverTimeMs]).toEqual([undefined, [], undefined]);
  });

  test("that lacks a part is malformed", () => {
    expect(streamStateFrom("ask", { config: {} })).toMatchObject(malformed);
  });
});

describe("INFO of a consumer", () => {
  test("tells what is pending and how long a pause lasts", () => {
    const reply = { name: "C", created: "2026-11-30T21:18:57Z", config: {}, num_pending: 3, num_ack_pending: 2, num_redelivered: 1, num_waiting: 4, paused: true, pause_remaining: 1_500_001 };
    expect(consumerStateFrom("ask", reply)).toMatchObject({ kind: "told", value: { pending: 3, ackPending: 2, redelivered: 1, waitingPulls: 4, paused: true, pauseRemainingMs: 2 } });
  });

  test("that lacks a part is malformed", () => {
    expect(consumerStateFrom("ask", { name: "C" })).toMatchObject(malformed);
  });
});

describe("INFO of an account", () => {
  test("without limits has no maximum", () => {
    expect(accountStateFrom("ask", { storage: 7, reserved_storage: 3, streams: 2, limits: { max_storage: -1 }, api: { level: 5 } })).toEqual({
      kind: "told", value: { storageBytes: 7, storageBytesReserved: 3, streams: 2, apiLevel: 5 },
    });
  });

  test("with tiers speaks for the one that is fullest", () => {
    const tiers = { R1: { storage: 50, limits: { max_storage: 1_000 } }, R3: { storage: 40, reserved_storage: 1, limits: { max_storage: 100 } } };
    expect(accountStateFrom("ask", { tiers, streams: 2, domain: "hub", api: { level: 5 } })).toEqual({
      kind: "told", value: { storageBytes: 40, storageBytesMax: 100, storageBytesReserved: 1, streams: 2, apiLevel: 5, domain: "hub" },
    });
  });

  test("that lacks its API part is malformed", () => {
    expect(accountStateFrom("ask", {})).toMatchObject(malformed);
  });
});

describe("the answer to who we are", () => {
  test("names the account, by its name where the server knows one", () => {
    const server = { time: "2026-11-30T21:18:57.4Z" };
    expect(userStateFrom("ask", { server, data: { account: "AKEY", account_name: "PAYMENTS" } })).toEqual({ kind: "told", value: { accountName: "PAYMENTS", serverTimeMs: Date.parse(server.time) } });
    expect(userStateFrom("ask", { server, data: { account: "AKEY" } })).toMatchObject({ value: { accountName: "AKEY" } });
    expect(userStateFrom("ask", { server, data: {} })).toMatchObject(malformed);
  });
});
