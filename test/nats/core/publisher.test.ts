import { describe, expect, test } from "vitest";
import { payloadHeadroomBytes } from "../../../src/base/limits.ts";
import type { DurationMs, EpochMs } from "../../../src/base/units.ts";
import type { OutgoingMessage } from "../../../src/nats/core/jetstream.ts";
import { acknowledgement, publishHeaders, sizeFailure } from "../../../src/nats/core/publisher.ts";
import { Failure } from "../../../src/base/failure.ts";

const message = (over: Partial<OutgoingMessage> = {}): OutgoingMessage => ({ subject: "s.a", headers: [], body: new Uint8Array(0), ...over });
const reply = (value: unknown) => ({ kind: "reply", message: { subject: "inbox", reply: "", body: Buffer.from(typeof value === "string" ? value : JSON.stringify(value)) } }) as const;

describe("the options of a message", () => {
  test.each<{ readonly over: Partial<OutgoingMessage>; readonly headers: readonly (readonly [string, string])[]; readonly because: string }>([
    { over: {}, headers: [], because: "nothing is added unasked" },
    { over: { headers: [["A", "1"]], messageId: "id" }, headers: [["A", "1"], ["Nats-Msg-Id", "id"]], because: "own headers come first" },
    { over: { expectedLastSubjectSequence: 0 }, headers: [["Nats-Expected-Last-Subject-Sequence", "0"]], because: "0 is an expectation" },
    { over: { ttlMs: 1_001 as DurationMs }, headers: [["Nats-TTL", "2s"]], because: "rounded up to whole seconds" },
    { over: { ttlMs: 1 as DurationMs }, headers: [["Nats-TTL", "1s"]], because: "the shortest that servers take" },
    { over: { rollup: true }, headers: [["Nats-Rollup", "sub"]], because: "of its subject only" },
    {
      over: { schedule: { fireAtMs: Date.UTC(2027, 0, 1) as EpochMs, target: "w.a" } },
      headers: [["Nats-Schedule", "@at 2027-01-01T00:00:00.000Z"], ["Nats-Schedule-Target", "w.a"]], because: "to the millisecond, in UTC",
    },
  ])("become headers: $because", ({ over, headers }) => {
    expect(publishHeaders(message(over))).toEqual(headers);
  });
});

describe("a message of a size", () => {
  const limit = 100_000;
  test("within the limit goes, header room included or counted exactly", () => {
    expect(sizeFailure(message({ body: new Uint8Array(limit - payloadHeadroomBytes) }), limit)).toBeUndefined();
    expect(sizeFailure(message({ body: new Uint8Array(limit - 200) }), limit)).toBeUndefined();
  });

  test("that does not fit with its headers is refused here, since the server would cut the connection", () => {
    const headers = [["K", "x".repeat(300)]] as const;
    expect(sizeFailure(message({ headers, body: new Uint8Array(limit - 200) }), limit)).toMatchObject({ kind: "invalid", code: "MESSAGE_TOO_LARGE" });
  });
});

describe("an acknowledgement", () => {
  const timeout = new Failure("transient", "BROKER_TIMEOUT", "publish");
  test.each([
    { given: reply({ stream: "S", seq: 7 }), kind: "told", because: "it is stored" },
    { given: reply({ error: { code: 400, err_code: 10071, description: "" } }), kind: "conflict", because: "another message is the last" },
    { given: reply({ error: { code: 503, err_code: 10077, description: "" } }), kind: "refused", because: "the server says that it did not store" },
    { given: reply("no JSON"), kind: "unknown", because: "nobody knows what it says" },
    { given: { kind: "failed", failure: timeout } as const, kind: "unknown", because: "silence decides nothing" },
    { given: { kind: "failed", failure: new Failure("transient", "BROKER_NO_RESPONDERS", "publish") } as const, kind: "refused", because: "nobody was there to store it" },
    { given: { kind: "failed", failure: new Failure("denied", "BROKER_PERMISSION", "publish") } as const, kind: "refused", because: "the server passed it to nobody" },
  ])("is $kind when $because", ({ given, kind }) => {
    expect(acknowledgement("publish", given).kind).toBe(kind);
  });
});
