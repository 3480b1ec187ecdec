import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EpochMs } from "../../src/base/units.ts";
import { scheduleSubject, streamNames, wakeSubject } from "../../src/protocol/names.ts";
import type { ArmItem } from "../../src/worker/ports.ts";
import { eventually, message, ms, never } from "../conformance/jetstream.ts";
import { freshKey, openBed } from "./bed.ts";
import type { Bed } from "./bed.ts";

let bed: Bed;
beforeAll(async () => {
  bed = await openBed();
});
afterAll(() => bed[Symbol.asyncDispose]());

const inMs = (duration: number): EpochMs => (Date.now() + duration) as EpochMs;
const item = (over: Partial<ArmItem> = {}): ArmItem => ({ key: freshKey(), generation: 2, fence: 7, dueAtMs: inMs(60_500), fireAtMs: inMs(60_000), ...over });

describe("a schedule", () => {
  test("is seen with the transition that armed it", async () => {
    const armed = item();
    const [outcome] = await bed.ports.schedules.arm([armed]);
    expect(outcome?.kind).toBe("stored");
    expect(await bed.ports.schedules.look([armed.key, freshKey()])).toEqual([
      { kind: "seen", schedule: { generation: 2, fence: 7, dueAtMs: armed.dueAtMs, fireAtMs: armed.fireAtMs, sequence: outcome?.kind === "stored" && outcome.revision } },
      { kind: "seen" },
    ]);
  });

  test("is armed where none is, and replaced over its sequence only", async () => {
    const armed = item();
    const [outcome] = await bed.ports.schedules.arm([armed]);
    expect(await bed.ports.schedules.arm([armed])).toEqual([{ kind: "exists" }]);
    const expected = outcome?.kind === "stored" ? outcome.revision : 0;
    expect((await bed.ports.schedules.arm([{ ...armed, generation: 3, fence: 9, expected }]))[0]?.kind).toBe("stored");
    expect(await bed.ports.schedules.arm([{ ...armed, generation: 4, fence: 11, expected }])).toEqual([{ kind: "conflict" }]);
    expect(await bed.ports.schedules.look([armed.key])).toMatchObject([{ kind: "seen", schedule: { generation: 3, fence: 9 } }]);
  });

  test("becomes a wake that carries the same, and is gone itself", async () => {
    const armed = item({ fireAtMs: inMs(300), dueAtMs: inMs(800) });
    await bed.ports.schedules.arm([armed]);
    await eventually("the wake is there", async () => {
      const [look] = await bed.ports.schedules.look([armed.key]);
      return look?.kind === "seen" && look.wake !== undefined;
    });
    expect(await bed.ports.schedules.look([armed.key])).toEqual([{ kind: "seen", wake: { generation: 2, fence: 7, dueAtMs: armed.dueAtMs, sequence: expect.any(Number) as unknown } }]);
    const taken = await bed.ports.sources.wake.take({ max: 10, expiresMs: ms(5_000), signal: never });
    expect(taken.map((delivery) => delivery.message.subject)).toEqual([wakeSubject(armed.key)]);
    expect(bed.ports.clock.lowerBoundMs()).toBeGreaterThanOrEqual(armed.fireAtMs);
    expect(taken.every((delivery) => delivery.ack())).toBe(true);
  });

  test("is disarmed whatever it carries, as often as asked", async () => {
    const armed = item();
    await bed.ports.schedules.arm([armed]);
    expect((await bed.ports.schedules.disarm([armed.key, freshKey()])).map(({ kind }) => kind)).toEqual(["stored", "stored"]);
    expect(await bed.ports.schedules.look([armed.key])).toEqual([{ kind: "seen" }]);
    expect((await bed.ports.schedules.arm([armed]))[0]?.kind).toBe("stored");
  });

  test("that is not ours reads as older than any timer", async () => {
    const key = freshKey();
    await bed.connection.jetStream.publish([message(scheduleSubject(key), { schedule: { fireAtMs: inMs(60_000), target: wakeSubject(key) } })]);
    expect(await bed.ports.schedules.look([key])).toMatchObject([{ kind: "seen", schedule: { generation: 0, fence: 0, dueAtMs: 0 } }]);
  });

  test("cannot be looked at while its stream is away", async () => {
    await bed.connection.admin.deleteStream(streamNames.schedules);
    expect(await bed.ports.schedules.look([freshKey()])).toMatchObject([{ kind: "failed", failure: { kind: "transient", code: "STREAM_MISSING" } }]);
    expect(await bed.ports.schedules.arm([item()])).toMatchObject([{ kind: "refused", failure: { code: "BROKER_NO_RESPONDERS" } }]);
    expect((await bed.ports.schedules.disarm([freshKey()]))[0]?.kind).toBe("unknown");
  });
});
