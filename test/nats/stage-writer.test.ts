import { describe, expect, test } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import { atomicBatchBytesMax, atomicBatchSizeMax, atomicBatchSizeMin } from "../../src/base/limits.ts";
import type { BatchOutcome, JetStream, OutgoingMessage, PublishOutcome, StreamState } from "../../src/nats/core/jetstream.ts";
import { StageWriter } from "../../src/nats/stage-writer.ts";

const failure = new Failure("transient", "BROKER_TIMEOUT", "publish");

/** Records what is sent; single messages are stored from sequence 1000 on. */
function bed(batchOutcome: (messages: readonly OutgoingMessage[]) => BatchOutcome = () => ({ kind: "stored", lastSequence: 500 })) {
  const sent = { batches: [] as number[], singles: 0 };
  const jetStream = {
    publish: async (messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]> =>
      messages.map(() => ({ kind: "stored", sequence: 1_000 + sent.singles++, duplicate: false })),
    publishAtomically: async (messages: readonly OutgoingMessage[]): Promise<BatchOutcome> => {
      sent.batches.push(messages.length);
      return batchOutcome(messages);
    },
  } as unknown as JetStream;
  const writer = new StageWriter(jetStream);
  const learn = (config: Readonly<Record<string, unknown>>): void => writer.learn({ name: "S", config } as unknown as StreamState);
  return { sent, writer, learn };
}

const messages = (count: number, bytes = 10): readonly OutgoingMessage[] =>
  Array.from({ length: count }, (_, index) => ({ subject: `s.${String(index)}`, headers: [], body: new Uint8Array(bytes) }));
const oneReplica = { num_replicas: 1, allow_atomic: true };

describe("a stage", () => {
  test.each([
    { config: undefined, count: 100, batches: [], because: "nothing is known of the stream yet" },
    { config: { num_replicas: 3, allow_atomic: true }, count: 100, batches: [], because: "replicas group single messages themselves" },
    { config: { num_replicas: 1, allow_atomic: false }, count: 100, batches: [], because: "the stream does not allow batches" },
    { config: oneReplica, count: atomicBatchSizeMin - 1, batches: [], because: "a small batch costs more than it saves" },
    { config: oneReplica, count: atomicBatchSizeMin, batches: [atomicBatchSizeMin], because: "from here on it saves" },
    { config: oneReplica, count: atomicBatchSizeMax + 1, batches: [atomicBatchSizeMax], because: "the rest is too small for another batch" },
    { config: oneReplica, count: 0, batches: [], because: "there is nothing to write" },
  ])("of $count messages is written in batches of $batches: $because", async ({ config, count, batches }) => {
    const { sent, writer, learn } = bed();
    if (config !== undefined) learn(config);
    expect(await writer.write("S", messages(count))).toHaveLength(count);
    expect(sent).toEqual({ batches, singles: count - batches.reduce((sum, size) => sum + size, 0) });
  });

  test("is divided before a batch grows beyond its bytes", async () => {
    const { sent, writer, learn } = bed();
    learn(oneReplica);
    await writer.write("S", messages(100, atomicBatchBytesMax / 40));
    expect(sent).toEqual({ batches: [40, 40], singles: 20 });
  });

  test("gives each message its own sequence", async () => {
    const { writer, learn } = bed();
    learn(oneReplica);
    const outcomes = await writer.write("S", messages(30));
    expect(outcomes.map((outcome) => outcome.kind === "stored" && outcome.sequence)).toEqual(Array.from({ length: 30 }, (_, index) => 471 + index));
  });

  test.each<{ readonly outcome: BatchOutcome; readonly because: string }>([
    { outcome: { kind: "conflict" }, because: "one expectation did not hold, the others may" },
    { outcome: { kind: "refused", failure }, because: "a smaller write may still find room" },
  ])("whose batch failed is settled message by message: $because", async ({ outcome }) => {
    const { sent, writer, learn } = bed(() => outcome);
    learn(oneReplica);
    expect((await writer.write("S", messages(30))).map(({ kind }) => kind)).toEqual(Array.from({ length: 30 }, () => "stored"));
    expect(sent).toEqual({ batches: [30], singles: 30 });
  });

  test("whose batch was not answered is unknown for each message, and sent no second time", async () => {
    const { sent, writer, learn } = bed(() => ({ kind: "unknown", failure }));
    learn(oneReplica);
    expect(new Set((await writer.write("S", messages(30))).map(({ kind }) => kind))).toEqual(new Set(["unknown"]));
    expect(sent).toEqual({ batches: [30], singles: 0 });
  });
});
