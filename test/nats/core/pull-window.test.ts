import { describe, expect, test } from "vitest";
import type { MonotonicMs } from "../../../src/base/units.ts";
import { encodeHeaders } from "../../../src/nats/core/headers.ts";
import { PullWindow } from "../../../src/nats/core/pull-window.ts";

const at = (ms: number): MonotonicMs => ms as MonotonicMs;
const messageBytesMax = 1_000;

/** An open request for ten messages of which `arrivedCount` came, and the judgement of a status message. */
function bed(arrivedCount: number) {
  const window = new PullWindow();
  const token = window.open(10, at(0));
  for (let index = 0; index < arrivedCount; index += 1) window.arrived();
  const judge = (status: number, left?: { readonly messages: number; readonly bytes: number }, of = token) => {
    const headers = left === undefined ? [] : ([["Nats-Pending-Messages", String(left.messages)], ["Nats-Pending-Bytes", String(left.bytes)]] as const);
    return window.status({ token: of, status, headerBytes: encodeHeaders(headers) }, messageBytesMax);
  };
  return { window, token, judge };
}

describe("a pull request", () => {
  test("is open until its last message has come", () => {
    const { window } = bed(9);
    expect([window.isOpen, window.expected]).toEqual([true, 1]);
    window.arrived();
    expect([window.isOpen, window.expected]).toEqual([false, 0]);
  });

  test.each([
    { arrived: 0, status: 100, left: undefined, meaning: "none", expected: 10, because: "a heartbeat says only that the server is there" },
    { arrived: 3, status: 408, left: { messages: 7, bytes: 0 }, meaning: "ended", expected: 0, because: "its time is over" },
    { arrived: 3, status: 408, left: { messages: 5, bytes: 0 }, meaning: "ended", expected: 2, because: "its time is over, and two messages are on their way" },
    { arrived: 0, status: 409, left: { messages: 0, bytes: 9_000 }, meaning: "ended", expected: 10, because: "replicas tell the end before they deliver" },
    { arrived: 4, status: 409, left: { messages: 6, bytes: 999 }, meaning: "ended", expected: 0, because: "the next message would not have fitted" },
    { arrived: 0, status: 409, left: { messages: 10, bytes: 999 }, meaning: "trouble", expected: 0, because: "not even one message fitted" },
    { arrived: 4, status: 409, left: { messages: 6, bytes: 9_000 }, meaning: "trouble", expected: 0, because: "the leader has changed" },
    { arrived: 4, status: 409, left: undefined, meaning: "trouble", expected: 0, because: "the consumer is gone" },
    { arrived: 0, status: 503, left: undefined, meaning: "trouble", expected: 0, because: "nobody serves it" },
  ] as const)("of which $arrived of 10 came means $meaning on $status: $because", ({ arrived, status, left, meaning, expected }) => {
    const { window, judge } = bed(arrived);
    expect([judge(status, left), window.expected]).toEqual([meaning, expected]);
    expect(window.isOpen).toBe(meaning === "none");
  });

  test("is not ended by the status of an earlier one", () => {
    const { window, judge, token } = bed(0);
    judge(408, { messages: 10, bytes: 0 });
    const next = window.open(5, at(1));
    expect([next === token, judge(409), window.isOpen]).toEqual([false, "none", true]);
  });

  test("does not count the last messages of the one before", () => {
    const { window, judge } = bed(8);
    judge(409, { messages: 0, bytes: 9_000 });
    window.open(5, at(1));
    window.arrived();
    window.arrived();
    expect(window.expected).toBe(5);
    window.arrived();
    expect(window.expected).toBe(4);
  });

  test("is silent when nothing was heard for long, and only while it is open", () => {
    const { window } = bed(0);
    expect([window.isSilent(at(5), 5), window.isSilent(at(6), 5)]).toEqual([false, true]);
    window.heard(at(4));
    expect(window.isSilent(at(9), 5)).toBe(false);
    window.reset();
    expect(window.isSilent(at(100), 5)).toBe(false);
  });
});
