import { describe, expect, test } from "vitest";
import { InvariantError } from "../../../src/base/assert.ts";
import { encodeHeaders, headerStatus, messageHeaders } from "../../../src/nats/core/headers.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("headers", () => {
  test("are written in the protocol's form, in their order", () => {
    expect(Buffer.from(encodeHeaders([["A", "1"], ["b", "x: y"]])).toString()).toBe("NATS/1.0\r\nA: 1\r\nb: x: y\r\n\r\n");
  });

  test("come back as they were written, names case-sensitive and repeated values in order", () => {
    const read = messageHeaders(encodeHeaders([["K", "v"], ["k", "w"], ["K", "ünï"]]));
    expect([read.get("K"), read.all("K"), read.get("k"), read.get("missing"), read.all("missing")]).toEqual(["v", ["v", "ünï"], "w", undefined, []]);
  });

  test("come back the same however large, and tell their size", () => {
    const large = encodeHeaders([["K", "v"], ["Junk", "x".repeat(60_000)], ["k", "w"]]);
    const read = messageHeaders(large);
    expect([read.get("K"), read.get("k"), read.all("Junk")[0]?.length, read.byteCount]).toEqual(["v", "w", 60_000, large.length]);
  });

  test("with a line break in a value are a bug, since they would become two", () => {
    expect(() => encodeHeaders([["A", "1\r\nNats-Rollup: all"]])).toThrow(InvariantError);
  });

  test.each([
    { text: "NATS/1.0\r\nBad Name: x\r\nK: v\r\n\r\n", because: "a blank in a name is the sender's problem alone" },
    { text: "NATS/1.0\r\nno colon\r\nK: v\r\n\r\n", because: "a line that is no header is passed over" },
    { text: "NATS/1.0\r\n: nameless\r\nK:v \r\n", because: "values are trimmed, and the end may be missing" },
    { text: "NATS/1.0 503\r\nK: v\r\n\r\n", because: "a status line is not a header" },
  ])("that are odd are read as far as they go: $because", ({ text }) => {
    expect(messageHeaders(bytes(text)).get("K")).toBe("v");
  });

  test("are none for a message without them", () => {
    expect(messageHeaders(undefined).get("K")).toBeUndefined();
  });

  test.each([
    ["NATS/1.0 503\r\n\r\n", 503],
    ["NATS/1.0 100 Idle Heartbeat\r\n\r\n", 100],
    ["NATS/1.0\r\nA: 1\r\n\r\n", undefined],
    ["NATS/1.0 x\r\n\r\n", undefined],
    ["", undefined],
  ])("tell the server's status in %j: %s", (text, status) => {
    expect(headerStatus(bytes(text))).toBe(status);
  });
});
