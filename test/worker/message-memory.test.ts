import { expect, test } from "vitest";
import { MessageMemory } from "../../src/worker/message-memory.ts";
import { message } from "../protocol/messages.ts";

const at = (sequence: number, timestampNs = 1n) => message({ subject: "s", sequence, timestampNs });

test("a message is known until it is forgotten, and the oldest goes when there are too many", () => {
  const memory = new MessageMemory<number>({ countMax: 2 });
  memory.remember(at(1), 10);
  memory.remember(at(2), 20);
  memory.remember(at(1), 11);
  memory.remember(at(3), 30);
  expect([memory.recall(at(1)), memory.recall(at(2)), memory.recall(at(3))]).toEqual([11, undefined, 30]);
  memory.forget(at(1));
  expect(memory.recall(at(1))).toBeUndefined();
});

test("a sequence that was given out again is another message", () => {
  const memory = new MessageMemory<number>({ countMax: 2 });
  memory.remember(at(1, 5n), 10);
  expect(memory.recall(at(1, 6n))).toBeUndefined();
});
