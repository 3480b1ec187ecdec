import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rejectedInFlightMax, rejectedPerSecondMax, rejectedSlotCount, rejectedTtlMs } from "../../src/base/limits.ts";
import type { JetStream } from "../../src/nats/core/jetstream.ts";
import { natsRejectedStore } from "../../src/nats/rejected-store.ts";
import { commandSubjects, rejectedSubject, streamNames } from "../../src/protocol/names.ts";
import type { Rejected } from "../../src/worker/ports.ts";
import { eventually, must } from "../conformance/jetstream.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { openBed } from "./bed.ts";
import type { Bed } from "./bed.ts";

let bed: Bed;
beforeAll(async () => {
  bed = await openBed();
});
afterAll(() => bed[Symbol.asyncDispose]());

const rejected = (sequence: number): Rejected => ({ code: "start_conflict", problem: "another\nstart", subject: commandSubjects.start, sequence, contextHeader: "{}", bodyHash: "sha256:00" });
const messages = async (): Promise<number> => must(await bed.connection.jetStream.streamState(streamNames.terminals)).messages;

describe("rejected commands", () => {
  test("are kept, the same command always in the same slot", async () => {
    bed.ports.rejected.keep([rejected(1)]);
    await eventually("it is kept", async () => (await messages()) === 1);
    bed.ports.rejected.keep([rejected(1)]);
    const subjects = Array.from({ length: rejectedSlotCount }, (_, slot) => rejectedSubject("start_conflict", slot));
    const found = (await bed.connection.jetStream.readLast({ stream: streamNames.terminals, subjects, from: "leader" })).filter((last) => last.kind === "found");
    expect(found).toHaveLength(1);
    const kept = found[0]?.kind === "found" ? (JSON.parse(Buffer.from(found[0].message.body).toString()) as unknown) : undefined;
    expect(kept).toEqual({ v: 1, ...rejected(1) });
    expect(found[0]?.kind === "found" && found[0].message.headers.get("Nats-TTL"), "a flood gives its space back").toBe(`${String(rejectedTtlMs / 1_000)}s`);
  });

  test("take no more room than their slots, however many there are", async () => {
    const clock = new SteppedClock();
    const store = natsRejectedStore(bed.connection.jetStream, { clock, onLost: () => undefined });
    for (let round = 0; round < 20; round += 1) {
      const before = must(await bed.connection.jetStream.streamState(streamNames.terminals)).lastSequence;
      await clock.advance(10_000);
      store.keep(Array.from({ length: 50 }, (_, index) => rejected(round * 50 + index)));
      await eventually("they are stored", async () => must(await bed.connection.jetStream.streamState(streamNames.terminals)).lastSequence >= before + 50);
    }
    expect(await messages()).toBeLessThanOrEqual(rejectedSlotCount);
    expect(await messages()).toBeGreaterThan(rejectedSlotCount / 2);
  });

  test("beyond what may be on its way are counted and dropped", () => {
    let lostCount = 0;
    natsRejectedStore(bed.connection.jetStream, { clock: new SteppedClock(), onLost: (count) => (lostCount += count) }).keep(Array.from({ length: rejectedInFlightMax + 6 }, (_, index) => rejected(index)));
    expect(lostCount).toBe(6);
  });

  test("of one code are kept at a pace, which leaves those of another alone", async () => {
    let lostCount = 0;
    const clock = new SteppedClock();
    const stored: string[] = [];
    const jetStream = { publish: (messages: readonly { readonly subject: string }[]) => { stored.push(...messages.map(({ subject }) => subject)); return Promise.resolve(messages.map(() => ({ kind: "stored" }))); } } as unknown as JetStream;
    const store = natsRejectedStore(jetStream, { clock, onLost: (count) => (lostCount += count) });
    for (let second = 0; second < 10; second += 1) {
      for (let index = 0; index < 200; index += 1) {
        store.keep([rejected(second * 200 + index)]);
        await Promise.resolve();
      }
      await clock.advance(1_000);
    }
    expect(stored.length).toBe(rejectedInFlightMax + 9 * rejectedPerSecondMax);
    expect(lostCount).toBe(2_000 - stored.length);
    store.keep([{ ...rejected(1), code: "context_invalid" }]);
    expect(stored.at(-1)).toContain("context_invalid");
  });
});
