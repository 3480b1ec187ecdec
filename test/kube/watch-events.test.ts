import { expect, test } from "vitest";
import { watchEventBytesMax } from "../../src/base/limits.ts";
import { WatchEventReader } from "../../src/kube/watch-events.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const line = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`;
const named = (name: string, resourceVersion: string): object => ({ metadata: { name, namespace: "n", uid: "u", resourceVersion } });

function reader(bytesMax = 1_000): WatchEventReader {
  return new WatchEventReader({ bytesMax });
}

test("events that come in pieces are put together, also in the middle of a character", () => {
  const whole = bytes(line("ADDED", { metadata: { name: "ä", namespace: "n", uid: "u", resourceVersion: "7" } }));
  const cut = whole.indexOf(0xc3) + 1;
  const events = reader();
  expect(events.push(whole.subarray(0, cut))).toEqual([]);
  expect(events.push(whole.subarray(cut))).toMatchObject([{ kind: "changed", object: { metadata: { name: "ä" } } }]);
});

test("one piece may hold many events", () => {
  const piece = bytes(line("ADDED", named("a", "1")) + line("MODIFIED", named("a", "2")) + line("DELETED", named("a", "3")));
  expect(reader().push(piece).map(({ kind }) => kind)).toEqual(["changed", "changed", "deleted"]);
});

const rows = [
  { text: line("BOOKMARK", { metadata: { resourceVersion: "9" } }), want: { kind: "bookmark", resourceVersion: "9" }, because: "a bookmark moves the version on" },
  { text: line("ERROR", { kind: "Status", code: 410, reason: "Expired" }), want: { kind: "expired" }, because: "410 asks for a list" },
  { text: line("ERROR", { kind: "Status", code: 500, message: "boom" }), want: { kind: "broken", problem: "an error event: boom" }, because: "other errors end the watch" },
  { text: line("ADDED", { metadata: {} }), want: { kind: "broken", problem: "an event without a resource version" }, because: "without a version nothing can follow it" },
  { text: "<html>502</html>\n", want: { kind: "broken", problem: "an event without a resource version" }, because: "a proxy's words are no event" },
  { text: line("RENAMED", named("a", "1")), want: { kind: "broken", problem: "an event of an unknown type" }, because: "guessing would lose a change" },
];

test.each(rows)("reads $text", ({ text, want, because }) => {
  expect(reader().push(bytes(text)), because).toEqual([want]);
});

test("the largest object that the API server stores fits into an event", () => {
  const name = "x".repeat(1_572_864);
  expect(reader(watchEventBytesMax).push(bytes(line("ADDED", named(name, "1")))), "in one piece").toHaveLength(1);
  expect(watchEventBytesMax).toBeGreaterThan(4 * name.length);
});

test("a line that never ends is given up", () => {
  const events = reader(100);
  expect(events.push(bytes("x".repeat(101)))).toEqual([{ kind: "broken", problem: "an event that is too large" }]);
});
