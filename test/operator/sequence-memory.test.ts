import { describe, expect, it } from "vitest";
import { rewindConfirmMs } from "../../src/base/limits.ts";
import type { MonotonicMs } from "../../src/base/units.ts";
import { SequenceMemory } from "../../src/operator/sequence-memory.ts";
import { absent, provisionedBroker, settled, spec, withBroker, withMetadata, withStream } from "./plan/scenes.ts";
import type { ReachedBroker } from "./plan/scenes.ts";

const at = (ms: number): MonotonicMs => ms as MonotonicMs;
const streams = (lastSequence: number): ReachedBroker["streams"] => streamsOf(withStream(settled(), "commands", (stream) => ({ ...stream, lastSequence })));
const streamsOf = (observed: ReturnType<typeof settled>): ReachedBroker["streams"] => (observed.broker?.kind === "reached" ? observed.broker.streams : provisionedBroker(spec()).streams);

describe("the memory of sequences", () => {
  it("says nothing while they grow", () => {
    const memory = new SequenceMemory();
    expect([memory.note(streams(3), at(0)), memory.note(streams(3), at(9_000)), memory.note(streams(8), at(20_000))]).toEqual([{}, {}, {}]);
  });

  it("doubts one lower look, and is sure of two that are far enough apart", () => {
    const memory = new SequenceMemory();
    memory.note(streams(9), at(0));
    const doubt = { commands: { fromSequence: 9, toSequence: 4, isConfirmed: false } };
    expect(memory.note(streams(4), at(100))).toEqual(doubt);
    expect(memory.note(streams(4), at(100 + rewindConfirmMs - 1))).toEqual(doubt);
    expect(memory.note(streams(4), at(100 + rewindConfirmMs))).toEqual({ commands: { fromSequence: 9, toSequence: 4, isConfirmed: true } });
  });

  it("takes a doubt back when a later look is as high as before", () => {
    const memory = new SequenceMemory();
    memory.note(streams(9), at(0));
    memory.note(streams(4), at(100));
    expect(memory.note(streams(9), at(9_000))).toEqual({});
    expect(memory.note(streams(4), at(20_000)), "a new doubt begins").toEqual({ commands: { fromSequence: 9, toSequence: 4, isConfirmed: false } });
  });

  it("keeps what it is sure of while the numbers grow again, and tells of a second one", () => {
    const memory = new SequenceMemory();
    for (const [sequence, ms] of [[9, 0], [4, 100], [4, 9_000]] as const) memory.note(streams(sequence), at(ms));
    expect(memory.note(streams(7), at(10_000))).toEqual({ commands: { fromSequence: 9, toSequence: 4, isConfirmed: true } });
    memory.note(streams(2), at(20_000));
    expect(memory.note(streams(2), at(30_000))).toEqual({ commands: { fromSequence: 7, toSequence: 2, isConfirmed: true } });
  });

  it("begins anew with another life of a stream", () => {
    const memory = new SequenceMemory();
    memory.note(streams(9), at(0));
    expect(memory.note(streamsOf(withMetadata(settled(), "commands", {})), at(9_000))).toEqual({});
    memory.note(streams(9), at(20_000));
    const restored = withStream(settled(), "commands", (stream) => ({ ...stream, lastSequence: 4, createdAt: "2026-12-01T00:00:00Z" }));
    expect(memory.note(streamsOf(restored), at(30_000))).toEqual({});
  });

  it("learns nothing from a stream that did not answer", () => {
    const memory = new SequenceMemory();
    memory.note(streams(9), at(0));
    expect(memory.note(streamsOf(withBroker(settled(), (broker) => ({ ...broker, streams: { ...broker.streams, commands: absent } }))), at(9_000))).toEqual({});
    memory.note(streams(4), at(10_000));
    expect(memory.note(streams(4), at(20_000))).toMatchObject({ commands: { isConfirmed: true } });
  });
});
