import { expect, test } from "vitest";
import { untilAborted } from "../../src/concurrency/until-aborted.ts";

test("waits for a signal to abort, and not at all for one that has", async () => {
  const abort = new AbortController();
  let isOver = false;
  const waiting = untilAborted(abort.signal).then(() => { isOver = true; });
  await Promise.resolve();
  expect(isOver).toBe(false);
  abort.abort(new Error("stopped"));
  await waiting;
  expect(isOver).toBe(true);
  await expect(untilAborted(abort.signal)).resolves.toBeUndefined();
});
