import { describe, expect, it } from "vitest";
import type { EpochMs } from "../../src/base/units.ts";
import type { ResourceKey } from "../../src/operator/plan/observed.ts";
import { BrokerSessions, keyFromText, keyText } from "../../src/operator/sessions.ts";
import { FakeBroker } from "../fakes/operator-broker.ts";

const orders: ResourceKey = { namespace: "payments", name: "orders" };
const options = { servers: ["nats://a:4222"], name: "test" };

function bench(): { readonly broker: FakeBroker; readonly sessions: BrokerSessions; readonly changed: ResourceKey[] } {
  const broker = new FakeBroker({ nowMs: () => 0 as EpochMs });
  const changed: ResourceKey[] = [];
  return { broker, changed, sessions: new BrokerSessions({ broker, onChange: (key) => changed.push(key) }) };
}

describe("BrokerSessions", () => {
  it("opens one session and keeps it", () => {
    const { broker, sessions } = bench();
    expect(sessions.open(orders, { ...options })).toBe(sessions.open(orders, { ...options }));
    expect(broker.sessions).toHaveLength(1);
  });

  it("replaces a session whose servers or secrets changed", () => {
    const { broker, sessions } = bench();
    sessions.open(orders, options);
    const second = sessions.open(orders, { ...options, auth: { kind: "token", token: "t" } });
    expect({ current: sessions.current(orders) === second, open: broker.openSessions, opened: broker.sessions.length }).toEqual({ current: true, open: 1, opened: 2 });
  });

  it("keeps the sessions of two resources apart", () => {
    const { broker, sessions } = bench();
    sessions.open(orders, options);
    sessions.open({ namespace: "payments", name: "other" }, options);
    sessions.close(orders);
    expect({ size: sessions.size, open: broker.openSessions, orders: sessions.current(orders) }).toEqual({ size: 1, open: 1, orders: undefined });
  });

  it("tells whose connection changed, and no longer after it was closed", () => {
    const { broker, sessions, changed } = bench();
    sessions.open(orders, options);
    broker.signal();
    sessions.close(orders);
    broker.signal();
    expect(changed).toEqual([orders]);
  });

  it("waits for the ends of all of them", async () => {
    const { broker, sessions } = bench();
    sessions.open(orders, options);
    sessions.open(orders, { ...options, name: "again" });
    await sessions.closeAll();
    await sessions.closeAll();
    expect({ size: sessions.size, open: broker.openSessions }).toEqual({ size: 0, open: 0 });
  });
});

describe("keyText", () => {
  it("is read back", () => {
    expect(keyFromText(keyText(orders))).toEqual(orders);
  });
});
