import { describe, expect, test } from "vitest";
import { encodeHeaders, messageHeaders } from "../../src/nats/core/headers.ts";
import { recordIn } from "../../src/nats/records.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import type { StoredMessage } from "../../src/protocol/message.ts";
import { elapsed } from "../timer/records.ts";

const stored = (body: Uint8Array, headers: readonly (readonly [string, string])[] = []): StoredMessage => ({
  subject: "s", sequence: 9, timestampNs: 0n, headers: messageHeaders(encodeHeaders(headers)), body,
});

describe("what lies under a timer's key", () => {
  test("is its record", () => {
    expect(recordIn(stored(encodeRecord(elapsed())))).toEqual({ kind: "found", value: elapsed(), revision: 9 });
  });

  test.each([
    { header: ["KV-Operation", "PURGE"], because: "we removed it" },
    { header: ["KV-Operation", "DEL"], because: "somebody deleted the key" },
    { header: ["Nats-Marker-Reason", "MaxAge"], because: "the server let it expire" },
  ] as const)("is a marker where $because", ({ header }) => {
    expect(recordIn(stored(new Uint8Array(0), [header]))).toEqual({ kind: "marker", revision: 9 });
  });

  test("is unreadable when it is neither", () => {
    expect(recordIn(stored(new Uint8Array(0)))).toMatchObject({ kind: "unreadable", revision: 9 });
  });
});
