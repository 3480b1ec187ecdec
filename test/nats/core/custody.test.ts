import { describe, expect, test } from "vitest";
import { custodyTrustMs } from "../../../src/base/limits.ts";
import type { MonotonicMs } from "../../../src/base/units.ts";
import { Custody } from "../../../src/nats/core/custody.ts";

const at = (ms: number): MonotonicMs => ms as MonotonicMs;

describe("the custody of deliveries", () => {
  test("allows to settle them while their consumer was seen not long ago", () => {
    const custody = new Custody("2026-11-30T21:00:00Z", at(0));
    expect([custody.allows(at(custodyTrustMs)), custody.allows(at(custodyTrustMs + 1))]).toEqual([true, false]);
    custody.confirm(at(custodyTrustMs + 1));
    expect(custody.allows(at(2 * custodyTrustMs))).toBe(true);
  });

  test("allows nothing in doubt, until the same consumer is seen again", () => {
    const custody = new Custody("2026-11-30T21:00:00Z", at(0));
    custody.doubt();
    expect(custody.allows(at(1))).toBe(false);
    custody.confirm(at(2));
    expect(custody.allows(at(3))).toBe(true);
  });

  test("allows nothing for ever once the consumer is another one", () => {
    const custody = new Custody("2026-11-30T21:00:00Z", at(0));
    custody.revoke();
    custody.confirm(at(1));
    expect(custody.allows(at(2))).toBe(false);
  });

  test("of a consumer that this user may not ask for lasts as long as the session", () => {
    expect(new Custody(undefined, at(0)).allows(at(100 * custodyTrustMs))).toBe(true);
  });
});
