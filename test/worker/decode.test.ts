import { describe, expect, test } from "vitest";
import type { DurationMs } from "../../src/base/units.ts";
import { headerNames, wakeSubject } from "../../src/protocol/names.ts";
import { decode } from "../../src/worker/decode.ts";
import { testTimer } from "../fakes/timers.ts";
import { message } from "../protocol/messages.ts";
import { sha256 } from "../timer/records.ts";

const options = { limits: { payloadBytesMax: 1_000, delayMsMax: 1e12 as DurationMs, retriesMax: 10, replyPrefix: "_INBOX.durable_timer" }, sha256 };
const timer = testTimer(1);
const wake = (headers: Record<string, string>, subject = wakeSubject(timer.key)) => decode("wake", message({ subject, headers }), options);

describe("a wake", () => {
  test("names its timer by subject and its place by headers", () => {
    expect(wake({ [headerNames.fence]: "1:3", [headerNames.dueAt]: "1800000000000" })).toEqual({
      kind: "work", work: { key: timer.key, input: { kind: "wake", generation: 1, fence: 3 }, basis: "replica", dueAtMs: 1_800_000_000_000 }, dueAtMs: 1_800_000_000_000,
    });
  });

  test.each([
    ["without a fence", { [headerNames.dueAt]: "1" }],
    ["with a fence of another shape", { [headerNames.fence]: "1:3:5", [headerNames.dueAt]: "1" }],
    ["without a due time", { [headerNames.fence]: "1:3" }],
    ["with a due time that is no number", { [headerNames.fence]: "1:3", [headerNames.dueAt]: "soon" }],
  ])("%s is foreign", (_name, headers) => {
    expect(wake(headers as Record<string, string>)).toMatchObject({ kind: "foreign" });
  });

  test("on a subject that names no timer is foreign", () => {
    expect(wake({ [headerNames.fence]: "1:3", [headerNames.dueAt]: "1" }, "durable_timer.wake.v1.x")).toMatchObject({ kind: "foreign" });
  });
});

describe("a command", () => {
  const start = (body: Uint8Array) => decode("start", message({ subject: "durable_timer.commands.start.v1", headers: { [headerNames.context]: timer.snapshot.contextHeader }, body }), options);

  test("that is a start brings its snapshot and assumes that nobody has seen it", () => {
    expect(start(timer.snapshot.body)).toMatchObject({ kind: "work", work: { key: timer.key, basis: "assumed", snapshot: timer.snapshot } });
  });

  test("that cannot be read says why", () => {
    expect(start(Uint8Array.of(1))).toMatchObject({ kind: "malformed", command: { code: "payload_hash_mismatch" } });
  });
});
