import { describe, expect, test } from "vitest";
import { decideAdmission, initialAdmission, startCost } from "../../src/worker/admission-decide.ts";
import { AdmissionRoom } from "../../src/worker/admission-room.ts";
import type { StreamUsage, Usage } from "../../src/worker/ports.ts";
import { encodeRecord } from "../../src/protocol/record-codec.ts";
import { failureCodeBytesMax, failureMessageBytesMax } from "../../src/base/limits.ts";
import { terminalRecord, testTimer, waitingRecord } from "../fakes/timers.ts";

const none: StreamUsage = { messages: 0, bytes: 0 };
const size = { contextBytes: 500, bodyBytes: 1_000 };
const small = (count: number) => Array.from({ length: count }, () => size);

/** Empty streams, of which one has a limit. */
function limited(part: "state" | "snapshots" | "terminals" | "account", bytesMax: number, replicas = 1): Usage {
  const usage: Usage = { state: none, snapshots: none, terminals: none, account: { bytes: 0, replicas } };
  return { ...usage, [part]: { ...usage[part], bytesMax } };
}

function roomOf(usage: Usage | undefined): AdmissionRoom {
  const room = new AdmissionRoom();
  room.looked(usage, 1);
  return room;
}

describe("room between two looks", () => {
  test.each(["state", "snapshots", "terminals", "account"] as const)("is an eighth of what %s has left", (part) => {
    const cost = startCost(size, 1)[part];
    expect(roomOf(limited(part, cost * 80)).take(small(100)).count).toBe(10);
  });

  test("is unlimited where nothing has a limit, and none before a look or without usage", () => {
    expect(roomOf({ ...limited("state", 1), state: none }).take(small(5_000)).count).toBe(5_000);
    expect(new AdmissionRoom().take(small(1)).count).toBe(0);
    expect(roomOf(undefined).take(small(1)).count).toBe(0);
  });

  test("counts every replica of what an account will hold", () => {
    const bytesMax = startCost(size, 1).account * 80;
    expect([roomOf(limited("account", bytesMax)).take(small(100)).count, roomOf(limited("account", bytesMax, 3)).take(small(100)).count]).toEqual([10, 3]);
  });

  test("is used up by what was taken, until a look began after it was written", () => {
    const usage = limited("state", startCost(size, 1).state * 80);
    const room = roomOf(usage);
    const first = room.take(small(6));
    expect(room.take(small(6)).count).toBe(4);
    room.looked(usage, 2);
    expect(room.take(small(6)).count).toBe(0);
    first.done(3);
    room.looked(usage, 3);
    expect(room.take(small(6)).count).toBe(0);
    room.looked(usage, 4);
    expect(room.take(small(10)).count).toBe(6);
  });

  test("takes one start that needs all of it, and none that needs more", () => {
    const large = { contextBytes: 500, bodyBytes: 1_000_000 };
    const cost = startCost(large, 1).snapshots;
    expect(roomOf(limited("snapshots", cost)).take([large, large]).count).toBe(1);
    expect(roomOf(limited("snapshots", cost - 1)).take([large]).count).toBe(0);
  });

  test("and what admission counts of a live timer cover its largest record", () => {
    const timer = testTimer(1);
    const waiting = encodeRecord(waitingRecord(timer)).length;
    const failure = { code: "c".repeat(failureCodeBytesMax), message: "m".repeat(failureMessageBytesMax) };
    const terminal = encodeRecord(terminalRecord(timer, { outcome: "failed", failure })).length;
    const cost = startCost({ contextBytes: timer.snapshot.contextHeader.length, bodyBytes: 0 }, 1);
    expect(cost.state).toBeGreaterThan(waiting);
    expect(cost.terminals).toBeGreaterThan(terminal);
    const usage: Usage = { ...limited("terminals", terminal), state: { messages: 1, bytes: waiting } };
    expect(decideAdmission(initialAdmission, { usage, isDataWhole: true }, { closePercent: 100, reopenPercent: 90 })).toMatchObject({ reason: "terminals_full" });
  });
});
