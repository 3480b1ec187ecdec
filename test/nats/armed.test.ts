import { describe, expect, test } from "vitest";
import { armedHeaders, armedIn } from "../../src/nats/armed.ts";
import { encodeHeaders, messageHeaders } from "../../src/nats/core/headers.ts";
import { at } from "../timer/records.ts";

const read = (headers: readonly (readonly [string, string])[]) => armedIn({ subject: "s", sequence: 4, timestampNs: 0n, headers: messageHeaders(encodeHeaders(headers)), body: new Uint8Array(0) });

describe("what a schedule carries", () => {
  test("comes back with its wake", () => {
    expect(read(armedHeaders({ generation: 2, fence: 7, dueAtMs: at(0) }))).toEqual({ generation: 2, fence: 7, dueAtMs: at(0), sequence: 4 });
  });

  test("says when a schedule fires", () => {
    const headers = armedHeaders({ generation: 2, fence: 7, dueAtMs: at(0) });
    expect(read([...headers, ["Nats-Schedule", `@at ${new Date(at(60_000)).toISOString()}`]]).fireAtMs).toBe(at(60_000));
    expect(read([...headers, ["Nats-Schedule", "@every 1s"]]).fireAtMs).toBeUndefined();
  });

  test.each([
    { headers: [], because: "there is nothing" },
    { headers: [["Durable-Timer-Fence", "2:7"]], because: "the due time is missing" },
    { headers: [["Durable-Timer-Fence", "2:-7"], ["Durable-Timer-Due-At", "1"]], because: "a fence is no negative number" },
    { headers: [["Durable-Timer-Fence", "2:7:1"], ["Durable-Timer-Due-At", "1"]], because: "there is one number too many" },
    { headers: [["Durable-Timer-Fence", "2:7"], ["Durable-Timer-Due-At", "1e3"]], because: "a due time is digits" },
  ] as const)("reads as older than any timer when $because", ({ headers }) => {
    expect(read(headers)).toEqual({ generation: 0, fence: 0, dueAtMs: 0, sequence: 4 });
  });
});
