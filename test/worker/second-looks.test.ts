import { describe, expect, test } from "vitest";
import { doubtfulBytesMax, doubtfulCountMax, messagesRememberedMax, newerInputRecheckMs } from "../../src/base/limits.ts";
import type { MonotonicMs } from "../../src/base/units.ts";
import type { InHand } from "../../src/worker/loop-options.ts";
import { SecondLooks } from "../../src/worker/second-looks.ts";
import { message } from "../protocol/messages.ts";

const at = (value: number) => value as MonotonicMs;
const item = (sequence: number, bytes = 1) => ({ bytes, delivery: { message: message({ subject: "s", sequence }) } }) as unknown as InHand;

describe("second looks", () => {
  test("have places for so many messages, and a released place is free again", () => {
    const looks = new SecondLooks();
    const held = Array.from({ length: doubtfulCountMax }, (_, index) => item(index));
    expect(held.every((one) => looks.hold(one, at(0)))).toBe(true);
    expect([looks.hold(item(-1), at(0)), looks.count]).toEqual([false, doubtfulCountMax]);
    looks.release(item(0));
    expect(looks.count).toBe(doubtfulCountMax);
    if (held[0] !== undefined) looks.release(held[0]);
    expect(looks.hold(item(-1), at(0))).toBe(true);
  });

  test("have so many bytes, and a message that has its place keeps it", () => {
    const looks = new SecondLooks();
    const large = item(1, doubtfulBytesMax);
    expect([looks.hold(large, at(0)), looks.hold(large, at(0)), looks.hold(item(2), at(0)), looks.bytes]).toEqual([true, true, false, doubtfulBytesMax]);
  });

  test("are the second for a message that found no place, once the interval is over, and only once", () => {
    const looks = new SecondLooks();
    looks.hold(item(1, doubtfulBytesMax), at(0));
    const returned = item(2);
    looks.hold(returned, at(1_000));
    const basis = (ms: number) => looks.basisOf(returned.delivery.message, "replica", at(ms));
    expect([basis(1_000 + newerInputRecheckMs - 1), basis(1_000 + newerInputRecheckMs), basis(1_000 + newerInputRecheckMs)]).toEqual(["replica", "leader_again", "replica"]);
    expect(messagesRememberedMax).toBeGreaterThan(doubtfulCountMax);
  });
});
