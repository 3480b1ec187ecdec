import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { InvariantError } from "../../src/base/assert.ts";
import { leaseKeys, stateSubject, streamNames } from "../../src/protocol/names.ts";
import { message, must } from "../conformance/jetstream.ts";
import { openBed } from "./bed.ts";
import type { Bed } from "./bed.ts";

let bed: Bed;
beforeAll(async () => {
  bed = await openBed();
});
afterAll(() => bed[Symbol.asyncDispose]());

describe("a note", () => {
  test("is written where nothing is, and replaced under its revision", async () => {
    const { notes } = bed.ports;
    expect(await notes.read(leaseKeys.sweep)).toEqual({ kind: "absent" });
    const first = await notes.write({ name: leaseKeys.sweep, text: "one", expected: 0 });
    expect(first.kind).toBe("stored");
    const revision = first.kind === "stored" ? first.revision : 0;
    expect(await notes.write({ name: leaseKeys.sweep, text: "two", expected: 0 })).toEqual({ kind: "exists" });
    expect(await notes.read(leaseKeys.sweep)).toEqual({ kind: "found", value: "one", revision });
    expect((await notes.write({ name: leaseKeys.sweep, text: "two", expected: revision })).kind).toBe("stored");
    expect(await notes.write({ name: leaseKeys.sweep, text: "three", expected: revision })).toEqual({ kind: "conflict" });
    expect(must(await bed.connection.jetStream.streamState(streamNames.state)).messages).toBe(1);
  });

  test("that somebody removed, or that is no text, is told as such", async () => {
    const subject = stateSubject(leaseKeys.sweepSummary);
    await bed.connection.jetStream.publish([message(subject, { body: new Uint8Array([255]) })]);
    expect(await bed.ports.notes.read(leaseKeys.sweepSummary)).toMatchObject({ kind: "unreadable" });
    await bed.connection.jetStream.publish([message(subject, { headers: [["KV-Operation", "DEL"]], body: new Uint8Array(0) })]);
    expect(await bed.ports.notes.read(leaseKeys.sweepSummary)).toMatchObject({ kind: "marker" });
  });

  test("never lies under a timer's key", async () => {
    await expect(bed.ports.notes.read("t.orders.x")).rejects.toBeInstanceOf(InvariantError);
  });
});
