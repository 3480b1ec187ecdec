// Randomness that a test can predict: the same seed gives the same run.

import type { Random } from "../../src/base/random.ts";

export class SeededRandom implements Random {
  #state: number;

  constructor(seed = 1) {
    this.#state = seed >>> 0;
  }

  /** Mulberry32: small, fast, and good enough to spread test cases. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  token(length: number): string {
    let text = "";
    while (text.length < length) text += alphabet.charAt(Math.floor(this.fraction() * alphabet.length));
    return text;
  }
}

const alphabet = "abcdefghijklmnopqrstuvwxyz234567";
