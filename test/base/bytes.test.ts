import { describe, expect, test } from "vitest";
import { base32, cutToBytes, hex, lengthPrefixed, utf8 } from "../../src/base/bytes.ts";

describe("length-prefixed parts", () => {
  test("carry their length in UTF-8 bytes, big endian", () => {
    expect(hex(lengthPrefixed(["ü", ""]))).toBe("00000002c3bc00000000");
  });

  test("of different lists never meet", () => {
    const lists = [["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], ["", "abc"]];
    expect(new Set(lists.map((list) => hex(lengthPrefixed(list)))).size).toBe(lists.length);
  });
});

test.each([
  { text: "abc", bytesMax: 3, cut: "abc", because: "it fits" },
  { text: "abcd", bytesMax: 3, cut: "abc", because: "one byte too many" },
  { text: "aüb", bytesMax: 2, cut: "a", because: "half a character is none" },
  { text: "aüb", bytesMax: 3, cut: "aü", because: "the character fits to its last byte" },
  { text: "😀😀", bytesMax: 7, cut: "😀", because: "two halves of a surrogate pair are four bytes" },
  { text: "ü", bytesMax: 1, cut: "", because: "nothing fits" },
])("$text is cut to $bytesMax bytes as $cut", ({ text, bytesMax, cut, because }) => {
  expect(cutToBytes(text, bytesMax), because).toBe(cut);
});

test.each([
  // RFC 4648, section 10, cut to whole groups of five bytes.
  ["fooba", "mzxw6ytb"],
  ["", ""],
  ["\0\0\0\0\0", "aaaaaaaa"],
])("base32 of %j is %s", (text, want) => {
  expect(base32(utf8(text))).toBe(want);
});

test("base32 takes whole groups only", () => {
  expect(() => base32(utf8("foo"))).toThrow("whole number");
});
