import { expect, test } from "vitest";
import { tombstoneOf } from "../../src/timer/tombstone.ts";
import { terminal, tombstone } from "./records.ts";

test("a tombstone keeps what recognises a start and answers it, and nothing else", () => {
  expect(tombstoneOf(terminal())).toEqual(tombstone());
  expect(tombstoneOf(terminal({ outcome: "failed", generation: 2, fence: 7, failure: { code: "gone", message: "" } }))).toEqual(tombstone({ outcome: "failed", generation: 2, fence: 7 }));
});
