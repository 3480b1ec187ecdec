/**
 * Byte strings shared by everything that hashes: length-prefixed concatenation and the text forms of digests.
 *
 * `lengthPrefixed` is injective: no two different lists of parts give the same bytes, which plain concatenation does
 * not promise ("ab","c" and "a","bc" would meet).
 */
import { assert } from "./assert.ts";

const encoder = new TextEncoder();

/** The UTF-8 bytes of `text`. */
export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

/** The body of a message without one. */
export const noBytes = new Uint8Array(0);

/** The longest beginning of `text` whose UTF-8 has at most that many bytes; no character is cut in two. */
export function cutToBytes(text: string, bytesMax: number): string {
  const bytes = utf8(text);
  if (bytes.length <= bytesMax) return text;
  let end = bytesMax;
  // Bytes that continue a character look like 10xxxxxx.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return new TextDecoder().decode(bytes.subarray(0, end));
}

/** Each part as UTF-8, preceded by its byte length as an unsigned 32-bit big-endian number. */
export function lengthPrefixed(parts: readonly string[]): Uint8Array<ArrayBuffer> {
  const encoded = parts.map(utf8);
  const size = encoded.reduce((sum, part) => sum + 4 + part.length, 0);
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  let offset = 0;
  for (const part of encoded) {
    view.setUint32(offset, part.length, false);
    bytes.set(part, offset + 4);
    offset += 4 + part.length;
  }
  return bytes;
}

/** Lower-case hexadecimal. */
export function hex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}

/** Lower-case RFC 4648 base32 without padding; `bytes` must hold a whole number of 5-bit groups. */
export function base32(bytes: Uint8Array): string {
  assert((bytes.length * 8) % 5 === 0, "a whole number of base32 characters");
  let text = "";
  let buffer = 0;
  let bitCount = 0;
  for (const byte of bytes) {
    buffer = ((buffer << 8) | byte) & 0xfff;
    bitCount += 8;
    while (bitCount >= 5) {
      bitCount -= 5;
      text += base32Alphabet.charAt((buffer >> bitCount) & 31);
    }
  }
  return text;
}

const base32Alphabet = "abcdefghijklmnopqrstuvwxyz234567";
