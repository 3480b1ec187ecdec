import { describe, expect, it } from "vitest";
import { consumerStamp, ownerId, readStamp, stampKeys, streamStamp } from "../../src/topology/stamp.ts";
import { owner } from "./input.ts";

describe("the stamp", () => {
  it("reads back as it was written", () => {
    expect(readStamp({ metadata: streamStamp(owner, "k3v9") })).toEqual({ ownerId: owner.id, ownerUid: owner.uid, incarnation: "k3v9", layoutVersion: 1 });
  });

  it("of a consumer has no incarnation", () => {
    expect(readStamp({ metadata: consumerStamp(owner) })).toEqual({ ownerId: owner.id, ownerUid: owner.uid, incarnation: "", layoutVersion: 1 });
  });

  const rows = [
    { name: "no metadata", config: {}, because: "servers leave out what is empty" },
    { name: "null metadata", config: { metadata: null }, because: "JSON may say so" },
    { name: "the server's own keys", config: { metadata: { "_nats.ver": "2.15.2" } }, because: "they say nothing of an owner" },
    { name: "an empty owner", config: { metadata: { [stampKeys.ownerId]: "", [stampKeys.incarnation]: "x" } }, because: "a claim names somebody" },
  ];

  it.each(rows)("is absent with $name", ({ config, because }) => {
    expect(readStamp(config), because).toBeUndefined();
  });

  it.each(["", "one", "-1", "1.5", "99999999999"])("takes the layout version %j for 0, which no worker needs", (version) => {
    expect(readStamp({ metadata: { [stampKeys.ownerId]: "o", [stampKeys.layoutVersion]: version } })?.layoutVersion).toBe(0);
  });

  it("names an owner by cluster, namespace and name", () => {
    expect(ownerId({ clusterId: "c", namespace: "payments", name: "orders" })).toBe("c/payments/orders");
  });
});
