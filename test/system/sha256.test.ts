import { expect, test } from "vitest";
import { hex, utf8 } from "../../src/base/bytes.ts";
import { systemSha256 } from "../../src/system/sha256.ts";

test.each([
  { text: "", want: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", because: "FIPS 180 gives this digest of no bytes" },
  { text: "abc", want: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", because: "FIPS 180 gives this digest of abc" },
])("the digest of '$text' is the standard's", ({ text, want, because }) => {
  expect(hex(systemSha256(utf8(text))), because).toBe(want);
});
