/**
 * Hostile input for every parser: a fixed corpus of texts, each with the reason why somebody would send it, and
 * generators that mutate what is valid. Seeds are fixed (test/protocol/property.ts), so every run tries the same cases.
 */
import { fc } from "../protocol/property.ts";

/** Ids that a sender may choose, and that must neither break a subject nor a reader. */
export const hostileIds: readonly string[] = [
  "orders.eu", "a.b.c.d", "*", ">", "orders.>", "two words", " ", "\t", "__proto__", "constructor", "toString", "$KV.DURABLE_TIMER_STATE.t.x",
  "~rejected", "~h", "=h", "../../etc", "a\r\nNats-Rollup: all", "\u0000", "\u202e", "ü", "𝕏", "\u2028", "'; DROP TABLE timers; --", "a".repeat(256), "ü".repeat(128),
];

/** Ids that no context may carry. */
export const forbiddenIds: readonly string[] = ["", "a".repeat(257), "ü".repeat(129), "a".repeat(10_000)];

/** Values that are no valid value of any field, whatever its type. */
export const hostileValues: readonly unknown[] = [
  null, [], {}, [[[[]]]], true, -1, 0.5, -0, 1e21, 2 ** 53, -(2 ** 53), { toString: 1 }, { __proto__: null }, { length: 1e9 }, [1, 2, 3],
  "9".repeat(400), "1969-12-31T23:59:59.999Z", "2262-01-01T00:00:00.001Z", "+275760-09-13T00:00:00.001Z", "2027-13-01T00:00:00.000Z", "sha256:", `sha256:${"g".repeat(64)}`,
];

/** Texts that look like JSON, or nearly so. */
export const hostileTexts: readonly (readonly [name: string, text: string])[] = [
  ["nothing", ""],
  ["a space", " "],
  ["a byte order mark", "\ufeff{}"],
  ["a NUL", "\u0000"],
  ["half an object", "{"],
  ["a number alone", "1"],
  ["null", "null"],
  ["a list", "[]"],
  ["an empty object", "{}"],
  ["deep lists", "[".repeat(200_000)],
  ["deep lists that close", "[".repeat(100_000) + "]".repeat(100_000)],
  ["deep objects", '{"a":'.repeat(100_000)],
  ["deep objects that close", `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`],
  ["many keys", `{${Array.from({ length: 20_000 }, (_, index) => `"k${String(index)}":1`).join(",")}}`],
  ["a long key", `{"${"k".repeat(500_000)}":1}`],
  ["an open string", `{"v":"${"\\".repeat(99_999)}`],
  ["backslashes in pairs", `{"v":"${"\\\\".repeat(100_000)}"}`],
  ["a long number", `{"v":${"9".repeat(100_000)}}`],
  ["a number with a huge exponent", '{"v":1e999999999}'],
  ["a long run of digits and signs", `{"v":${"1-".repeat(50_000)}}`],
  ["spaces", " ".repeat(500_000)],
  ["a prototype", '{"__proto__":{"v":1,"isAdmin":true}}'],
  ["a constructor", '{"constructor":{"prototype":{"polluted":1}}}'],
  ["a duplicate key", '{"v":1,"v":2}'],
  ["half a surrogate pair", '{"v":"\\ud800"}'],
  ["a line break in a value", '{"v":"a\r\nNats-Rollup: all"}'],
  ["a bell", '{"v":"\u0007"}'],
  ["a number beyond 2^53", '{"v":9007199254740993}'],
  ["a fraction", '{"v":0.1}'],
  ["a comment", '{"v":1 /* one */}'],
];

/** Any text: from the corpus, cut and joined pieces of it, valid JSON, and noise. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...hostileTexts.map(([, text]) => text)).chain((text) => fc.nat({ max: Math.min(text.length, 2_000) }).map((end) => text.slice(0, end))),
  fc.tuple(fc.constantFrom(...hostileTexts.map(([, text]) => text.slice(0, 300))), fc.constantFrom(...hostileTexts.map(([, text]) => text.slice(0, 300)))).map((parts) => parts.join("")),
  fc.json(),
  fc.string({ unit: "binary", maxLength: 300 }),
);

/** `text` with some of its bytes replaced, removed, doubled or inserted. */
export function mutated(text: string): fc.Arbitrary<string> {
  const edit = fc.record({ at: fc.nat({ max: Math.max(0, text.length - 1) }), how: fc.constantFrom("replace", "remove", "double", "insert"), char: fc.string({ unit: "binary", minLength: 1, maxLength: 3 }) });
  return fc.array(edit, { minLength: 1, maxLength: 6 }).map((edits) => edits.reduce((before, { at, how, char }) => {
    const rest = how === "insert" ? before.slice(at) : before.slice(at + 1);
    const middle = how === "remove" ? "" : how === "double" ? before.charAt(at).repeat(2) : char;
    return before.slice(0, at) + middle + rest;
  }, text));
}

/** Bytes that are not UTF-8, whole or in the middle of something valid. */
export const hostileBytes: fc.Arbitrary<Uint8Array> = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  hostileText.map((text) => Buffer.from(text, "utf16le")),
  fc.tuple(hostileText, fc.uint8Array({ maxLength: 4 })).map(([text, bytes]) => Buffer.concat([Buffer.from(text), bytes])),
);

/** Every path to a leaf of a value, with the value that replaces it in turn. */
export function replacedLeaves(value: unknown, by: readonly unknown[]): readonly (readonly [path: string, replaced: unknown, put: unknown])[] {
  return leafPaths(value).flatMap((path) => by.map((put) => [path.join("."), withLeaf(value, path, put), put] as const));
}

function leafPaths(value: unknown): readonly (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [[]];
  return Object.entries(value).flatMap(([key, inner]) => leafPaths(inner).map((path) => [key, ...path]));
}

function withLeaf(value: unknown, path: readonly string[], put: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return put;
  const inner = value as Record<string, unknown>;
  return { ...inner, [key]: withLeaf(inner[key], rest, put) };
}
