/** Chance from a seed: the same throws for the same seed on every machine. */
import type { Random } from "../../src/base/random.ts";

export class Dice implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) | 0;
  }

  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  token(length: number): string {
    return Array.from({ length }, () => tokenAlphabet[Math.floor(this.fraction() * tokenAlphabet.length)]).join("");
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  between(least: number, most: number): number {
    return least + this.fraction() * (most - least);
  }

  /** A whole number from `least` to `most`, both included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1));
  }

  pick<T>(list: readonly [T, ...T[]]): T {
    return list[Math.floor(this.fraction() * list.length)] ?? list[0];
  }

  /** Dice of their own for one part of a run, so that more throws in one part change nothing in another. */
  fork(): Dice {
    return new Dice(Math.floor(this.fraction() * 2 ** 32));
  }
}

const tokenAlphabet = "abcdefghijklmnopqrstuvwxyz234567";
