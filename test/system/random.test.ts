import { describe, expect, test } from "vitest";
import { seededRandom, systemRandom } from "../../src/system/random.ts";

describe("random numbers", () => {
  test("one seed gives one sequence, another seed another", () => {
    const draw = (seed: number) => {
      const random = seededRandom(seed);
      return [random.fraction(), random.token(12), random.fraction()];
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
  });

  test.each([{ name: "system", random: systemRandom }, { name: "seeded", random: seededRandom(1) }])(
    "fractions of the $name source spread over [0, 1)",
    ({ random }) => {
      const drawn = Array.from({ length: 4_000 }, () => random.fraction());
      expect(drawn.every((value) => value >= 0 && value < 1)).toBe(true);
      const tenths = Array.from({ length: 10 }, (_, tenth) => drawn.filter((value) => Math.floor(value * 10) === tenth).length);
      expect(Math.min(...tenths)).toBeGreaterThan(280);
      expect(Math.max(...tenths)).toBeLessThan(520);
    },
  );

  test("a token has the length that was asked for and only base32 characters", () => {
    const tokens = [0, 1, 7, 8, 9, 22].map((length) => systemRandom.token(length));
    expect(tokens.map((token) => token.length)).toEqual([0, 1, 7, 8, 9, 22]);
    expect(tokens.every((token) => /^[a-z2-7]*$/.test(token))).toBe(true);
  });
});
