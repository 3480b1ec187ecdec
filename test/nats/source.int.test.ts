import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { commandSubjects, streamNames } from "../../src/protocol/names.ts";
import { eventually, message, ms, must, never } from "../conformance/jetstream.ts";
import { openBed } from "./bed.ts";
import type { Bed } from "./bed.ts";

let bed: Bed;
beforeAll(async () => {
  bed = await openBed();
});
afterAll(() => bed[Symbol.asyncDispose]());

const store = async (subject: string): Promise<void> => {
  const [outcome] = await bed.connection.jetStream.publish([message(subject)]);
  expect(outcome?.kind).toBe("stored");
};
const takeOne = async (source: "start" | "feedback" | "wake") => {
  const [delivery] = await bed.ports.sources[source].take({ max: 1, expiresMs: ms(10_000), signal: never });
  if (delivery === undefined) throw new Error(`no ${source} came`);
  return delivery;
};

describe("a source", () => {
  test.each([
    { source: "start", subject: commandSubjects.start },
    { source: "feedback", subject: commandSubjects.fail },
  ] as const)("of $source commands delivers them, and each settlement does what it says", async ({ source, subject }) => {
    await store(subject);
    const first = await takeOne(source);
    expect([first.message.subject, first.deliveryCount, first.isCurrent(), first.extend()]).toEqual([subject, 1, true, true]);
    expect(first.nak(ms(0))).toBe(true);
    const second = await takeOne(source);
    expect([second.deliveryCount, second.terminate("unreadable"), second.ack()]).toEqual([2, true, false]);
    const stream = source === "start" ? streamNames.commands : streamNames.feedback;
    await eventually("it is gone", async () => must(await bed.connection.jetStream.streamState(stream)).messages === 0);
  });

  test("says that a delivery is no longer current once its connection was lost", async () => {
    await store(commandSubjects.start);
    const delivery = await takeOne("start");
    const epoch = bed.connection.epoch();
    await bed.servers.crash();
    await eventually("the connection is back", () => bed.connection.epoch() > epoch && bed.connection.isConnected());
    expect([delivery.isCurrent(), delivery.ack(), delivery.nak(ms(0)), delivery.extend(), delivery.terminate("x")]).toEqual([false, false, false, false, false]);
    expect(must(await bed.connection.jetStream.streamState(streamNames.commands)).messages).toBe(1);
  });
});
