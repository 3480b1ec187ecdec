import { describe, expect, test } from "vitest";
import { rejectedSubject, snapshotSubject, stateKey, stateSubject, timerKeyFromSubject, wakeSubject } from "../../src/protocol/names.ts";

const ref = "a".repeat(32);
const hashed = { flow: `~h${"b".repeat(32)}`, ref };

describe("names of a timer", () => {
  test("lead back to its key", () => {
    for (const key of [{ flow: "orders", ref }, hashed]) {
      for (const subject of [snapshotSubject(key), wakeSubject(key), stateSubject(stateKey(key)), stateKey(key)]) expect(timerKeyFromSubject(subject)).toEqual(key);
    }
  });

  test("use only characters that a bucket's keys may have", () => {
    expect(stateKey(hashed)).toMatch(/^[-/=.\w]+$/);
  });

  test.each(["", "a.b", `orders.${"A".repeat(32)}`, `or ders.${ref}`, `~x.${ref}`, rejectedSubject("stale", 255)])("are not read out of %j", (subject) => {
    expect(timerKeyFromSubject(subject)).toBeUndefined();
  });
});
