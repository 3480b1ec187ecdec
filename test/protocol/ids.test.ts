import { expect, test } from "vitest";
import { feedbackMessageId, resumeMessageId, startMessageId, terminalMessageId } from "../../src/protocol/ids.ts";
import { hash } from "../timer/records.ts";

const key = { flow: "orders", ref: "r".repeat(32) };

test("message ids name the ref, and what makes another message another one", () => {
  expect([
    startMessageId(key, hash("a")),
    feedbackMessageId(key, { verb: "retry", generation: 1, fence: 4, receiptHash: hash("b") }),
    resumeMessageId(key, { generation: 1, fence: 4 }),
    resumeMessageId(key, { generation: 1, fence: 4, resumedAgainAtMs: 5 }),
    terminalMessageId(key),
  ]).toEqual([
    `start:${key.ref}:aaaaaaaaaaaaaaaa`, `retry:${key.ref}:1:4:bbbbbbbbbbbbbbbb`, `resume:${key.ref}:1:4`, `resume:${key.ref}:1:4:again`, `terminal:${key.ref}`,
  ]);
});
