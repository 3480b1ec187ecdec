import { describe, expect, test } from "vitest";
import { encodeHeaders } from "../../../src/nats/core/headers.ts";
import { apiMessage, deliveryInfo, directMessage, nanosFromRfc3339 } from "../../../src/nats/core/received.ts";

describe("an acknowledgement subject", () => {
  const info = { deliveryCount: 3, streamSequence: 17, timestampNs: 1796073537414022531n, pending: 9 };

  test.each([
    ["$JS.ACK.S.C.3.17.5.1796073537414022531.9", info],
    ["$JS.ACK.hub.ACCHASH.S.C.3.17.5.1796073537414022531.9", info],
    ["$JS.ACK._.ACCHASH.S.C.3.17.5.1796073537414022531.9.token", info],
    ["$JS.ACK.S.C.3.17.5.9", undefined],
    ["$JS.ACK.S.C.3.17.5.notatime.9", undefined],
    ["_INBOX.abc.1", undefined],
    ["", undefined],
  ])("%j tells %o", (subject, expected) => {
    expect(deliveryInfo(subject)).toEqual(expected);
  });
});

describe("an instant of the broker", () => {
  test.each([
    ["2026-11-30T21:18:57.407017269Z", 1796073537407017269n],
    ["2026-11-30T21:18:57.4Z", 1796073537400000000n],
    ["2026-11-30T21:18:57Z", 1796073537000000000n],
    ["2026-11-30T21:18:57.407017269+01:00", undefined],
    ["2026-13-30T21:18:57Z", undefined],
    ["", undefined],
  ])("%j is %s nanoseconds", (text, nanos) => {
    expect(nanosFromRfc3339(text)).toBe(nanos);
  });
});

describe("a stored message", () => {
  test("in a reply of the message API has its bytes and headers", () => {
    const hdrs = Buffer.from(encodeHeaders([["K", "v"]])).toString("base64");
    const message = apiMessage({ subject: "s.a", seq: 7, time: "2026-11-30T21:18:57.5Z", hdrs, data: Buffer.from([0, 255]).toString("base64") });
    expect(message).toMatchObject({ subject: "s.a", sequence: 7, timestampNs: 1796073537500000000n });
    expect([message?.headers.get("K"), [...(message?.body ?? [])]]).toEqual(["v", [0, 255]]);
  });

  test("without body and headers is an empty one", () => {
    const message = apiMessage({ subject: "s.a", seq: 7, time: "2026-11-30T21:18:57Z" });
    expect([message?.body.length, message?.headers.get("K")]).toEqual([0, undefined]);
  });

  test.each([undefined, {}, { subject: "s", seq: "7", time: "2026-11-30T21:18:57Z" }, { subject: "s", seq: 7, time: "yesterday" }])("is not read from %j", (reply) => {
    expect(apiMessage(reply)).toBeUndefined();
  });

  test("in a direct reply is described by headers, and without them there is none", () => {
    const headerBytes = encodeHeaders([["Nats-Subject", "s.a"], ["Nats-Sequence", "7"], ["Nats-Time-Stamp", "2026-11-30T21:18:57Z"], ["K", "v"]]);
    const body = new Uint8Array([1]);
    const message = directMessage({ subject: "inbox", reply: "", headerBytes, body });
    expect(message).toMatchObject({ subject: "s.a", sequence: 7, timestampNs: 1796073537000000000n, body });
    expect(message?.headers.get("K")).toBe("v");
    expect(directMessage({ subject: "inbox", reply: "", headerBytes: encodeHeaders([["Nats-Subject", "s.a"]]), body })).toBeUndefined();
  });
});
