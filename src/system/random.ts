/** Randomness: the operating system's, and a seeded one that makes a run repeatable. */
import { randomBytes } from "node:crypto";
import { base32 } from "../base/bytes.ts";
import type { Random } from "../base/random.ts";

/** Random numbers of the operating system. */
export const systemRandom: Random = randomFrom((size) => randomBytes(size));

/** The same sequence for the same seed, on every machine. */
export function seededRandom(seed: number): Random {
  const nextUint32 = splitMix32(seed);
  return randomFrom((size) => {
    const bytes = new Uint8Array(size);
    for (let index = 0; index < size; index += 1) bytes[index] = nextUint32() & 0xff;
    return bytes;
  });
}

function randomFrom(bytesOf: (size: number) => Uint8Array): Random {
  return {
    fraction: () => fractionOf(bytesOf(7)),
    token: (length) => base32(bytesOf(Math.ceil(length / 8) * 5)).slice(0, length),
  };
}

/** Of 56 bits the 53 that a number between 0 and 1 holds exactly: more would round up to 1 now and then. */
function fractionOf(bytes: Uint8Array): number {
  let value = 0;
  for (const [index, byte] of bytes.entries()) value = value * 256 + (index === 0 ? byte & 0x1f : byte);
  return value / 2 ** 53;
}

/** A small generator with good distribution of its low bits, unlike a linear congruential one. */
function splitMix32(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = state ^ (state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  };
}
