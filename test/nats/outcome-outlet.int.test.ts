import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { decodeOutcome } from "../../src/protocol/outcome.ts";
import type { Outcome } from "../../src/protocol/outcome.ts";
import { eventually } from "../conformance/jetstream.ts";
import { openBed } from "./bed.ts";
import type { Bed } from "./bed.ts";

let bed: Bed;
beforeAll(async () => {
  bed = await openBed();
});
afterAll(() => bed[Symbol.asyncDispose]());

test("outcomes reach whoever listens on the subject that was named, and a subject without listener disturbs nobody", async () => {
  const heard: (Outcome | undefined)[] = [];
  onTestFinished(bed.connection.jetStream.listen("_INBOX.durable_timer.me.*", ({ body }) => heard.push(decodeOutcome(body))));
  const outcome: Outcome = { v: 1, outcome: "accepted", ref: "r", generation: 0, fence: 1 };
  await eventually("the listener is known", async () => {
    bed.ports.outcomes.send([{ replyTo: "_INBOX.durable_timer.nobody.1", outcome }, { replyTo: "_INBOX.durable_timer.me.1", outcome }]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    return heard.length > 0;
  });
  expect(heard[0]).toEqual(outcome);
});
